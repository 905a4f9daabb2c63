"""Where a module can be so that some files find it, and its name in each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from posixpath import commonprefix
from typing import NamedTuple

from codemods.sources.modules import Layout
from codemods.sources.parsing import parse
from codemods.sources.relevance import (
    Graph,
    absolute,
    import_graph,
    reachable,
)

Named = tuple[str, tuple[str, ...]]
"""The name of a module in a file, and the paths, without ending, that it may mean."""


class ModuleName(NamedTuple):
    """The name of a module in a file, with dots ahead if it is relative, and the full name."""

    said: str
    full: str


class Places:
    """The folders of a project as its imports see them.

    Args:
      texts: the texts of all files by path.
      others: the paths of other files that exist.
      graphs: which files import which, and which are imported by which, if that is known.
      written: the paths of the files that are written; nothing is put outside of the folder that is
        around all of them.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        others: Iterable[str] = (),
        graphs: tuple[Graph, Graph] | None = None,
        written: Iterable[str] = (),
    ) -> None:
        self._texts = texts
        self._within = _folder_around(written)
        self._known_graphs = graphs
        self._paths = {*texts, *others}
        self._layout = Layout(self._paths)
        self._named_by: dict[str, list[Named]] = {}

    def find(self, paths: Sequence[str], name: str) -> str | None:
        """A place for a module of this name from which some files can import.

        It is in the package that one of them belongs to, the outermost, else in a folder from which
        their imports find the project's modules, else beside them. None if there is none.
        """
        folders = [PurePosixPath(path).parent for path in paths]
        common = _folder_around(paths)
        packages = [outer for folder in folders if (outer := self._outermost(folder))]
        roots = [root for path in paths for root in self.roots(path)]
        # a package without `__init__.py`: `models` of `from models.vit import ViT`
        tops = [
            root / folder.relative_to(root).parts[0]
            for root in roots
            for folder in folders
            if folder.is_relative_to(root) and folder != root
        ]
        for folder in dict.fromkeys((*packages, *tops, *roots, common)):
            place = str(folder / name)
            if not folder.is_relative_to(self._within):
                continue
            is_shown = all(self._is_shown(path, place) for path in paths)
            if is_shown and self.is_free(place) and self.serves(place, paths):
                return place
        return None

    def _is_shown(self, path: str, place: str) -> bool:
        """Whether imports show that a file finds what is beside or within a place's folder.

        It is in the same package, or imports it, or imports a module beside the place. Of a package
        that is installed, nothing shows what is beside it.
        """
        name = self.name(path, place)
        if name is None or name.said.startswith("."):
            return name is not None
        package, _, _ = name.full.partition(".")
        if package == name.full:
            is_in = PurePosixPath(path).parent == PurePosixPath(place).parent
        else:
            is_in = self._belongs(path, package)
        return is_in or self.imports_beside(path, place)

    def imports_beside(self, path: str, place: str) -> bool:
        """Whether a file imports the package of a place, or a module beside the place."""
        name = self.name(path, place)
        if name is None:
            return False
        package, _, _ = name.full.partition(".")
        said = [one for one, _ in self._named(path)]
        if package != name.full:
            return package in {one.partition(".")[0] for one in said}
        folder = PurePosixPath(place).parent
        modules = (self._layout.at(str(folder / one)) for one in said if "." not in one)
        return any(found is not None and not found[1] for found in modules)

    def _belongs(self, path: str, package: str) -> bool:
        """Whether a file is in a package of this name, or others import it from there."""
        outer = self._outermost(PurePosixPath(path).parent)
        if outer is not None and outer.name == package:
            return True
        _, importers = self._graphs
        for other in importers[path]:
            for name, meant in self._named(other):
                is_it = any(self._is(one, path) for one in meant)
                if is_it and name.partition(".")[0] == package:
                    return True
        return False

    def is_free(self, place: str) -> bool:
        """Whether nothing exists at a place."""
        return self._layout.at(place) is None

    def serves(self, place: str, paths: Sequence[str]) -> bool:
        """Whether all of some files can import a module at a place, by one full name."""
        layout = Layout((*self._paths, f"{place}.py"))
        names = [self.name(path, place) for path in paths]
        full = {name.full for name in names if name is not None}
        if None in names or len(full) != 1:
            return False
        # no other module may be found by the name
        [name] = full
        return all(absolute(path, name, layout) == (place,) for path in paths)

    def name(self, path: str, place: str) -> ModuleName | None:
        """The name of a module at a place in a file; None if the file cannot import it."""
        target = PurePosixPath(place)
        # `src` of src/models/vit.py, with `from models import vit`
        root = self._root_around(target, path)
        if root is None:
            return None
        steps = target.relative_to(root).parts
        # a folder such as `my-project` has no name in Python
        if not all(step.isidentifier() for step in steps):
            return None
        full = ".".join(steps)
        folder = PurePosixPath(path).parent
        outer = self._outermost(folder)
        is_within = outer is not None and target.is_relative_to(outer)
        # from .legacy_optim import Adam
        if is_within and self._is_relative(path):
            return ModuleName(_relative(folder, target), full)
        return ModuleName(full, full)

    def _root_around(self, target: PurePosixPath, path: str) -> PurePosixPath | None:
        """The innermost folder around a place in which the imports of a file find modules."""
        around = [root for root in self.roots(path) if target.is_relative_to(root)]
        return max(around, key=lambda root: len(root.parts), default=None)

    def names_said(self, path: str, place: str) -> set[str]:
        """The names by which a file imports a package at a place, or something in it."""
        found = set[str]()
        depth = len(PurePosixPath(place).parts)
        for name, paths in self._named(path):
            for one in paths:
                if f"{one}/".startswith(f"{place}/"):
                    # `legacy` of `legacy.adam`
                    below = len(PurePosixPath(one).parts) - depth
                    found.add(name.rsplit(".", below)[0])
        return found

    def roots(self, path: str) -> list[PurePosixPath]:
        """The folders in which absolute imports find modules.

        They are those that the file itself shows, or the files that import it, or its program.
        """
        _, importers = self._graphs
        program = sorted(self.together(path) - {path})
        found = self._roots_of([path])
        if not found:
            found = self._roots_of(sorted(importers[path]), path)
        if not found:
            found = self._roots_of(program)
        # no import shows it: the folder with the whole package, or that of a script
        if not found:
            folder = PurePosixPath(path).parent
            outer = self._outermost(folder)
            found = [folder if outer is None else outer.parent]
        return list(dict.fromkeys(found))

    def together(self, path: str) -> set[str]:
        """The files that may be in one program with a file, itself included."""
        imports, importers = self._graphs
        return reachable(reachable({path}, importers), imports)

    def programs(self, paths: Iterable[str]) -> list[list[str]]:
        """Files by the programs that they may be in, directly or by way of others."""
        found: list[list[str]] = []
        for path in paths:
            together = self.together(path)
            near = [one for one in found if not together.isdisjoint(one)]
            # a file that two groups can be in one program with makes one group of them
            found = [one for one in found if one not in near]
            found.append([*chain.from_iterable(near), path])
        return found

    def _roots_of(
        self, paths: Iterable[str], module: str | None = None
    ) -> list[PurePosixPath]:
        """The folders in which the absolute imports of files find modules, or a certain one."""
        found = []
        for path in paths:
            for name, meant in self._named(path):
                if name.startswith(".") or len(meant) != 1:
                    continue
                [place] = meant
                if module is not None and not self._is(place, module):
                    continue
                # /project/src of `models.vit` in /project/src/models/vit
                steps = PurePosixPath(place).parts
                depth = len(steps) - len(name.split("."))
                found.append(PurePosixPath(*steps[:depth]))
        return found

    def _is(self, place: str, path: str) -> bool:
        """Whether the module at a place is a file."""
        found = self._layout.at(place)
        return found is not None and found[0] == path

    def _is_relative(self, path: str) -> bool:
        """Whether a file only runs as a part of its package: its imports show it, or others do."""
        _, importers = self._graphs
        names = [name for name, _ in self._named(path)]
        if any(name.startswith(".") for name in names):
            return True
        for other in sorted(importers[path]):
            for name, meant in self._named(other):
                if not name.startswith("."):
                    continue
                # from . import train, in another file
                if any(self._is(one, path) for one in meant):
                    return True
        return False

    def _named(self, path: str) -> list[Named]:
        """The modules of the project that a file imports, by their names there."""
        if path not in self._named_by:
            text = self._texts.get(path, "")
            names = dict.fromkeys(_names(text))
            found = ((name, self._meant(path, name)) for name in names)
            self._named_by[path] = [(name, meant) for name, meant in found if meant]
        return self._named_by[path]

    def _meant(self, path: str, name: str) -> tuple[str, ...]:
        """The paths that a name may mean in a file."""
        rest = name.lstrip(".")
        level = len(name) - len(rest)
        # from ..models import vit
        if level:
            relative = self._layout.relative(path, level, rest)
            paths: tuple[str, ...] = (relative,)
        else:
            paths = absolute(path, rest, self._layout)
        return tuple(one for one in paths if self._layout.at(one) is not None)

    def _is_package(self, folder: PurePosixPath) -> bool:
        return str(folder / "__init__.py") in self._paths

    def _outermost(self, folder: PurePosixPath) -> PurePosixPath | None:
        """The outermost package around a folder, which may be the folder itself."""
        outer = None
        while self._is_package(folder):
            outer, folder = folder, folder.parent
            if outer == folder:
                break
        return outer

    @cached_property
    def _graphs(self) -> tuple[Graph, Graph]:
        return self._known_graphs or import_graph(self._texts)


def _names(text: str) -> Iterator[str]:
    """The modules that the imports of a file name, and names in these that may be modules."""
    if "import" not in text:
        return
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        # import models.vit
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        # from models import vit
        elif isinstance(node, ast.ImportFrom):
            package = said(node)
            yield package
            yield from (joined(package, alias.name) for alias in node.names)


def said(node: ast.ImportFrom) -> str:
    """The module in a statement, as it is written there."""
    dots = "." * node.level
    return dots + (node.module or "")


def joined(package: str, name: str) -> str:
    """The dotted name of something in a package."""
    # from . import legacy_optim
    separator = "" if package.endswith(".") else "."
    return f"{package}{separator}{name}"


def _folder_around(paths: Iterable[str]) -> PurePosixPath:
    """The innermost folder around some files."""
    folders = [PurePosixPath(path).parent.parts for path in paths]
    return PurePosixPath(*commonprefix(folders))


def _relative(folder: PurePosixPath, target: PurePosixPath) -> str:
    """The relative name of a package for files of a folder."""
    shared = len(commonprefix([folder.parts, target.parent.parts]))
    # one dot is the folder itself, each further one the folder above
    dots = "." * (len(folder.parts) - shared + 1)
    return dots + ".".join(target.parts[shared:])
