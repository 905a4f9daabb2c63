"""The files of a vendored package: `flax/optim` of the published wheel, changed for today's JAX."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

PACKAGE_NAME = "legacy_flax_optim"
MODULES = (
    "__init__.py",
    "adabelief.py",
    "adadelta.py",
    "adafactor.py",
    "adagrad.py",
    "adam.py",
    "base.py",
    "dynamic_scale.py",
    "lamb.py",
    "lars.py",
    "momentum.py",
    "rmsprop.py",
    "sgd.py",
    "weight_norm.py",
)
ORIGIN = "# Vendored by optim2optax from Flax 0.5.3, flax/optim/"
CHANGED = "imports, names that JAX removed, warnings"
LICENCE_ENDS = "# limitations under the License.\n"

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
EXCHANGED: Mapping[str, tuple[tuple[str, str], ...]] = {
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
"""The replacements in each file, old and new; in other files, only the import of `struct`."""


def package_files(wheel: Path) -> dict[str, bytes]:
    """The files of the package by name, made from the wheel of Flax 0.5.3."""
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
        for name in MODULES:
            text = archive.read(f"flax/optim/{name}").decode()
            files[name] = _changed(name, text).encode()
    return files


def origin_of(content: bytes) -> str:
    """The name of the file of `flax/optim` that a file was vendored from; empty if it was not."""
    # the line of origin stands behind the licence
    head = content[:2000].decode("utf-8", "replace")
    line = next((line for line in head.splitlines() if line.startswith(ORIGIN)), "")
    return line.removeprefix(ORIGIN).partition(";")[0]


def _changed(name: str, text: str) -> str:
    # the line of origin stands below the licence
    origin = (LICENCE_ENDS, LICENCE_ENDS + _origin(name))
    for old, new in (origin, *EXCHANGED.get(name, (STRUCT,))):
        # the wheel is verified, so that this cannot fail
        assert old in text, f"flax/optim/{name} lacks {old!r}"
        text = text.replace(old, new)
    return text


def _origin(name: str) -> str:
    return f"#\n{ORIGIN}{name}; changed: {CHANGED}.\n"
