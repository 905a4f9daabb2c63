"""From bytes to modules: text, notebooks, which files matter, and the file behind an import.

Knows nothing of what code means.
"""
