"""The files of a vendored package: those of the published wheel, changed for today's JAX."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from codemods.vendoring.packages import NN, OPTIM, RemovedPackage
from optim2optax.legacy_wheel import NN_RELEASE, OPTIM_RELEASE, Release

ORIGIN = "# Vendored by optim2optax from Flax "
CHANGED = "imports, what JAX removed or refuses today, warnings"
LICENCE_ENDS = "# limitations under the License.\n"
HEAD = 2000
"""So many bytes from the beginning of a file hold its line of origin, behind the licence."""

CHANGES = (
    (r"^from \.\.", "from flax."),
    (r"^from flax\. import", "from flax import"),
    (r"^from flax\.deprecated\.nn\.", "from ."),
    (r"\bjax\.tree_(?!util)", "jax.tree_util.tree_"),
    # warnings that the package is deprecated
    (r"^import warnings\n(?:# Makes sure.*\nwarnings\.filter.*\n)?", ""),
    (r"^ *warnings\.warn\((?s:.*?)DeprecationWarning\)\n", ""),
    # Releases before 0.5.3 had it in the package itself, and code written for them says so.
    (
        r"^(?=from \.base import OptimizerState)",
        "from .dynamic_scale import DynamicScale\n",
    ),
    # JAX 0.3.7 called it so, and a later one removed the old name
    (r"from jax\.nn import normalize$", "from jax.nn import standardize as normalize"),
    # its result was always the second argument, once JAX staged all operations
    (r"\b(?:jax\.)?lax\.tie_in\(\w+, (.*)\)$", r"\1"),
    # a negative number was taken modulo 2**32, and raises an error today
    (r"fold_in\(rng, hash_int\)", "fold_in(rng, hash_int % 2**32)"),
    # within `jit` it refuses the key of the caller today; this one evaluates what it can
    (r"jax\.core\.eval_context\(\)", "jax.ensure_compile_time_eval()"),
)
"""What is changed in the files: patterns, and what replaces them."""


@dataclass(frozen=True)
class Content:
    """What a copy of a package is made of.

    Attributes:
      package: what there is a copy of.
      release: the wheel that has it.
      folder: where it is in there.
      name: what the copy is called.
    """

    package: RemovedPackage
    release: Release
    folder: str
    name: str

    @property
    def origin(self) -> str:
        """How the line of origin of a file begins, up to the file's name."""
        version = self.release.requirement.removeprefix("flax==")
        return f"{ORIGIN}{version}, {self.folder}/"

    def files(self, wheel: Path) -> dict[str, bytes]:
        """The files of the package by name, made from the wheel."""
        files: dict[str, bytes] = {}
        with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
            for name in self.package.modules:
                text = archive.read(f"{self.folder}/{name}").decode()
                line = f"#\n{self.origin}{name}; changed: {CHANGED}.\n"
                text = text.replace(LICENCE_ENDS, LICENCE_ENDS + line)
                for pattern, new in CHANGES:
                    text = re.sub(pattern, new, text, flags=re.MULTILINE)
                files[name] = f"{text.rstrip()}\n".encode()
        return files

    def origin_of(self, content: bytes) -> str:
        """The name of the file that a file was vendored from; empty if it was not."""
        lines = content[:HEAD].decode("utf-8", "replace").splitlines()
        line = next((line for line in lines if line.startswith(self.origin)), "")
        return line.removeprefix(self.origin).partition(";")[0]


OPTIM_CONTENT = Content(OPTIM, OPTIM_RELEASE, "flax/optim", "legacy_flax_optim")
NN_CONTENT = Content(NN, NN_RELEASE, "flax/deprecated/nn", "legacy_flax_nn")
"""Flax 0.3.6 has `flax.nn` as `flax.deprecated.nn`."""


def is_vendored(content: bytes) -> bool:
    """Whether a file is one of a copy."""
    return ORIGIN.encode() in content[:HEAD]
