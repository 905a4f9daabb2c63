"""What is in checkpoints, for people and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import Contents, FoundState, StoredLeaf, contents
from optim2optax.checkpoints.differing import LeafDifference
from optim2optax.checkpoints.files import read, size_of
from optim2optax.wording import counted, printable

MOST_OTHERS = 12
"""The number of leaves beside optimizers that the text names."""

UNITS = ("bytes", "kB", "MB", "GB", "TB")


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
    lines: list[str] = []
    for file in files:
        lines += map(printable, _lines(file))
    return "\n".join(lines) + "\n"


def _lines(file: Inspected) -> Iterator[str]:
    if file.error is not None:
        yield f"error: {file.error}"
        return
    yield f"{file.path} ({_amount(file.size)})"
    for found in file.contents.found:
        yield f"  {found.path or 'the whole file'}: {_described(found)}"
        # the types stand in one column
        width = max((len(leaf.path) for leaf in found.parameters), default=0)
        for leaf in found.parameters:
            yield f"    {leaf.path:{width}}  {_type(leaf)}"
    if not file.contents.found:
        yield "  no optimizer and no train state"
    if file.contents.others:
        yield f"  also: {_named(file.contents.others)}"


def _named(leaves: Sequence[StoredLeaf]) -> str:
    """The first leaves, and the number of the rest."""
    words: list[str] = []
    for leaf in leaves[:MOST_OTHERS]:
        place = leaf.path or "the whole file"
        words.append(f"{place} ({_type(leaf)})")
    if len(leaves) > MOST_OTHERS:
        words.append(f"and {len(leaves) - MOST_OTHERS} more")
    return ", ".join(words)


def _described(found: FoundState) -> str:
    """Such as `legacy Adam, step 100, 4 parameters of 1,234 numbers`."""
    words = [_kind(found)]
    words.append("step unknown" if found.step is None else f"step {found.step}")
    if found.copies is not None:
        words.append(f"{found.copies} copies")
    parameters = counted(len(found.parameters), "parameter")
    # a leaf without a shape is one number
    of_all = sum(math.prod(leaf.shape or ()) for leaf in found.parameters)
    numbers = counted(of_all, "number")
    words.append(f"{parameters} of {numbers}")
    return ", ".join(words)


def _kind(found: FoundState) -> str:
    if found.kind == "train state":
        return "a train state"
    if not found.names:  # an OptimizerDef of the program
        return "a legacy optimizer of its own kind"
    *most, last = found.names
    if not most:
        return f"legacy {last}"
    return f"legacy {', '.join(most)} or {last}"


def _type(leaf: StoredLeaf) -> str:
    if leaf.shape is None:
        return leaf.dtype
    return f"{leaf.shape} {leaf.dtype}"


def _amount(size: float) -> str:
    """Such as `12.3 MB`."""
    power = 0
    if size:
        power = min(int(math.log(size, 1000)), len(UNITS) - 1)
    if not power:
        return f"{size} {UNITS[0]}"
    return f"{size / 1000**power:.1f} {UNITS[power]}"


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
    lines: list[str] = []
    for one in found:
        place = one.path or "the whole file"
        lines.append(printable(f"{place} {one.what}"))
    if not lines:
        lines.append("nothing differs")
    return "\n".join(lines) + "\n"


def differences_as_json(found: Sequence[LeafDifference]) -> str:
    """What differs, as one JSON object."""
    objects = [asdict(one) for one in found]
    return json.dumps({"version": 1, "differences": objects}, indent=2) + "\n"
