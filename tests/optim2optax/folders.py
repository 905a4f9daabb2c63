"""Folders with small programs and notebooks."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, by their paths in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """The files in a folder, by their paths in it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if "__pycache__" not in path.parts
    }


def notebook(*cells: str) -> str:
    """A notebook with cells of code, as Jupyter writes it."""
    empty: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
    }
    parts = [{**empty, "source": cell.splitlines(keepends=True)} for cell in cells]
    whole = {"cells": parts, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(whole, indent=1) + "\n"
