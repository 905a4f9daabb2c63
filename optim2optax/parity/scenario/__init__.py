"""The level of a scenario: a small script drives the user's own functions, old and new.

Both sides run in this process, the old one under another interpreter if that is asked for.
"""
