"""Import each module of a project in a process of its own. This runs the module's code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.model import Progress
from optim2optax.project import Found

SECONDS = 120.0
IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"


@dataclass(frozen=True)
class ImportFailure:
    """A module that cannot be imported: its file, its name, and the last line of the traceback."""

    path: str
    module: str
    error: str


def import_each(
    found: Sequence[Found], progress: Progress | None
) -> ImportFailure | None:
    """The first module that cannot be imported, in the order of the files; None if all can.

    Args:
      found: the files; notebooks, and files whose name is not that of a module, are passed over.
      progress: is called for each.
    """
    for done, file in enumerate(found, 1):
        root, module = _module(Path(file.location))
        if module is not None:
            error = _import(root, module)
            if error:
                return ImportFailure(file.path, module, error)
        if progress is not None:
            progress("Importing", done, len(found))
    return None


def _module(path: Path) -> tuple[Path, str | None]:
    """The folder from which a file is imported, and the name of its module."""
    # src/kit/train.py is imported as `kit.train` from src, if kit is a package
    steps = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        steps.insert(0, folder.name)
        folder = folder.parent
    if steps[-1] == "__init__":
        steps.pop()
    if path.suffix != ".py" or not steps:
        return folder, None
    # scripts such as `train-mnist.py` cannot be imported, and `__main__.py` would run
    if not all(step.isidentifier() for step in steps) or steps[-1] == "__main__":
        return folder, None
    return folder, ".".join(steps)


def _import(root: Path, module: str) -> str:
    """The error of an import; empty if there is none."""
    paths = str(root)
    before = os.environ.get("PYTHONPATH")
    if before:
        paths = os.pathsep.join([paths, before])
    try:
        done = subprocess.run(
            [sys.executable, "-c", IMPORT, module],
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths},
            # a module that asks for input must not wait
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS:.0f} s"
    if not done.returncode:
        return ""
    # AttributeError: module 'jax' has no attribute 'tree_map'
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"
