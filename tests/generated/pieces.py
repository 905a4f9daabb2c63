"""Small pieces of Python, of which programs are put together: carriers, which hand an object on, and decoys.

A carrier reads `$x` and binds `$y`, which then is the object that `$x` is; `$n` is a number of its own, for the names that it
makes. A decoy has what a legacy optimizer has, and is something else; what is done with it is put into `notes`. In the files a
piece begins with `== ` and its name. What stands ahead of a line `---` belongs into a module, what stands behind it into a
function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
IMPORT = re.compile(r"(?:import|from) .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """Code for three places.

    Attributes:
        imports: lines for the head of a module.
        module: what else belongs at a module's level.
        body: statements for a function.
    """

    imports: tuple[str, ...]
    module: str
    body: str

    def __call__(self, **names: object) -> Piece:
        """The piece with names and numbers in it."""
        return Piece(
            self.imports, _filled(self.module, names), _filled(self.body, names)
        )


def _filled(text: str, names: Mapping[str, object]) -> str:
    return Template(text).substitute(names)


def _piece(text: str) -> Piece:
    above, _, body = text.rpartition("---\n")
    imports = tuple(
        line for line in above.splitlines(keepends=True) if IMPORT.match(line)
    )
    rest = "".join(
        line for line in above.splitlines(keepends=True) if not IMPORT.match(line)
    )
    return Piece(imports, rest.strip("\n"), body.strip("\n"))


def pieces(path: Path) -> dict[str, Piece]:
    """The pieces in a file, by their names."""
    _, *parts = re.split(r"^== (.+)\n", path.read_text(), flags=re.MULTILINE)
    return {
        name: _piece(text) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


CARRIERS: Mapping[str, Mapping[str, Piece]] = {
    path.stem: pieces(path) for path in sorted((HERE / "carriers").glob("*.txt"))
}
"""By family, then by name."""

DECOYS: Mapping[str, Piece] = pieces(HERE / "decoys.txt")
