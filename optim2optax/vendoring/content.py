"""The files of a vendored package: those of the published wheel, changed for today's JAX."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codemods.vendoring.packages import RemovedPackage
from optim2optax.legacy_wheel import Release

ORIGIN = "# Vendored by optim2optax from Flax "
LICENCE_ENDS = "# limitations under the License.\n"
HEAD = 2000
"""So many bytes from the beginning of a file hold its line of origin, behind the licence."""

Exchanges = tuple[tuple[str, str], ...]
"""Texts of a file, and those that replace them."""


@dataclass(frozen=True)
class Content:
    """What a copy of a package is made of.

    Attributes:
      package: what there is a copy of.
      release: the wheel that has it.
      folder: where it is in there.
      name: what the copy is called.
      changed: what is changed in it, in words.
      exchanged: the replacements in each file.
      otherwise: the replacements in all other files.
    """

    package: RemovedPackage
    release: Release
    folder: str
    name: str
    changed: str
    exchanged: Mapping[str, Exchanges]
    otherwise: Exchanges = ()

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
                files[name] = self._exchanged(name, text).encode()
        return files

    def origin_of(self, content: bytes) -> str:
        """The name of the file that a file was vendored from; empty if it was not."""
        lines = content[:HEAD].decode("utf-8", "replace").splitlines()
        line = next((line for line in lines if line.startswith(self.origin)), "")
        return line.removeprefix(self.origin).partition(";")[0]

    def _exchanged(self, name: str, text: str) -> str:
        line = f"#\n{self.origin}{name}; changed: {self.changed}.\n"
        origin = (LICENCE_ENDS, LICENCE_ENDS + line)
        for old, new in (origin, *self.exchanged.get(name, self.otherwise)):
            # the wheel is verified, so that this cannot fail
            assert old in text, f"{self.folder}/{name} lacks {old!r}"
            text = text.replace(old, new)
        return text


def is_vendored(content: bytes) -> bool:
    """Whether a file is one of a copy."""
    return ORIGIN.encode() in content[:HEAD]
