"""What a command leaves behind, as numbers and texts: files and lines of standard output."""

from __future__ import annotations

import csv
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

NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])|[-+]?(?:nan|inf)\b", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers, and the unit of the last digit that is printed, if they are."""

    values: NDArray[Any]
    printed: float = 0.0


Left: TypeAlias = Mapping[str, "Numbers | str"]
"""Numbers and texts by their places, such as `metrics.json: loss/3`."""


@dataclass(frozen=True)
class Wanted:
    """What to compare.

    These are files, by the patterns of their paths, and lines of standard output, by regular
    expressions.
    """

    files: Sequence[str] = ()
    lines: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.lines)


def left_behind(folder: Path, output: str, since: int, wanted: Wanted) -> Left:
    """What a run left behind.

    Args:
        folder: where the command ran.
        output: what it wrote to standard output.
        since: when it began, in nanoseconds; files that are older are not its own.
        wanted: what to look for.

    Raises:
        LookupError: if a pattern has no file, or an expression no line; the message says which.
    """
    found: dict[str, Numbers | str] = {}
    for pattern in wanted.files:
        files = (path for path in folder.glob(pattern) if path.is_file())
        paths = sorted(path for path in files if path.stat().st_mtime_ns >= since)
        if not paths:
            raise LookupError(f"writes no file {pattern}")
        for path in paths:
            name = path.relative_to(folder).as_posix()
            for place, value in _contents(path):
                found[f"{name}: {place}" if place else name] = value
    for expression in wanted.lines:
        lines = [line for line in output.splitlines() if re.search(expression, line)]
        if not lines:
            raise LookupError(f"prints no line with {expression}")
        for number, line in enumerate(lines, 1):
            for place, value in _of_line(line):
                found[f"line {number} with {expression}{place}"] = value
    return found


def _contents(path: Path) -> Iterator[tuple[str, Numbers | str]]:
    """The numbers and texts of a file by their places in it.

    A file of no known kind is read as text.
    """
    if path.suffix in (".npz", ".npy"):
        loaded = np.load(path, allow_pickle=False)
        yield from _leaves(dict(loaded) if path.suffix == ".npz" else loaded)
    elif path.suffix == ".json":
        yield from _leaves(json.loads(path.read_bytes()))
    elif path.suffix == ".jsonl":
        yield from _leaves([json.loads(line) for line in path.read_bytes().splitlines() if line])
    elif path.suffix in (".csv", ".tsv"):
        yield from _of_table(path)
    elif path.suffix == ".msgpack":
        yield from _leaves(serialization.msgpack_restore(path.read_bytes()))
    else:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
        for number, line in enumerate(text.splitlines(), 1):
            for place, value in _of_line(line):
                yield f"line {number}{place}", value


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Numbers | str]]:
    """The leaves of nested mappings and lists, by their paths."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(value, (*path, str(number)))
    else:
        values = np.asarray(tree)
        kind = values.dtype.kind
        # To NumPy, types such as bfloat16 are of kind "V".
        is_number = kind in "iufV"
        yield "/".join(path), Numbers(values) if is_number else f"{kind}{values.tolist()!r}"


def _of_table(path: Path) -> Iterator[tuple[str, Numbers | str]]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    for number, row in enumerate(rows, 1):
        for column, cell in enumerate(row, 1):
            yield f"row {number}, column {column}", _cell(cell)


def _cell(text: str) -> Numbers | str:
    return _number(text) if NUMBER.fullmatch(text.strip()) else text


def _of_line(line: str) -> Iterator[tuple[str, Numbers | str]]:
    """The numbers in a line, and the text around them."""
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
    return Numbers(np.array(value), 10.0 ** (int(exponent or 0) - decimals))
