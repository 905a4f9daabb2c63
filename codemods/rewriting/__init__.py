"""Edits as data, and how they are carried out on one file, apart from the rest of the program."""
