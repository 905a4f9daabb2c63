"""The names that JAX, Flax, optax and NumPy have removed, as data, and how to replace them."""

from codemods.removed.table import Removed, row_of, table

__all__ = ["Removed", "row_of", "table"]
