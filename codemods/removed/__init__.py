"""What else JAX, Flax, optax and NumPy have removed since, and where a file uses it."""

from codemods.removed.finding import MODERNIZED, UNKNOWN, names_removed, removed_uses, says_package, uses_removed
from codemods.removed.table import Removed, row_of, table

__all__ = [
    "MODERNIZED",
    "UNKNOWN",
    "Removed",
    "names_removed",
    "removed_uses",
    "row_of",
    "says_package",
    "table",
    "uses_removed",
]
