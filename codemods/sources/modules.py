"""The files of a project as modules, and the file behind an import."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import commonprefix, dirname

from codemods.model import Location
from codemods.sources.bindings import Bindings, bindings, count_names
from codemods.sources.text import Columns

RUN = re.compile(
    r"""__  # %run (?:-\w+ )*["']?([\w./-]+)"""
    r"""|\bexec\(\s*open\(\s*["']([\w./-]+\.py)["']\s*\)\.read\(\)\s*\)"""
)
"""What runs another file as if its code stood here: `%run train.py` in a notebook, `exec`."""

WORD = re.compile(r"\w+")
STAR = re.compile(r"\bimport[ \t(]*\*")
LEFT_OUT = re.compile(r"/(.*?\.py)(?![^.(\[])")
"""The names of what is in a file that is not analysed, see `name_of`."""

SHARED = ("ctx", "op", "ops")
"""Fields with contexts and operators: `ast` has one object for each, wherever that stands."""

Span = tuple[int, int, int, int]
"""First line, first column, last line, column after the end.

Lines count from 1, columns from 0 and in characters.
"""


@dataclass(eq=False)
class Unit:
    """One parsed file.

    Of a notebook, `places` has the cell and the line of the file for each line of the code. What is
    not `writable` is context. `nodes` has all but contexts and operators.
    """

    path: str
    code: str
    tree: ast.Module
    places: Sequence[tuple[int, int]] = ()
    writable: bool = True
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    nodes: list[ast.AST] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes.append(self.tree)
        # Breadth first: the list grows while it is read.
        for node in self.nodes:
            for name in node._fields:
                part = None if name in SHARED else getattr(node, name, None)
                for child in part if isinstance(part, list) else (part,):
                    if isinstance(child, ast.AST):
                        self.parents[child] = node
                        self.nodes.append(child)

    @cached_property
    def bindings(self) -> Bindings:
        """What each scope binds."""
        return bindings(self.nodes, self.parents)

    @cached_property
    def names_bound(self) -> Counter[str]:
        """Every name that any scope binds, with how often; zero for others."""
        return count_names(self.bindings)

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.code)

    def span(
        self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias
    ) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.columns.character(node.lineno, node.col_offset)
        end = self.columns.character(node.end_lineno, node.end_col_offset)
        return node.lineno, start, node.end_lineno, end

    def is_in(self, node: ast.expr | ast.stmt, span: Span) -> bool:
        """Whether something stands within a span."""
        own = self.span(node)
        begins_within = span[:2] <= own[:2]
        ends_within = own[2:] <= span[2:]
        return begins_within and ends_within

    def line(self, number: int) -> int:
        """The line of the file for a line of the code."""
        if not self.places:
            return number
        _, line = self.places[number - 1]
        return line

    def location(self, number: int) -> Location:
        """Where a line of the code is."""
        return Location(self.path, self.line(number))

    def cell(self, number: int) -> str:
        """The cell in which a line of the code is, for people; empty if this is no notebook."""
        if not self.places:
            return ""
        cell, _ = self.places[number - 1]
        return f"cell {cell}"

    def source(self, node: ast.expr | ast.stmt) -> str:
        return self.columns.segment(node)

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the block that a statement is in."""
        parent = self.parents[statement]
        names = ("body", "orelse", "finalbody")
        blocks: list[list[ast.stmt]] = [getattr(parent, name, []) for name in names]
        return next(block for block in blocks if statement in block)

    def call_of(self, node: ast.AST) -> ast.Call | None:
        """The call of which a node is what is called; None where it is not called."""
        match self.parents.get(node):
            case ast.Call(func=called) as call if called is node:
                return call
        return None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    @property
    def is_package(self) -> bool:
        return PurePosixPath(self.path).name == "__init__.py"


class Layout:
    """The files of a project by their paths, and the way from a dotted name to one of them.

    An absolute import is resolved without knowing the roots on `sys.path`: a file whose path ends
    as the dotted name says is a candidate, and the one that shares most of its folders with the
    importing file wins. Where several are equally near and none lies in a folder above the
    importing file, it is not known which is meant: each of those below its folder may be. A module
    of the standard library is shadowed by a script beside the importing one alone.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._files = set(paths)
        self._endings: dict[str, list[str]] = defaultdict(list)
        self._directories: set[str] = set()
        folders = {PurePosixPath(dirname(path)) for path in self._files}
        for folder in folders:
            around = (folder, *folder.parents)
            self._directories.update(map(str, around))
        modules = [path.removesuffix(".py") for path in self._files]
        for path in sorted((*self._directories, *modules)):
            last = path.rpartition("/")[2]
            self._endings[last].append(path)
        # by folder and dotted name
        self._absolute: dict[tuple[str, str], tuple[str, ...]] = {}
        # by folder
        self._below: dict[str, list[str]] = {}

    def at(self, path: str) -> tuple[str | None, str] | None:
        """The module at a path without its ending: its file and, for a package, its folder.

        The file of a package is its `__init__.py`, if it has one.
        """
        # import models, with a folder models/
        if path in self._directories:
            package = str(PurePosixPath(path, "__init__.py"))
            has_file = package in self._files
            return (package if has_file else None), path
        # import train, with a file train.py
        file = f"{path}.py"
        if file not in self._files:
            return None
        return file, ""

    def relative(self, importer: str, level: int, name: str) -> str:
        """The path, without ending, that a relative import names."""
        folder = PurePosixPath(importer).parent
        # `from .` is from the folder of the file, each further dot one above.
        for _ in range(level - 1):
            folder = folder.parent
        if name:
            folder = folder.joinpath(*name.split("."))
        return str(folder)

    def absolute(self, importer: str, name: str) -> tuple[str, ...]:
        """The paths, without ending, that an absolute import may mean; none outside the project."""
        folder = importer.rpartition("/")[0]
        key = (folder, name)
        if key not in self._absolute:
            self._absolute[key] = self._nearest(folder, name)
        return self._absolute[key]

    def _nearest(self, folder: str, name: str) -> tuple[str, ...]:
        here = folder.split("/") if folder else []
        parts = name.split(".")
        if parts[0] in sys.stdlib_module_names:
            # A script finds modules in its own folder first, a module of a package does not.
            beside = "/".join((*here, *parts))
            is_script = str(PurePosixPath(folder, "__init__.py")) not in self._files
            if is_script and self.at(beside) is not None:
                return (beside,)
            return ()
        # By how many folders the root of each candidate shares, most first, then by its depth.
        ranked: list[tuple[int, int, str]] = []
        for path in self._endings.get(parts[-1], ()):
            steps = path.split("/")
            root = steps[: -len(parts)]
            ending = steps[-len(parts) :]
            if ending != parts or self.at(path) is None:
                continue
            shared = len(commonprefix([here, root]))
            ranked.append((-shared, len(root), path))
        if not ranked:
            return ()
        ranked.sort()
        best, depth, first = ranked[0]
        most_shared = -best
        # the root is a folder above the importing file
        if most_shared == depth:
            return (first,)
        near = tuple(path for rank, _, path in ranked if rank == best)
        is_below = most_shared == len(here)
        if is_below or len(near) == 1:
            return near
        return ()

    def run_by(self, importer: str, code: str) -> list[str]:
        """The files that a file runs in its own place."""
        if "# %run" not in code and "exec(" not in code:
            return []
        paths: set[str] = set()
        for found in RUN.finditer(code):
            # %run train.py, or exec(open("train.py").read())
            file = found[1] or found[2]
            name = PurePosixPath(file).name
            paths.update(self._called[name])
            # `%run train` needs no ending
            paths.update(self._called[f"{name}.py"])
        return sorted(paths - {importer})

    @cached_property
    def _called(self) -> dict[str, list[str]]:
        """The files by their names without folders."""
        found: dict[str, list[str]] = defaultdict(list)
        for path in self._files:
            name = path.rpartition("/")[2]
            found[name].append(path)
        return found

    def below(self, folder: str) -> list[str]:
        """The files in a folder and in those within it."""
        if folder not in self._below:
            start = "" if folder == "." else f"{folder}/"
            inner = (path for path in self._files if path.startswith(start))
            self._below[folder] = sorted(inner)
        return self._below[folder]

    def matching(self, pattern: re.Pattern[str]) -> list[str]:
        """The files whose dotted name, or the end of it, is such a name."""
        return sorted(path for path in self._files if _ends_so(path, pattern))


def _ends_so(path: str, pattern: re.Pattern[str]) -> bool:
    """Whether the dotted name of a file, from any of its folders on, is as a pattern says."""
    module = path.removesuffix(".py").removesuffix("/__init__")
    steps = module.split("/")
    # project.models.vit, models.vit and vit, for project/models/vit.py
    for start in range(len(steps)):
        name = ".".join(steps[start:])
        if pattern.fullmatch(name) is not None:
            return True
    return False


def name_of(path: str) -> str:
    """The name of the module in a file that is not analysed; no name of a package looks like it."""
    return f"/{path}"


def file_of(name: str) -> str | None:
    """The file of what a name stands for, if it is one that is not analysed.

    It is `a/b.py` for `/a/b.py.Trainer().step`.
    """
    match = LEFT_OUT.match(name)
    if match is None:
        return None
    return match[1]


class Project:
    """All units, found by the imports of others.

    Args:
      units: the files that are analysed.
      others: the texts of the other files, by path, of which nothing else is known.
      around: files that are read for what they say of the units, and not asked about themselves.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        others: Mapping[str, str],
        around: Iterable[Unit] = (),
    ) -> None:
        self.units = list(units)
        self.around = list(around)
        self.others = others
        self._by_path = {unit.path: unit for unit in (*self.units, *self.around)}
        self._layout = Layout((*self._by_path, *self.others))
        self._words: dict[str, frozenset[str] | None] = {}

    def at(self, path: str) -> tuple[Unit | None, str] | None:
        """The module at a path without its ending: its file and, for a package, its folder."""
        found = self._layout.at(path)
        if found is None:
            return None
        file, folder = found
        if file in self.others:
            return None
        # a package without `__init__.py` has a folder alone
        unit = self._by_path[file] if file else None
        return unit, folder

    @property
    def read(self) -> list[Unit]:
        """The files that are read, whether they are asked about or not."""
        return [*self.units, *self.around]

    def left_out(self, path: str) -> str | None:
        """The file of the module at a path without its ending, if it is not analysed."""
        found = self._layout.at(path)
        if found is None:
            return None
        file, _ = found
        return file if file in self.others else None

    def relative(self, importer: Unit, level: int, name: str) -> str:
        """The path, without ending, that a relative import names."""
        return self._layout.relative(importer.path, level, name)

    def absolute(self, importer: Unit, name: str) -> tuple[str, ...]:
        """The paths, without ending, that an absolute import may mean; none outside the project."""
        return self._layout.absolute(importer.path, name)

    def run_by(self, unit: Unit) -> list[Unit]:
        """The modules that a module runs in its own place."""
        return self._read(self._layout.run_by(unit.path, unit.code))

    def within(self, folder: str) -> list[Unit]:
        """The modules in a folder and in those below it."""
        return self._read(self._layout.below(folder))

    def matching(self, pattern: re.Pattern[str]) -> list[Unit]:
        """The modules whose dotted name, or the end of it, is such a name."""
        return self._read(self._layout.matching(pattern))

    def may_have(self, path: str, name: str) -> bool:
        """Whether a file that is not asked about may have a variable of a name."""
        if path not in self._words:
            unit = self._by_path.get(path)
            text = self.others[path] if unit is None else unit.code
            # from models import *: any name may come from there
            is_open = STAR.search(text) is not None
            self._words[path] = None if is_open else frozenset(WORD.findall(text))
        words = self._words[path]
        return words is None or name in words

    def others_matching(self, pattern: re.Pattern[str]) -> list[str]:
        """The files of such a name that are not analysed."""
        matching = self._layout.matching(pattern)
        return [path for path in matching if path in self.others]

    def _read(self, paths: Iterable[str]) -> list[Unit]:
        return [self._by_path[path] for path in paths if path in self._by_path]
