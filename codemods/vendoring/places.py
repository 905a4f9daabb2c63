"""Where a package can stand so that some files find it, and what each of them calls it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from codemods.sources.modules import Layout
from codemods.sources.relevance import Graph, import_graph, reachable
from codemods.vendoring.bindings import joined, said

Named = tuple[str, tuple[str, ...]]
"""A module as a file names it, and the paths, without ending, that it may mean."""


class Name(NamedTuple):
    """What a file calls a module, with dots ahead if that is relative, and the module's full name."""

    said: str
    full: str


class Places:
    """The folders of a project as its imports see them.

    Args:
      texts: the texts of all files by path.
      others: the paths of files that are there as well.
    """

    def __init__(self, texts: Mapping[str, str], others: Iterable[str] = ()) -> None:
        self._texts = texts
        self._paths = {*texts, *others}
        self._layout = Layout(self._paths)
        self._named_by: dict[str, list[Named]] = {}

    def find(self, paths: Sequence[str], name: str) -> str | None:
        """A place for a package of this name that all of some files can import from; None if there is none.

        It is in the innermost package that has them all, else in a folder from which their imports find the project's modules,
        else beside them.
        """
        common = PurePosixPath(*_common([PurePosixPath(path).parent.parts for path in paths]))
        packages = [folder for folder in (common, *common.parents) if self._is_package(folder)]
        roots = [root for path in paths for root in self.roots(path)]
        places = [str(folder / name) for folder in dict.fromkeys((*packages, *roots, common))]
        return next(
            (place for place in places if self.is_free(place) and self.serves(place, paths)), None
        )

    def is_free(self, place: str) -> bool:
        """Whether nothing has the path of a place."""
        return self._layout.at(place) is None

    def serves(self, place: str, paths: Sequence[str]) -> bool:
        """Whether all of some files can import a package at a place, and have one full name for it."""
        layout = Layout((*self._paths, f"{place}/__init__.py"))
        names = [self.name(path, place) for path in paths]
        full = {name.full for name in names if name is not None}
        return (
            None not in names
            and len(full) == 1
            and all(layout.absolute(path, *full) == (place,) for path in paths)
        )

    def name(self, path: str, place: str) -> Name | None:
        """What a file calls a package at a place; None if it cannot import it."""
        folder, target = PurePosixPath(path).parent, PurePosixPath(place)
        root = next((root for root in self.roots(path) if target.is_relative_to(root)), None)
        if root is None or not all(part.isidentifier() for part in target.relative_to(root).parts):
            return None
        full = ".".join(target.relative_to(root).parts)
        outer = self._outermost(folder)
        is_relative = outer is not None and target.is_relative_to(outer) and self._is_relative(path)
        return Name(_relative(folder, target) if is_relative else full, full)

    def names_said(self, path: str, place: str) -> set[str]:
        """The names by which a file imports a package at a place, or something in it."""
        found = set[str]()
        depth = len(PurePosixPath(place).parts)
        for name, paths in self._named(path):
            deeper = [
                len(PurePosixPath(one).parts) - depth
                for one in paths
                if f"{one}/".startswith(f"{place}/")
            ]
            found.update(name.rsplit(".", more)[0] for more in deeper)
        return found

    def roots(self, path: str) -> list[PurePosixPath]:
        """The folders where absolute imports find modules, as far as a file tells, or those that import it, or its program."""
        imports, importers = self._graphs
        program = sorted(reachable(reachable({path}, importers), imports) - {path})
        own = self._roots_of([path])
        taken = [] if own else self._roots_of(sorted(importers[path]), path)
        around = [] if own or taken else self._roots_of(program)
        folder = PurePosixPath(path).parent
        outer = self._outermost(folder)
        return list(
            dict.fromkeys(own or taken or around or [folder if outer is None else outer.parent])
        )

    def together(self, path: str) -> set[str]:
        """The files that may be in one program with a file, itself included."""
        imports, importers = self._graphs
        return reachable(reachable({path}, importers), imports)

    def _roots_of(self, paths: Iterable[str], module: str | None = None) -> list[PurePosixPath]:
        """The folders from which the absolute imports of files find modules, or a certain one."""
        found = []
        for path in paths:
            for name, meant in self._named(path):
                if (
                    name.startswith(".")
                    or len(meant) != 1
                    or (module is not None and not self._is(meant[0], module))
                ):
                    continue
                steps = PurePosixPath(meant[0]).parts
                found.append(PurePosixPath(*steps[: len(steps) - len(name.split("."))]))
        return found

    def _is(self, place: str, path: str) -> bool:
        found = self._layout.at(place)
        return found is not None and found[0] == path

    def _is_relative(self, path: str) -> bool:
        """Whether a file runs as a part of its package alone: it imports by dots, or is imported so."""
        _, importers = self._graphs
        own = any(name.startswith(".") for name, _ in self._named(path))
        others = (named for other in sorted(importers[path]) for named in self._named(other))
        return own or any(
            name.startswith(".") and any(self._is(one, path) for one in meant)
            for name, meant in others
        )

    def _named(self, path: str) -> list[Named]:
        """The modules that a file imports, as it names them, as far as they are of the project."""
        if path not in self._named_by:
            names = dict.fromkeys(_names(self._texts.get(path, "")))
            found = ((name, self._meant(path, name)) for name in names)
            self._named_by[path] = [(name, meant) for name, meant in found if meant]
        return self._named_by[path]

    def _meant(self, path: str, name: str) -> tuple[str, ...]:
        rest = name.lstrip(".")
        level = len(name) - len(rest)
        paths = (
            (self._layout.relative(path, level, rest),)
            if level
            else self._layout.absolute(path, rest)
        )
        return tuple(one for one in paths if self._layout.at(one) is not None)

    def _is_package(self, folder: PurePosixPath) -> bool:
        return str(folder / "__init__.py") in self._paths

    def _outermost(self, folder: PurePosixPath) -> PurePosixPath | None:
        """The outermost package around a folder, if that is one."""
        outer = None
        while self._is_package(folder):
            outer, folder = folder, folder.parent
            if outer == folder:
                break
        return outer

    @cached_property
    def _graphs(self) -> tuple[Graph, Graph]:
        return import_graph(self._texts)


def _names(text: str) -> Iterator[str]:
    """The modules that the imports of a file name, and what may be modules in them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = [*ast.walk(ast.parse(text))] if "import" in text else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield said(node)
            yield from (joined(said(node), alias.name) for alias in node.names)


def _common(folders: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The steps with which all of some paths begin."""
    shared = []
    for steps in zip(*folders, strict=False):
        if len({*steps}) > 1:
            break
        shared.append(steps[0])
    return tuple(shared)


def _relative(folder: PurePosixPath, target: PurePosixPath) -> str:
    """A relative name, from a folder on."""
    shared = len(_common([folder.parts, target.parent.parts]))
    return "." * (len(folder.parts) - shared + 1) + ".".join(target.parts[shared:])
