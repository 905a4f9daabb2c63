"""What a command leaves behind, as numbers and texts: files and lines of standard output."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from flax import serialization
from numpy.typing import NDArray

from optim2optax.parity.judging.movement import leaves_by_path

NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])|[-+]?(?:nan|inf)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers, and the unit of the last digit that is printed, if they are."""

    values: NDArray[Any]
    printed: float = 0.0


Left: TypeAlias = Numbers | str
LeftBehind: TypeAlias = Mapping[str, Left]
"""Numbers and texts by their places, such as `metrics.json: loss/3`."""


def left_behind(
    folder: Path,
    output: str,
    since: int,
    files: Sequence[str] = (),
    lines: Sequence[str] = (),
) -> LeftBehind:
    """What a run left behind: files by patterns, and lines of its output by regular expressions.

    Files in its folder that are older than `since`, in nanoseconds, are not its own.

    Raises:
        LookupError: if a pattern has no file, or an expression no line; the message says which.
    """
    found: dict[str, Left] = {}
    for pattern in files:
        found.update(_of_files(pattern, folder, since))
    for expression in lines:
        found.update(_of_lines(expression, output))
    return found


def _of_files(pattern: str, folder: Path, since: int) -> Iterator[tuple[str, Left]]:
    """What is in the files that fit a pattern."""
    files = (path for path in folder.glob(pattern) if path.is_file())
    # Others were in the tree before, or are from the run of somebody else.
    paths = sorted(path for path in files if path.stat().st_mtime_ns >= since)
    if not paths:
        raise LookupError(f"writes no file {pattern}")
    for path in paths:
        name = path.relative_to(folder).as_posix()
        for place, value in _contents(path):
            yield f"{name}: {place}" if place else name, value


def _of_lines(expression: str, output: str) -> Iterator[tuple[str, Left]]:
    """What is in the lines of an output that fit a regular expression."""
    lines = [line for line in output.splitlines() if re.search(expression, line)]
    if not lines:
        raise LookupError(f"prints no line with {expression}")
    for number, line in enumerate(lines, 1):
        for place, value in _of_line(line):
            yield f"line {number} with {expression}{place}", value


def _contents(path: Path) -> Iterator[tuple[str, Left]]:
    """The numbers and texts of a file by their places in it.

    A file of no known kind is read as text.
    """
    match path.suffix:
        case ".npy":
            yield from _leaves(np.load(path, allow_pickle=False))
        case ".npz":
            yield from _leaves(dict(np.load(path, allow_pickle=False)))
        case ".json":
            yield from _leaves(json.loads(path.read_bytes()))
        case ".msgpack":
            yield from _leaves(serialization.msgpack_restore(path.read_bytes()))
        case _:
            yield from _of_text(path)


def _of_text(path: Path) -> Iterator[tuple[str, Left]]:
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    for number, line in enumerate(text.splitlines(), 1):
        for place, value in _of_line(line):
            yield f"line {number}{place}", value


def _leaves(tree: Any) -> Iterator[tuple[str, Left]]:
    """The leaves of nested mappings and lists, by their paths."""
    for path, values in leaves_by_path(tree).items():
        yield path, _leaf(values)


def _leaf(values: NDArray[Any]) -> Left:
    kind = values.dtype.kind
    # To NumPy, types such as bfloat16 are of kind "V".
    if kind in "iufV":
        return Numbers(values)
    # True and "True" are not the same text: bTrue, U'True'.
    return f"{kind}{values.tolist()!r}"


def _of_line(line: str) -> Iterator[tuple[str, Left]]:
    """The numbers in a line, and the text around them."""
    # epoch 3: loss 0.1342 becomes `epoch …: loss …`, 3 and 0.1342.
    yield "", NUMBER.sub("…", line)
    for count, match in enumerate(NUMBER.finditer(line), 1):
        yield f", number {count}", _number(match[0])


def _number(text: str) -> Numbers:
    """A number as it is printed, with the unit of its last digit unless it is whole."""
    value = float(text)
    digits, _, exponent = text.strip().lower().partition("e")
    decimals = len(digits.partition(".")[2])
    is_whole = not decimals and not exponent
    if is_whole or not math.isfinite(value):
        return Numbers(np.array(value))
    # 1.25e-3 has a unit of 1e-5.
    power = int(exponent or 0) - decimals
    return Numbers(np.array(value), printed=10.0**power)
