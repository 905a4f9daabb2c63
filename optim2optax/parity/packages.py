"""The packages that a user's file imports, imported ahead of it. An old Python runs this as well, from Python 3.8 on."""

from __future__ import annotations

import ast
import importlib
from contextlib import suppress
from pathlib import Path


def import_packages(path: Path | None) -> None:
    """Import the packages that a file imports ahead of `precise`, lest one keep float64 as its float32 for ever after.

    Modules beside the file are not packages: what they compute is to be precise.
    """
    if path is None:
        return
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if (
                not (path.parent / name.partition(".")[0]).exists()
                and not (path.parent / f"{name}.py").exists()
            ):
                with suppress(ImportError):
                    importlib.import_module(name)
