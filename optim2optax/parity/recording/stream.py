"""The files in which processes record their steps.

They are written as the steps come, so that nothing is lost if a process ends at once.

A record is the length of its header in eight bytes, the header as JSON, and the arrays that it
names.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import ml_dtypes  # noqa: F401 - lets NumPy know bfloat16 and its like by name
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.recording.sketch import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Arrays = Mapping[str, Mapping[Part, NDArray[Any]]]


LENGTH = 8
"""The bytes in which a record says how long its header is."""

SUFFIX = ".steps"
INPUTS = ".inputs"
"""The suffix of files with the inputs of steps."""


class Writer:
    """Writes records to a file of this process in a folder.

    A process that was forked off gets a file of its own. `written` is how many bytes there are.
    """

    def __init__(self, folder: Path, suffix: str = SUFFIX) -> None:
        self.folder = folder
        self.suffix = suffix
        self.written = 0
        self._process = -1
        self._file = -1
        self._lock = threading.Lock()

    def write(self, facts: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Add a record of facts and of arrays in groups."""
        named: list[list[Any]] = []
        data: list[bytes] = []
        for group, parts in (arrays or {}).items():
            for part, values in parts.items():
                named.append([group, *part, values.dtype.name, values.shape])
                data.append(values.tobytes())
        header = json.dumps({"facts": facts, "arrays": named}).encode()
        length = len(header).to_bytes(LENGTH, "big")
        record = b"".join([length, header, *data])
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                # Files are read in the order in which their processes began to write.
                name = f"{time.time_ns():020}-{self._process}{self.suffix}"
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._file = os.open(self.folder / name, flags, 0o600)
            _write_all(self._file, record)
            self.written += len(record)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        # The system may write only a part.
        written = os.write(file, rest)
        rest = rest[written:]


def read(
    path: Path,
) -> Iterator[tuple[dict[str, Any], dict[str, dict[Part, NDArray[Any]]]]]:
    """The records of a file, without one that its process did not finish, because it was killed."""
    with path.open("rb") as file, suppress(EOFError):
        while file.peek(1):
            size = int.from_bytes(_exactly(LENGTH, file), "big")
            content = json.loads(_exactly(size, file))
            arrays: dict[str, dict[Part, NDArray[Any]]] = {}
            # `shape` is that of the leaf, `own` that of its part.
            for group, leaf, name, shape, dtype, own in content["arrays"]:
                kind = np.dtype(dtype)
                data = _exactly(kind.itemsize * math.prod(own), file)
                part = Part(leaf, name, tuple(shape))
                values = np.frombuffer(data, kind).reshape(own)
                arrays.setdefault(group, {})[part] = values
            yield content["facts"], arrays


def _exactly(size: int, file: BinaryIO) -> bytes:
    """So many bytes of a file. Raises EOFError if it ends before."""
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
