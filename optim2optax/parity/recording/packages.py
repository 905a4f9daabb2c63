"""The packages that a user's file imports, imported ahead of it.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import ast
import importlib
from contextlib import suppress
from pathlib import Path


def import_packages(path: Path | None) -> None:
    """Import the packages that a file imports ahead of `precise`.

    A package that is imported within it would keep float64 as its `jnp.float32` for ever after.
    Modules beside the file are not packages: they are to compute in float64.
    """
    if path is None:
        return
    for node in ast.walk(ast.parse(path.read_bytes())):
        for name in _imported_by(node):
            if _is_beside(path, name):
                continue
            # A file may import what is not installed, in a `try`.
            with suppress(ImportError):
                importlib.import_module(name)


def _is_beside(path: Path, name: str) -> bool:
    """Whether a module is one of the folder of a file, such as `models` or `models.mlp`."""
    folder = path.parent / name.partition(".")[0]
    file = path.parent / f"{name}.py"
    return folder.exists() or file.exists()


def _imported_by(node: ast.AST) -> list[str]:
    """The modules that a statement may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
        return []
    # `from flax import linen` imports `flax.linen`, if that is a module.
    inner = [f"{node.module}.{alias.name}" for alias in node.names]
    return [node.module, *inner]
