"""Which transformation of the new tree an optimizer of the old one has become.

With `--before` the new side is not what `rewrite` emits but what is in the new tree. Files are
read as syntax trees, and none of their code is run.
"""
