"""What keeps a project from running on the JAX of today."""

from optim2optax.doctor.dependents import dependents
from optim2optax.doctor.module_imports import ImportFailure, import_each
from optim2optax.doctor.obstacles import Obstacle, obstacles, pinned

__all__ = [
    "ImportFailure",
    "Obstacle",
    "dependents",
    "import_each",
    "obstacles",
    "pinned",
]
