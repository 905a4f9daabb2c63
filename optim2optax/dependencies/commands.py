"""What the commands in a file install: in CI, Makefiles, scripts, tox, nox and a README.

None is edited, and none need install everything.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from optim2optax.dependencies.declared import Declarations
from optim2optax.dependencies.not_edited import requirements
from optim2optax.dependencies.shell import installs

LISTS = ("tox.ini", "noxfile.py")
"""Files that name packages without a command."""


def read(text: str, path: str) -> Declarations:
    """The requirements in the commands of a file."""
    if PurePosixPath(path).name in LISTS:
        found = [*requirements(text)]
    else:
        sections = installs(text, 0, len(text))
        found = [one for section in sections for one in section.declared]
    return Declarations(told=tuple(found), is_whole=False)
