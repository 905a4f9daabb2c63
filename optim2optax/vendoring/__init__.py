"""Copies of `flax.optim` within a project: for what cannot be migrated, and recognised again by every later run."""

from optim2optax.vendoring.migrating import Migrate, Vendoring, migrated_with_copies

__all__ = ["Migrate", "Vendoring", "migrated_with_copies"]
