"""The files of a project as modules, and the file behind an import."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from codemods.text import Columns

Span = tuple[int, int, int, int]
"""First line, first column, last line, column after the end: lines from 1, columns from 0 and in characters."""


@dataclass(eq=False)
class Unit:
    """One parsed file."""

    path: str
    code: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.code)

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            node.lineno,
            self.columns.character(node.lineno, node.col_offset),
            node.end_lineno,
            self.columns.character(node.end_lineno, node.end_col_offset),
        )

    def source(self, node: ast.expr | ast.stmt) -> str:
        return ast.get_source_segment(self.code, node) or ""

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    @property
    def is_package(self) -> bool:
        return PurePosixPath(self.path).name == "__init__.py"


class Project:
    """All units, and the way from a dotted name to one of them.

    An absolute import is resolved without knowing the roots on `sys.path`: a file whose path ends as the dotted name says is a
    candidate, and the one that shares most of its folders with the importing file wins.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self.units = list(units)
        self._files = {unit.path: unit for unit in self.units}
        self._endings: dict[str, list[str]] = defaultdict(list)
        for directory in sorted({str(parent) for unit in self.units for parent in PurePosixPath(unit.path).parents}):
            self._endings[PurePosixPath(directory).name].append(directory)
        for path in self._files:
            self._endings[PurePosixPath(path).stem].append(path)
        self._directories = {path for paths in self._endings.values() for path in paths if path not in self._files}

    def at(self, path: str) -> tuple[Unit | None, str] | None:
        """The module at a path without its ending: its file (a package's `__init__`) and, for a package, its folder."""
        if path in self._directories:
            return self._files.get(str(PurePosixPath(path, "__init__.py"))), path
        unit = self._files.get(f"{path}.py")
        return (unit, "") if unit else None

    def relative(self, importer: Unit, level: int, name: str) -> str:
        """The path, without ending, that a relative import names."""
        folder = PurePosixPath(importer.path).parent
        for _ in range(level - 1):
            folder = folder.parent
        return str(folder.joinpath(*name.split("."))) if name else str(folder)

    def absolute(self, importer: Unit, name: str) -> str | None:
        """The path, without ending, of an absolute import; None when it is not part of the project."""
        parts = tuple(name.split("."))
        here = PurePosixPath(importer.path).parent.parts
        best: tuple[int, int, str] | None = None
        for path in self._endings.get(parts[-1], ()):
            bare = PurePosixPath(path).with_suffix("") if path in self._files else PurePosixPath(path)
            if bare.parts[-len(parts) :] != parts or self.at(str(bare)) is None:
                continue
            shared = 0
            for left, right in zip(here, bare.parts[: -len(parts)], strict=False):
                if left != right:
                    break
                shared += 1
            rank = (-shared, len(bare.parts), str(bare))
            if best is None or rank < best:
                best = rank
        return best[2] if best else None
