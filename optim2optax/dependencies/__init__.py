"""The dependencies of the new code, in files that declare dependencies: text in, text out."""

from optim2optax.dependencies.file_names import declares, mentions

__all__ = ["declares", "mentions"]
