"""Values in time: what a read may find, what may happen between two moments, what that changes.

Each such question is answered here once. It knows only `ast` and what `codemods.flow` found out.
"""
