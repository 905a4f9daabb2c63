"""Values in time: what a read may find, what may happen between two moments, what that changes.

Each such question is answered here once, by `ast` and what `codemods.inference` tells.
"""
