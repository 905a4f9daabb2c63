"""The copy of `flax.nn`, of Flax 0.3.6, which has it as `flax.deprecated.nn`."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.vendoring.packages import NN
from optim2optax.legacy_wheel import NN_RELEASE
from optim2optax.vendoring.content import Content, Exchanges

TREE_MAP = ("jax.tree_map(", "jax.tree_util.tree_map(")
"""JAX 0.6.0 removed it."""

WARNS_ALWAYS = """\
import warnings
# Makes sure the user sees the warning, as deprecation warnings are silent by default
warnings.filterwarnings("default", category=DeprecationWarning, module=__name__)
"""
SAYS_DEPRECATED = (
    '    warnings.warn("The `flax.nn` module is Deprecated, use `flax.linen` instead. Learn more '
    "and find an upgrade guide at "
    'https://github.com/google/flax/blob/main/flax/linen/README.md", DeprecationWarning)\n'
)
CREATE_GOES = """\
    warnings.warn("`create()` will be removed soon."
                  " Use `init()` to initialize parameters and then explicitly"
                  " create a `nn.Model` given the module and initialized"
                  " parameters.",
                  DeprecationWarning)
"""
CREATE_BY_SHAPE_GOES = """\
    warnings.warn("`create_by_shape()` will be removed soon."
                  " Use `init_by_shape()` to initialize parameters and then"
                  " explicitly create a `nn.Model` given the module and "
                  " initialized parameters.",
                  DeprecationWarning)

"""
EXCHANGED: Mapping[str, Exchanges] = {
    "__init__.py": ((WARNS_ALWAYS, ""),),
    "activation.py": (
        # JAX 0.3.7 called it so, and a later one removed the old name
        (
            "from jax.nn import normalize\n",
            "from jax.nn import standardize as normalize\n",
        ),
    ),
    "attention.py": (
        ("from flax.deprecated.nn.", "from ."),
        TREE_MAP,
        # its result was always the second argument, once JAX staged all operations
        ("jax.lax.tie_in(attn_weights, 1.0 - dropout_rate)", "1.0 - dropout_rate"),
        (
            "lax.tie_in(key, jnp.arange(n, dtype=jnp.int32))",
            "jnp.arange(n, dtype=jnp.int32)",
        ),
        (
            "lax.tie_in(key, jnp.arange(m, dtype=jnp.int32))",
            "jnp.arange(m, dtype=jnp.int32)",
        ),
    ),
    "base.py": (
        TREE_MAP,
        # a negative number was taken modulo 2**32, and raises an error today
        (
            "random.fold_in(rng, hash_int)",
            "random.fold_in(rng, hash_int % 2**32)",
        ),
        # within `jit` it refuses the key of the caller today; this one evaluates what it can
        ("jax.core.eval_context()", "jax.ensure_compile_time_eval()"),
        ("from typing import Any\nimport warnings\n", "from typing import Any\n"),
        (SAYS_DEPRECATED, ""),
        (CREATE_GOES, ""),
        (CREATE_BY_SHAPE_GOES, ""),
    ),
    "utils.py": (("jax.tree_leaves(", "jax.tree_util.tree_leaves("),),
}
NN_CONTENT = Content(
    NN,
    NN_RELEASE,
    "flax/deprecated/nn",
    "legacy_flax_nn",
    "imports, what JAX removed or refuses today, warnings",
    EXCHANGED,
)
