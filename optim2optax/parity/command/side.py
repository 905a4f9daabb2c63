"""One side of a command.

The command runs as it is, in an environment in which each Python process records by itself.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from optim2optax.legacy_wheel import WHEEL_VARIABLE, find_wheel
from optim2optax.parity.running.devices import flags_for_old_xla
from optim2optax.workers import OUR_SAFE_PATH, SAFE_PATH

HOOK = Path(__file__).parents[1] / "instrumentation" / "hook"
OURS = Path(__file__).resolve().parents[3]
VARIABLE = "OPTIM2OPTAX_SIDE"
LAUNCHER = """\
#!/bin/sh
case ":$PYTHONPATH:" in
  *:{hook}:*) ;;
  *) PYTHONPATH={hook}${{PYTHONPATH:+:$PYTHONPATH}}; export PYTHONPATH ;;
esac
exec {python} "$@"
"""
"""Python for a script of the user's, which may have changed PYTHONPATH."""


Role: TypeAlias = Literal["before", "again", "after"]
"""The old side, the old side once more with other rounding, and the new side."""


@dataclass(frozen=True)
class Side:
    """Where and how a side runs.

    `originals` are the user's trees, the new one first, in whose place the side has its `copy`;
    that and its records are below `scratch`. `legacy_python` is an interpreter with an old Flax,
    if old sides run under one. If it is `wide`, the command computes in float64, and optimizers
    get parameters in it that they are given in float32; else it computes in its own precision.
    """

    role: Role
    originals: tuple[Path, ...]
    scratch: Path
    legacy_python: Path | None
    wide: bool

    @property
    def legacy(self) -> bool:
        return self.role != "after"

    @property
    def name(self) -> str:
        return "old" if self.legacy else "new"

    @property
    def elsewhere(self) -> Path | None:
        """The interpreter with an old Flax, if this side runs under one."""
        return self.legacy_python if self.legacy else None

    @property
    def python(self) -> str:
        """The interpreter of the side."""
        return str(self.elsewhere or sys.executable)

    @property
    def copy(self) -> Path:
        return self._folder(self.role) / self.originals[0].name

    @property
    def records(self) -> Path:
        return self._folder(f"records-{self.role}")

    def _folder(self, name: str) -> Path:
        return self.scratch / (name if self.wide else f"{name}-in-float32")

    def command(self, words: Sequence[str]) -> list[str]:
        """The command with its paths in the copy, and with Python in front of a script."""
        first, *rest = [self.moved(word) for word in words]
        # `python3.8 train.py`, under whatever interpreter the side has
        if re.fullmatch(r"python[0-9.]*", first):
            first = self.python
        # `train.py` alone is a script, too.
        if first.endswith(".py"):
            return [self.python, first, *rest]
        return [first, *rest]

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables for a command in a folder.

        They are those of this process, with their paths in the copy, and with the hook first.
        """
        found = {name: self.moved(value) for name, value in os.environ.items()}
        if found.get(SAFE_PATH) == OUR_SAFE_PATH:
            del found[SAFE_PATH]
        if self.elsewhere is not None:
            found["XLA_FLAGS"] = flags_for_old_xla()
        launchers = str(self._launchers())
        beside = str(Path(self.python).parent)
        return found | {
            "PWD": str(folder),
            "PATH": _joined(launchers, beside, found.get("PATH", "")),
            "PYTHONPATH": _joined(str(HOOK), found.get("PYTHONPATH", "")),
            WHEEL_VARIABLE: str(find_wheel()),
            VARIABLE: json.dumps(self._facts()),
        }

    def _facts(self) -> Mapping[str, object]:
        """The facts that the hook reads from its variable."""
        self.records.mkdir(exist_ok=True)
        return {
            "legacy": self.legacy,
            # Parameters that legacy optimizers return are off by a unit in the last place.
            "rounding": self.role == "again",
            "wide": self.wide,
            # The new side replays the gradients of small models that the old one has recorded.
            "inputs": self.role == "before",
            "replays": None if self.legacy else str(self._folder("records-before")),
            "elsewhere": self.elsewhere is not None,
            "out": str(self.records),
            "copies": [(original, str(self.copy)) for original in self._spellings()],
            "kept": self._kept(),
            "scratch": str(self.scratch),
            "ours": str(OURS),
        }

    def moved(self, text: str) -> str:
        """A text with its paths into the user's tree changed into paths of the copy."""
        kept = tuple(self._kept())

        def place(found: re.Match[str]) -> str:
            is_kept = found.string.startswith(kept, found.start())
            return found[0] if is_kept else str(self.copy)

        for original in self._spellings():
            # `/home/me/project` in `--data=/home/me/project/data`, but not in `/home/me/project-2`
            pattern = re.compile(re.escape(original) + r"""(?=[/:;,='"\s]|$)""")
            text = pattern.sub(place, text)
        return text

    def _spellings(self) -> list[str]:
        """The user's trees as paths may name them, through a link or not, the longest first."""
        # One of them may be inside another.
        return sorted(_spelled(self.originals), key=len, reverse=True)

    def _kept(self) -> list[str]:
        """Places without code of the user's: environments, this package, and `scratch`."""
        places: list[Path] = []
        for tree in self.originals:
            places += [path.parent for path in tree.glob("*/pyvenv.cfg")]
        if self.elsewhere is not None:
            places.append(self.elsewhere.parents[1])
        places += [Path(sys.prefix), Path(sys.base_prefix)]
        places += [OURS / "optim2optax", OURS / "codemods", self.scratch]
        return sorted(_spelled(places))

    def _launchers(self) -> Path:
        """A folder with the launchers of the side's Python, to be first on PATH."""
        folder = self._folder(f"bin-{self.role}")
        folder.mkdir(exist_ok=True)
        names = {
            "python",
            "python3",
            f"python3.{sys.version_info.minor}",
            Path(self.python).resolve().name,
        }
        hook = shlex.quote(str(HOOK))
        python = shlex.quote(self.python)
        for name in names:
            launcher = folder / name
            launcher.write_text(LAUNCHER.format(hook=hook, python=python))
            # A shell script of the user's calls `python train.py`.
            launcher.chmod(0o755)
        return folder


def _spelled(places: Iterable[Path]) -> set[str]:
    """The absolute paths of places, with links as they are and with links resolved."""
    found: set[str] = set()
    for place in places:
        found |= {str(place.absolute()), str(place.resolve())}
    return found


def _joined(*places: str) -> str:
    """A value for PATH or PYTHONPATH; empty places are left out."""
    return os.pathsep.join(place for place in places if place)
