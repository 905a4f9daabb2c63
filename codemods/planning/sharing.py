"""Classes that several files of a program need: one file has them, the others import them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.inference.scopes import Scope
from codemods.optimizers.base import Support, called_otherwise, other_names
from codemods.rewriting.edits import Edit
from codemods.sources.modules import Unit

DEFINING = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
"""The statements that bind names."""


@dataclass
class Shared:
    """The helpers that each file has for others, and those that it imports, with the module.

    `called` has other names for helpers whose own name means something else in one of their files.
    `homeless` are the files that need the same helpers, where no file has a place for these.
    """

    given: dict[Unit, dict[str, Support]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    imported: dict[Unit, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    called: dict[Unit, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    homeless: set[Unit] = field(default_factory=set)


def shared(edits: Iterable[tuple[Unit, Edit]], facts: Facts) -> Shared:
    """Choose the files for the helpers of which a program must have only one."""
    needs: dict[Unit, dict[str, Support]] = defaultdict(dict)
    named: dict[Unit, set[str]] = defaultdict(set)
    for unit, edit in edits:
        needed = needs[unit]
        text = " ".join(edit.texts)
        for support in edit.supports:
            if not support.is_shared:
                continue
            needed[support.name] = support
            # what only another helper names has to be defined, but not imported
            if f"support:{support.name}}}" in text:
                named[unit].add(support.name)
    outcome = Shared()
    in_need = [unit for unit, needed in needs.items() if needed]
    for together in _programs(in_need, facts):
        home = Homes(facts).of(together)
        # two scripts that do not import each other, and have no module in common
        if home is None:
            outcome.homeless.update(together)
            continue
        supports = [support for unit in together for support in needs[unit].values()]
        called = _called(supports, {home, *together}, facts)
        for unit in {home, *together}:
            outcome.called[unit].update(called)
        for unit in together:
            outcome.given[home].update(needs[unit])
            if unit is home:
                continue
            module = Homes(facts).module(home, unit) or ""
            outcome.imported[unit] = dict.fromkeys(sorted(named[unit]), module)
    return outcome


def _called(
    supports: Iterable[Support], units: Collection[Unit], facts: Facts
) -> dict[str, str]:
    """Other names for the helpers whose own name is taken in one of some files."""
    found: dict[str, str] = {}
    by_name = {support.name: support for support in supports}
    for name, support in by_name.items():
        free = _free_name(support, units, facts)
        if free != name:
            found[name] = free
    return found


def _free_name(support: Support, units: Collection[Unit], facts: Facts) -> str:
    """The first name for a helper that is free in some files; its own if none is."""
    own = support.name
    is_imported = any(_imports(own, unit, facts) for unit in units)
    others = () if is_imported else other_names(own)
    for name in (own, *others):
        renamed = called_otherwise(support, {own: name})
        if not any(_is_taken(renamed, unit, facts) for unit in units):
            return name
    return own


def _imports(name: str, unit: Unit, facts: Facts) -> int:
    """How many imports of a file bind a name to what is legacy."""
    # from flax.optim import Adam
    of_name = (item for item in facts.imported(unit) if item.name == name)
    return sum(legacy_name(item.target) is not None for item in of_name)


def _is_taken(support: Support, unit: Unit, facts: Facts) -> bool:
    """Whether the name of a helper stands for more in a file than it and legacy imports."""
    count = unit.names_bound[support.name]
    if not count:
        return False
    definition = ast.dump(ast.parse(support.source).body[-1])
    # an earlier run may have put the helper here, or into a file that this one imports it from
    accounted = sum(ast.dump(node) == definition for node in unit.tree.body)
    for passed in facts.flow.reading.passed_on:
        if passed.unit is unit and passed.name == support.name:
            accounted += _has_definition(passed.sources, definition)
    accounted += _imports(support.name, unit, facts)
    return count > accounted


def _has_definition(modules: Iterable[Scope], definition: str) -> bool:
    """Whether one of some modules has a statement, as `ast.dump` says it."""
    for module in modules:
        nodes = ast.iter_child_nodes(module.node)
        if any(ast.dump(node) == definition for node in nodes):
            return True
    return False


def _programs(units: list[Unit], facts: Facts) -> list[list[Unit]]:
    """The files that may be in one program, directly or by way of others."""
    found: list[list[Unit]] = []
    for unit in units:
        program = facts.together(unit)
        near: list[list[Unit]] = []
        far: list[list[Unit]] = []
        for group in found:
            is_near = any(one.path in program for one in group)
            (near if is_near else far).append(group)
        # a file that two groups can be in one program with makes one group of them
        found = [*far, [*chain.from_iterable(near), unit]]
    return found


class Homes:
    """Finds a file that others can import from."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def of(self, units: list[Unit]) -> Unit | None:
        """A file from which all others of some can import, preferably one of them.

        None if there is none.
        """
        others = (unit for unit in self.facts.project.units if unit not in units)
        candidates = [*sorted(units, key=_path), *sorted(others, key=_path)]
        for home in candidates:
            if self._serves(home, units):
                return home
        return None

    def _serves(self, home: Unit, units: list[Unit]) -> bool:
        """Whether some files can import from a file, without a circle and without effects."""
        others = [unit for unit in units if unit is not home]
        reached = self.facts.imported_by(home)
        is_notebook = bool(home.places)
        if not home.writable or is_notebook:
            return False
        if any(unit.path in reached for unit in others):
            return False
        if any(self.module(home, unit) is None for unit in others):
            return False
        if self._only_defines(home):
            return True
        # files that import it anyway have its effects today
        return all(home.path in self.facts.imported_by(unit) for unit in others)

    def _only_defines(self, unit: Unit) -> bool:
        """Whether importing a file has no effect other than to bind its names."""
        for node in unit.tree.body:
            if isinstance(node, DEFINING) or _is_main(node):
                continue
            effects = self.facts.dataflow.effects(node)
            if effects.acts or effects.world:
                return False
        return True

    def module(self, home: Unit, unit: Unit) -> str | None:
        """The name by which a file imports another; None if it cannot.

        That is the name in its own imports, or one like those in the files that it runs with.
        """
        for name, found in self._imports(unit):
            if found is home:
                return name
        for name in self._possible_names(home, unit):
            if name and self._found(unit, name) is home:
                return name
        return None

    def _possible_names(self, home: Unit, unit: Unit) -> Iterator[str]:
        """Names by which a file may import another: relative as others have it, then absolute."""
        reached = self.facts.imported_by(unit)
        direct = self.facts.importers_of(unit)
        units = self.facts.project.units
        others = [other for other in units if other.path in reached]
        importers = [other for other in units if other.path in direct]
        # from .helpers import Adam
        if self._is_imported_relatively(unit, importers):
            beside = _dotted(home, PurePosixPath(unit.path).parent)
            if beside:
                yield f".{beside}"
        for other in others:
            yield from (_dotted(home, root) for root in self._roots(other))
        for other in importers:
            yield from (_dotted(home, root) for root in self._roots(other, unit))

    def _is_imported_relatively(self, unit: Unit, importers: Iterable[Unit]) -> bool:
        """Whether one of some files that import a file does so by a relative name."""
        for other in importers:
            names = (name for name, found in self._imports(other) if found is unit)
            if any(name.startswith(".") for name in names):
                return True
        return False

    def _roots(self, unit: Unit, module: Unit | None = None) -> Iterator[PurePosixPath]:
        """The folders from which the absolute imports of a file find its modules, or `module`."""
        for name, found in self._imports(unit):
            is_meant = module is None or found is module
            if name.startswith(".") or not is_meant:
                continue
            # import models.vit, which is src/models/vit.py: from `src`
            steps = PurePosixPath(found.path).with_suffix("").parts
            depth = found.is_package + len(name.split("."))
            above = len(steps) - depth
            yield PurePosixPath(*steps[:above])

    def _imports(self, unit: Unit) -> Iterator[tuple[str, Unit]]:
        """The modules of the project that the top of a file imports, each with its name there."""
        for node in unit.tree.body:
            names: list[str] = []
            # import models.vit
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            # from .models import vit: the module `.models`, and perhaps `.models.vit`
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                dot = "" if module.endswith(".") else "."
                below = [f"{module}{dot}{alias.name}" for alias in node.names]
                names = [module, *below]
            for name in names:
                found = self._found(unit, name)
                if found is not None:
                    yield name, found

    def _found(self, unit: Unit, name: str) -> Unit | None:
        """The module that a file means by a name, which may be relative."""
        paths = self._paths(unit, name)
        # none in the project, or several that it may be
        if len(paths) != 1:
            return None
        found = self.facts.project.at(paths[0])
        return None if found is None else found[0]

    def _paths(self, unit: Unit, name: str) -> tuple[str, ...]:
        """The paths, without ending, that a name may mean in the imports of a file."""
        rest = name.lstrip(".")
        level = len(name) - len(rest)
        # ..models.vit has two dots
        if level:
            return (self.facts.project.relative(unit, level, rest),)
        return self.facts.project.absolute(unit, rest)


def _is_main(node: ast.stmt) -> bool:
    """Whether this is `if __name__ == "__main__":`."""
    match node:
        case ast.If(
            test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]
        ):
            return True
    return False


def _path(unit: Unit) -> str:
    return unit.path


def _dotted(unit: Unit, root: PurePosixPath) -> str:
    """The full name of a module as seen from a folder above it; empty if it is not below that."""
    path = PurePosixPath(unit.path).with_suffix("")
    if not path.is_relative_to(root):
        return ""
    steps = path.relative_to(root).parts
    # models/__init__.py is `models`
    if unit.is_package:
        steps = steps[:-1]
    return ".".join(steps)
