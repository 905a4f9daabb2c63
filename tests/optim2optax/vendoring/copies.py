"""A copy of a removed package, laid out and imported."""

import importlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def imported(files: Mapping[str, bytes], folder: Path, name: str) -> Iterator[Any]:
    """The package that some files are, as a module; no warning may come of its import or use."""
    (folder / name).mkdir()
    for file, content in files.items():
        (folder / name / file).write_bytes(content)
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for module in [one for one in sys.modules if one.startswith(name)]:
            del sys.modules[module]
