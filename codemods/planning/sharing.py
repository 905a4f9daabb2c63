"""Classes that several files of a program need: one file has them, and the others import them from there."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.dataflow.bindings import bound_anywhere
from codemods.optimizers.base import Support, called_otherwise, other_names
from codemods.rewriting.edits import Edit
from codemods.sources.modules import Unit

DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""The statements that bind names."""


@dataclass
class Shared:
    """What is shared: for each file the helpers that it has for others, and those that it imports, with the module.

    `called` has other names for helpers whose own name means something else in one of their files. `homeless` are the files that
    need the same helpers, where no file has a place for these.
    """

    given: dict[Unit, dict[str, Support]] = field(default_factory=lambda: defaultdict(dict))
    imported: dict[Unit, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    called: dict[Unit, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    homeless: set[Unit] = field(default_factory=set)


def shared(edits: Iterable[tuple[Unit, Edit]], facts: Facts) -> Shared:
    """Where the helpers stand of which a program must have but one."""
    needs: dict[Unit, dict[str, Support]] = defaultdict(dict)
    said: dict[Unit, set[str]] = defaultdict(set)
    for unit, edit in edits:
        supports: tuple[Support, ...] = getattr(edit, "supports", ())
        found = [support for support in supports if support.is_shared]
        needs[unit].update((support.name, support) for support in found)
        said[unit].update(
            support.name for support in found if f"support:{support.name}}}" in repr(edit)
        )
    outcome = Shared()
    for together in _programs([unit for unit, found in needs.items() if found], facts):
        home = Homes(facts).of(together)
        if home is None:
            outcome.homeless.update(together)
            continue
        called = _called(
            [support for unit in together for support in needs[unit].values()],
            {home, *together},
            facts,
        )
        for unit in {home, *together}:
            outcome.called[unit].update(called)
        for unit in together:
            outcome.given[home].update(needs[unit])
            if unit is not home:
                outcome.imported[unit] = dict.fromkeys(
                    sorted(said[unit]), Homes(facts).module(home, unit) or ""
                )
    return outcome


def _called(supports: Iterable[Support], units: Collection[Unit], facts: Facts) -> dict[str, str]:
    """Other names for the helpers whose own name is taken in one of some files."""
    found = {}
    for support in {support.name: support for support in supports}.values():
        others = (
            other_names(support.name)
            if not any(_imports(support.name, unit, facts) for unit in units)
            else ()
        )
        for name in (support.name, *others):
            named = called_otherwise(support, {support.name: name})
            if not any(_is_taken(named, unit, facts) for unit in units):
                found[support.name] = name
                break
    return {name: other for name, other in found.items() if other != name}


def _imports(name: str, unit: Unit, facts: Facts) -> int:
    """How many imports of a file bind a name to what is legacy."""
    return sum(
        item.name == name and legacy_name(item.target) is not None for item in facts.imported(unit)
    )


def _is_taken(support: Support, unit: Unit, facts: Facts) -> bool:
    """Whether a file has another thing of the name, which is neither this helper nor a legacy import."""
    count = bound_anywhere(unit)[support.name]
    if not count:
        return False
    definition = ast.dump(ast.parse(support.source).body[-1])
    own = [node for node in unit.tree.body if ast.dump(node) == definition]
    passed = [
        one for one in facts.flow.reading.passed_on if one.unit is unit and one.name == support.name
    ]
    sources = [
        [ast.dump(node) for scope in one.sources for node in ast.iter_child_nodes(scope.node)]
        for one in passed
    ]
    return count > len(own) + _imports(support.name, unit, facts) + sum(
        definition in found for found in sources
    )


def _programs(units: list[Unit], facts: Facts) -> list[list[Unit]]:
    """The files that may be in one program with one another, directly or by way of others."""
    found: list[list[Unit]] = []
    for unit in units:
        program = facts.together(unit)
        near = [group for group in found if any(one.path in program for one in group)]
        found = [group for group in found if group not in near]
        found.append([*(one for group in near for one in group), unit])
    return found


class Homes:
    """Finds a file that others can import from."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def of(self, units: list[Unit]) -> Unit | None:
        """A file from which all others of some can import, rather one of them; None if there is none."""
        others = (unit for unit in self.facts.project.units if unit not in units)
        candidates = [*sorted(units, key=_path), *sorted(others, key=_path)]
        return next((home for home in candidates if self._serves(home, units)), None)

    def _serves(self, home: Unit, units: list[Unit]) -> bool:
        others = [unit for unit in units if unit is not home]
        reached = self.facts.imported_by(home)
        return (
            not home.places
            and all(unit.path not in reached for unit in others)
            and all(self.module(home, unit) is not None for unit in others)
            and (
                self._only_defines(home)
                or all(home.path in self.facts.imported_by(unit) for unit in others)
            )
        )

    def _only_defines(self, unit: Unit) -> bool:
        """Whether nothing happens when a file is imported but that its names are bound."""
        running = (node for node in unit.tree.body if not isinstance(node, DEFINING))
        effects = [self.facts.dataflow.effects(node) for node in running if not _is_main(node)]
        return not any(found.acts or found.world for found in effects)

    def module(self, home: Unit, unit: Unit) -> str | None:
        """How a file says the module of another: as it imports that, or as what it runs with imports others beside it."""
        own = (name for name, found in self._imports(unit) if found is home)
        reached = self.facts.imported_by(unit)
        others = (other for other in self.facts.project.units if other.path in reached)
        importers = [
            other
            for other in self.facts.project.units
            if other.path in self.facts.importers_of(unit)
        ]
        imported = (
            name for other in importers for name, found in self._imports(other) if found is unit
        )
        beside = (
            _dotted(home, PurePosixPath(unit.path).parent)
            if any(name[0] == "." for name in imported)
            else ""
        )
        roots = (
            *(root for other in others for root in self._roots(other)),
            *(root for other in importers for root in self._roots(other, unit)),
        )
        names = (*([f".{beside}"] if beside else []), *(_dotted(home, root) for root in roots))
        return next(
            chain(own, (name for name in names if name and self._is(home, unit, name))), None
        )

    def _roots(self, unit: Unit, module: Unit | None = None) -> Iterator[PurePosixPath]:
        """The folders from which the absolute imports at the top of a file find its modules, or a certain one."""
        for name, found in self._imports(unit):
            if not name.startswith(".") and found is (module or found):
                steps = PurePosixPath(found.path).with_suffix("").parts
                yield PurePosixPath(*steps[: len(steps) - found.is_package - len(name.split("."))])

    def _imports(self, unit: Unit) -> Iterator[tuple[str, Unit]]:
        """The modules of the project that the imports at the top of a file name, with how they say it."""
        for node in unit.tree.body:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                dot = "" if module.endswith(".") else "."
                names = [module, *(f"{module}{dot}{alias.name}" for alias in node.names)]
            for name in names:
                found = self._found(unit, name)
                if found is not None:
                    yield name, found

    def _is(self, home: Unit, unit: Unit, name: str) -> bool:
        return self._found(unit, name) is home

    def _found(self, unit: Unit, name: str) -> Unit | None:
        """The module that a file means by a name, which may be relative."""
        project, rest = self.facts.project, name.lstrip(".")
        level = len(name) - len(rest)
        paths = (project.relative(unit, level, rest),) if level else project.absolute(unit, rest)
        return (project.at(paths[0]) or (None, ""))[0] if len(paths) == 1 else None


def _is_main(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]):
            return True
    return False


def _path(unit: Unit) -> str:
    return unit.path


def _dotted(unit: Unit, root: PurePosixPath) -> str:
    """The full name of a module as a folder above it has it; empty if it is not below that."""
    path = PurePosixPath(unit.path).with_suffix("")
    if not path.is_relative_to(root):
        return ""
    steps = path.relative_to(root).parts
    return ".".join(steps[:-1] if unit.is_package else steps)
