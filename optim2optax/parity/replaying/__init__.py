"""Gradients of an old optimizer, replayed into a new transformation; and states that correspond.

The open loops of scenarios and commands share this. It knows objects in memory, and no files.
"""
