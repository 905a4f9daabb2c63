"""Copies of `flax.optim` and `flax.nn` in a project, for code that cannot be migrated.

Every later run recognises them.
"""

from optim2optax.vendoring.migrating import Migrate, may_concern, migrated_with_copies

__all__ = ["Migrate", "may_concern", "migrated_with_copies"]
