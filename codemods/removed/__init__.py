"""What else JAX, Flax, optax and NumPy have removed since, as data, and how what takes its place is written."""

from codemods.removed.table import Removed, row_of, table

__all__ = ["Removed", "row_of", "table"]
