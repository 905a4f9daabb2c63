def run(module):
    raise RuntimeError("this is no scenario of parity")
