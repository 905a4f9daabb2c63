"""The level of a command: the user's own training command, run on both trees.

Each side runs in processes and a copy of its own. Their records are read from files; nothing of
the user's runs in this process.
"""
