"""Parameters that are off by a unit in the last place, as if their step had rounded otherwise.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def rounded(optimizer: Any) -> Any:
    """A legacy optimizer with its parameters as `rounded_leaves` makes them."""
    return optimizer.replace(target=rounded_leaves(optimizer.target))


def rounded_leaves(params: Any) -> Any:
    """Parameters that are each off by a unit in the last place.

    Those of less than 32 bits stay: to them such a unit is more than rounding.
    """
    return jax.tree_util.tree_map(_rounded, params)


def _rounded(leaf: Any) -> Any:
    if jnp.result_type(leaf) not in (np.float64, np.float32):
        return leaf
    fixed = jax.lax.stop_gradient(leaf)
    return leaf + (jnp.nextafter(fixed, jnp.inf) - fixed)
