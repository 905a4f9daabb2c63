"""The copy of `flax.optim`, of Flax 0.5.3."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.vendoring.packages import OPTIM
from optim2optax.legacy_wheel import OPTIM_RELEASE
from optim2optax.vendoring.content import Content, Exchanges

STRUCT = ("from .. import struct\n", "from flax import struct\n")
WARNS_ALWAYS = """
import warnings
# Makes sure the user sees the warning, as deprecation warnings are silent by default
warnings.filterwarnings("always", category=DeprecationWarning, module=__name__)
"""
SAYS_DEPRECATED = """\
    warnings.warn(
        'Use `optax` instead of `flax.optim`. Refer to the update guide '
        'https://flax.readthedocs.io/en/latest/howtos/optax_update_guide.html '
        'for detailed instructions.', DeprecationWarning)
"""
COMPUTE_GRADIENT_GOES = """\
    warnings.warn('compute_gradient() will be removed soon.'
                  ' Use jax.grad() or jax.value_and_grad()'
                  'instead.',
                  DeprecationWarning)
"""
OPTIMIZE_GOES = """\
    warnings.warn('optimize() will be removed soon.'
                  ' Use jax.grad() or jax.value_and_grad()'
                  'and apply_gradient() instead.',
                  DeprecationWarning)

"""
EXCHANGED: Mapping[str, Exchanges] = {
    "__init__.py": (
        (WARNS_ALWAYS, ""),
        # Releases before 0.5.3 had it in the package itself, and code written for them says so.
        (
            "from .base import",
            "from .dynamic_scale import DynamicScale\nfrom .base import",
        ),
    ),
    "base.py": (
        (
            "from typing import Any, List, Tuple, Optional\nimport warnings\n",
            "from typing import Any, List, Tuple, Optional\n",
        ),
        ("from .. import jax_utils\n", "from flax import jax_utils\n"),
        ("from .. import serialization\n", "from flax import serialization\n"),
        STRUCT,
        ("from .. import traverse_util\n", "from flax import traverse_util\n"),
        ("from ..core import", "from flax.core import"),
        ("jax.tree_flatten(", "jax.tree_util.tree_flatten("),
        ("jax.tree_unflatten(", "jax.tree_util.tree_unflatten("),
        (SAYS_DEPRECATED, ""),
        (COMPUTE_GRADIENT_GOES, ""),
        (OPTIMIZE_GOES, ""),
    ),
    "dynamic_scale.py": (STRUCT, ("jax.tree_leaves(", "jax.tree_util.tree_leaves(")),
    "weight_norm.py": (
        STRUCT,
        ("jax.tree_flatten(", "jax.tree_util.tree_flatten("),
        ("jax.tree_structure(", "jax.tree_util.tree_structure("),
    ),
}


OPTIM_CONTENT = Content(
    OPTIM,
    OPTIM_RELEASE,
    "flax/optim",
    "legacy_flax_optim",
    "imports, names that JAX removed, warnings",
    EXCHANGED,
    otherwise=(STRUCT,),
)
