"""Values in time: which argument is which parameter, what a read may find, what may happen between two moments, and what changes.

Each such question is answered here once. It knows only `ast` and what `codemods.flow` found out.
"""
