"""The real `flax.optim`, of the published Flax 0.5.3, beside today's Flax in one process.

This room knows today's JAX and Flax, and the wheel of the old one. It knows no other room.
"""

from optim2optax.legacy.namespaces import replaced
from optim2optax.legacy.old_flax import legacy_flax, legacy_optim
from optim2optax.legacy.user_modules import load_module

__all__ = ["legacy_flax", "legacy_optim", "load_module", "replaced"]
