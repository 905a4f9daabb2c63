"""`python -m optim2optax`."""

from optim2optax.cli import application

if __name__ == "__main__":
    application(prog_name="optim2optax")
