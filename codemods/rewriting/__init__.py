"""Edits as data, and how they are carried out on one file. Asks nothing of the rest of the program."""
