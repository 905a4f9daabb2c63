"""Copies of `flax.optim` in a project, for code that cannot be migrated.

Every later run recognises them.
"""

from optim2optax.vendoring.migrating import Migrate, Vendoring, migrated_with_copies

__all__ = ["Migrate", "Vendoring", "migrated_with_copies"]
