"""A copy of `flax.optim` within a project: where it is, and which imports are pointed at it."""
