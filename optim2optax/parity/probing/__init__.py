"""Whether an old optimizer and a new one are the same function.

Both are objects, and get the same parameters and gradients, made for that. Nothing is known here
of source texts.
"""
