"""The checkpoints at a path: one file, or the history that `flax.training.checkpoints` keeps in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from optim2optax.checkpoints import CheckpointError

NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>-?\d+(?:\.\d+)?)$")
"""A prefix, `checkpoint_` unless told otherwise, and the number of the step."""


def checkpoint_files(path: Path) -> list[Path]:
    """The file at a path, or the numbered files in a folder, in the order of their numbers.

    Raises:
      CheckpointError: if there is none.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise CheckpointError(f"{path} does not exist.")
    found = [(match, file) for file in path.iterdir() if file.is_file() and (match := NUMBERED.match(file.name))]
    if not found:
        raise CheckpointError(
            f"{path} has no numbered checkpoint, such as checkpoint_100, in it: give the file itself."
        )
    return [file for _, file in sorted(found, key=lambda one: (one[0]["prefix"], float(one[0]["number"]), one[1].name))]
