"""Import each module of a project in a process of its own. This runs what stands at the top of each."""

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
    """A module that cannot be imported: its file, its name, and the last line of what Python said."""

    path: str
    module: str
    error: str


def import_each(
    found: Sequence[Found], progress: Progress | None = None, python: str = sys.executable
) -> ImportFailure | None:
    """The first module that cannot be imported, in the order of the files; None if all can.

    Args:
      found: the files; notebooks, and files whose name is no module's, are passed over.
      progress: is told of each.
      python: the interpreter.
    """
    for done, file in enumerate(found, 1):
        root, module = _module(Path(file.location))
        if module is not None:
            error = _import(root, module, python)
            if error:
                return ImportFailure(file.path, module, error)
        if progress is not None:
            progress("Importing", done, len(found))
    return None


def _module(path: Path) -> tuple[Path, str | None]:
    """The folder from which a file is imported, and the name of its module."""
    steps = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        steps.insert(0, folder.name)
        folder = folder.parent
    if steps[-1] == "__init__":
        steps.pop()
    is_module = (
        path.suffix == ".py"
        and bool(steps)
        and all(step.isidentifier() for step in steps)
        and steps[-1] != "__main__"
    )
    return folder, ".".join(steps) if is_module else None


def _import(root: Path, module: str, python: str) -> str:
    """What went wrong; empty if nothing did."""
    before = os.environ.get("PYTHONPATH")
    paths = os.pathsep.join([str(root), *([before] if before else [])])
    try:
        done = subprocess.run(
            [python, "-c", IMPORT, module],
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths},
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
    return (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
