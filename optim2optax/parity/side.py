"""One side of a command: the command as it is, in an environment in which each Python process records by itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from optim2optax.legacy_wheel import WHEEL_VARIABLE, find_wheel
from optim2optax.parity.interpreter import flags_for_old_xla

HOOK = Path(__file__).with_name("hook")
OURS = Path(__file__).resolve().parents[2]
VARIABLE = "OPTIM2OPTAX_SIDE"
SAFE_PATH = "PYTHONSAFEPATH"
OUR_SAFE_PATH = "optim2optax"
"""What the variable is set to for processes of our own. A command of the user's shall not inherit it."""

LAUNCHER = """\
#!/bin/sh
case ":$PYTHONPATH:" in
  *:{hook}:*) ;;
  *) PYTHONPATH={hook}${{PYTHONPATH:+:$PYTHONPATH}}; export PYTHONPATH ;;
esac
exec {python} "$@"
"""
"""Python as a script of the user's calls it, that may have set PYTHONPATH anew."""


@dataclass(frozen=True)
class Side:
    """Where a side runs: the trees of the user's that its copy stands for, and the folder that takes what it records.

    With `rounding`, what legacy optimizers make of parameters is off by a unit in the last place. `elsewhere` is an interpreter
    with an old Flax, if the command runs under one. With `inputs`, the gradients of small models are recorded as well; `replays`
    is the folder of such records, to be replayed on this side. If it is `wide`, the command computes in float64, and optimizers
    get parameters in it that they are given in float32; else it computes in its own precision.
    """

    legacy: bool
    originals: tuple[Path, ...]
    copy: Path
    scratch: Path
    rounding: bool = False
    elsewhere: Path | None = None
    inputs: bool = False
    replays: Path | None = None
    wide: bool = True

    @property
    def python(self) -> str:
        """The interpreter of the side."""
        return str(self.elsewhere or sys.executable)

    @property
    def name(self) -> str:
        return "old" if self.legacy else "new"

    @property
    def records(self) -> Path:
        return self.scratch / f"records-{self.copy.parent.name}"

    def command(self, words: Sequence[str]) -> list[str]:
        """The command with its paths in the copy, and Python in front of a script that is not executable itself."""
        first, *rest = [self.moved(word) for word in words]
        if re.fullmatch(r"python[0-9.]*", first):
            first = self.python
        if first.endswith(".py"):
            return [self.python, first, *rest]
        return [first, *rest]

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables for a command in a folder: those of this process with their paths in the copy, and the hook first."""
        found = {name: self.moved(value) for name, value in os.environ.items()}
        if found.get(SAFE_PATH) == OUR_SAFE_PATH:
            del found[SAFE_PATH]
        if self.elsewhere is not None:
            found["XLA_FLAGS"] = flags_for_old_xla()
        return found | {
            "PWD": str(folder),
            "PATH": _joined(
                str(self._launchers()), str(Path(self.python).parent), found.get("PATH", "")
            ),
            "PYTHONPATH": _joined(str(HOOK), found.get("PYTHONPATH", "")),
            WHEEL_VARIABLE: str(find_wheel()),
            VARIABLE: json.dumps(self._facts()),
        }

    def _facts(self) -> Mapping[str, object]:
        self.records.mkdir(exist_ok=True)
        return {
            "legacy": self.legacy,
            "rounding": self.rounding,
            "wide": self.wide,
            "inputs": self.inputs,
            "replays": self.replays and str(self.replays),
            "elsewhere": self.elsewhere is not None,
            "out": str(self.records),
            "copies": [(original, str(self.copy)) for original in self._spellings()],
            "kept": self._kept(),
            "scratch": str(self.scratch),
            "ours": str(OURS),
        }

    def moved(self, text: str) -> str:
        """A text with the paths in it that lead into the user's tree leading into the copy."""
        kept = self._kept()
        for original in self._spellings():
            pattern = re.compile(re.escape(original) + r"""(?=[/:;,='"\s]|$)""")
            text = pattern.sub(
                lambda found: (
                    found[0]
                    if found.string.startswith(tuple(kept), found.start())
                    else str(self.copy)
                ),
                text,
            )
        return text

    def _spellings(self) -> list[str]:
        """The user's trees as paths may name them, through a link or not."""
        paths = [
            spelled
            for tree in self.originals
            for spelled in (str(tree.absolute()), str(tree.resolve()))
        ]
        return sorted(set(paths), key=len, reverse=True)

    def _kept(self) -> list[str]:
        """What may be in the user's tree and is no code of the user's: Python's environments, and this very package."""
        environments = [
            path.parent for tree in self.originals for path in tree.glob("*/pyvenv.cfg")
        ]
        places = [
            *environments,
            *([self.elsewhere.parents[1]] if self.elsewhere else []),
            Path(sys.prefix),
            Path(sys.base_prefix),
            OURS / "optim2optax",
            OURS / "codemods",
            self.scratch,
        ]
        return sorted(
            {
                spelled
                for place in places
                for spelled in (str(place.absolute()), str(place.resolve()))
            }
        )

    def _launchers(self) -> Path:
        """A folder with the launchers of the side's Python, to be first on PATH."""
        folder = self.scratch / f"bin-{self.copy.parent.name}"
        folder.mkdir(exist_ok=True)
        names = {
            "python",
            "python3",
            f"python3.{sys.version_info.minor}",
            Path(self.python).resolve().name,
        }
        for name in names:
            launcher = folder / name
            launcher.write_text(
                LAUNCHER.format(hook=shlex.quote(str(HOOK)), python=shlex.quote(self.python))
            )
            launcher.chmod(0o755)
        return folder


def _joined(*places: str) -> str:
    return os.pathsep.join(place for place in places if place)
