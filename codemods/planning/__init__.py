"""What becomes of every group, and which imports, names and helpers that needs.

The decisions of the rules are made whole here: all sites of a group migrate, or none.
"""
