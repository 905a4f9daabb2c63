"""From which modules of a project a statement imports, and which names a star import brings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from codemods.inference.library import Library
from codemods.inference.objects import External, Module, Object
from codemods.inference.reading import Binding, Contents
from codemods.inference.scopes import Scope
from codemods.sources.modules import Project, Unit, name_of

LIST = "__all__"


class Imports:
    """The modules from which statements import, and the names that stars bring.

    Args:
      project: the files.
      library: what is known of code outside of them.
    """

    def __init__(self, project: Project, library: Library) -> None:
        self.project = project
        self.library = library
        self._stars: dict[Scope, list[ast.ImportFrom]] = {}
        self._runs: set[ast.ImportFrom] = set()
        self._importers: dict[Unit, dict[Scope, None]] = defaultdict(dict)

    def open_stars(self, modules: Iterable[Contents]) -> None:
        """Let every module bind the names that its star imports bring, to the fixed point."""
        for contents in modules:
            stars = self._stars[contents.scope] = contents.stars
            # what runs another file in its place has that file's names, as by a star import
            if self.project.run_by(contents.unit):
                node = ast.ImportFrom(names=[ast.alias("*")], level=0)
                self._runs.add(node)
                stars.append(node)
        scopes = {scope.unit: scope for scope in self._stars}
        opened: list[tuple[Scope, list[Scope]]] = []
        for scope, stars in self._stars.items():
            for node in stars:
                units = [one.unit for one in self.sources(scope.unit, node)]
                sources = [scopes[unit] for unit in units if unit is not None]
                for source in sources:
                    self._importers[source.unit][scope] = None
                if not sources:
                    scope.names.update(self.library.members(node.module or ""))
                opened.append((scope, sources))
        # Modules may import stars from each other, in a circle.
        changed = True
        while changed:
            changed = False
            for scope, sources in opened:
                new = set[str]().union(*map(exported, sources)) - scope.names
                if new:
                    scope.names |= new
                    changed = True

    def stars_of(self, scope: Scope) -> list[ast.ImportFrom]:
        """The star imports of a module."""
        return self._stars[scope]

    def star_importers(self, scope: Scope) -> Iterable[Scope]:
        """The modules that take all names of a module."""
        return self._importers.get(scope.unit, ())

    def absolute(self, unit: Unit, name: str) -> tuple[str, ...]:
        """The paths, without ending, of the modules of the project that a name may mean."""
        return () if self.library.owns(name) else self.project.absolute(unit, name)

    def _paths(self, unit: Unit, node: ast.ImportFrom) -> tuple[str, ...]:
        """The same for a statement."""
        name = node.module or ""
        if node.level:
            return (self.project.relative(unit, node.level, name),)
        return self.absolute(unit, name)

    def sources(self, unit: Unit, node: ast.ImportFrom) -> list[Module]:
        """The modules of the project from which a statement may import."""
        if node in self._runs:
            return [Module(ran) for ran in self.project.run_by(unit)]
        found = map(self.project.at, self._paths(unit, node))
        return [Module(*one) for one in found if one is not None]

    def is_module(self, binding: Binding) -> bool:
        """Whether an import binds a module of the project."""
        unit = binding.scope.unit
        paths: Iterable[str] = ()
        if binding.alias is not None and isinstance(binding.node, ast.Import):
            paths = self.absolute(unit, binding.alias.name)
        elif binding.alias is not None and isinstance(binding.node, ast.ImportFrom):
            name = binding.alias.name
            paths = (f"{one}/{name}" for one in self._paths(unit, binding.node))
        return any(self.project.at(path) is not None for path in paths)

    def others(self, unit: Unit, node: ast.ImportFrom) -> list[str]:
        """The files that are not analysed from which a statement may import."""
        if node in self._runs:
            return []
        found = map(self.project.left_out, self._paths(unit, node))
        return [file for file in found if file is not None]

    def by_star(self, scope: Scope, name: str) -> list[Object]:
        """What an unbound name may be, if star imports take names from files not analysed."""
        module = scope.module
        if module.binding(name) is not None:
            return []
        found: list[Object] = []
        for node in self.stars_of(module):
            files = self.others(module.unit, node)
            named = (file for file in files if self.project.may_have(file, name))
            found += (External(f"{name_of(file)}.{name}") for file in named)
        return found


def exported(scope: Scope) -> set[str]:
    """The names that a star import of a module brings: all of them, if `__all__` is computed."""
    if LIST not in scope.names:
        return {name for name in scope.names if not name.startswith("_")}
    listed = _listed(scope.unit)
    if listed is None:
        return scope.names - {LIST}
    return listed


def _listed(unit: Unit) -> set[str] | None:
    """The names in `__all__`, or more than these; None if it is not written out."""
    names: set[str] = set()
    for node in unit.nodes:
        if not isinstance(node, ast.Name) or node.id != LIST:
            continue
        match unit.parents[node]:
            # __all__ = ["Model"], __all__ += ["train"]
            case (
                ast.Assign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
                | ast.AnnAssign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
                | ast.AugAssign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))
            ):
                words = [one.value for one in parts if isinstance(one, ast.Constant)]
                # __all__ = [Model.__name__]
                if len(words) < len(parts):
                    return None
                names.update(map(str, words))
            case _:
                return None
    return names
