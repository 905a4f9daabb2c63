"""What is in checkpoints, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import Contents, contents
from optim2optax.checkpoints.differing import LeafDifference
from optim2optax.checkpoints.files import read, size_of
from optim2optax.templates import rendered
from optim2optax.wording import printable


class Inspected(NamedTuple):
    """A checkpoint, its size in bytes, and its contents, or the error of reading them."""

    path: Path | str
    size: int
    contents: Contents = Contents()
    error: str | None = None


def inspect(path: Path) -> Inspected:
    """Look into one checkpoint."""
    size = size_of(path)
    try:
        return Inspected(path, size, contents(read(path)))
    except CheckpointError as error:
        return Inspected(path, size, error=str(error))


def as_text(files: Sequence[Inspected]) -> str:
    """What is in some files, in lines."""
    return rendered(Path(__file__).with_name("listing.txt.j2"), files=files)


def as_json(files: Sequence[Inspected]) -> str:
    """What is in some files, as one JSON object."""
    objects = [_object(file) for file in files]
    return json.dumps({"version": 1, "files": objects}, indent=2) + "\n"


def _object(file: Inspected) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "size": file.size,
        "error": file.error,
        "optimizers": [asdict(found) for found in file.contents.found],
        "others": [asdict(leaf) for leaf in file.contents.others],
    }


def differences_as_text(found: Sequence[LeafDifference]) -> str:
    """What differs, in lines."""
    lines = [printable(f"{one.path or 'the whole file'} {one.what}") for one in found]
    return "\n".join(lines or ["nothing differs"]) + "\n"


def differences_as_json(found: Sequence[LeafDifference]) -> str:
    """What differs, as one JSON object."""
    objects = [asdict(one) for one in found]
    return json.dumps({"version": 1, "differences": objects}, indent=2) + "\n"
