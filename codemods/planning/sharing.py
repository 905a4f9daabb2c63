"""Classes that several files of a program need: one file has them, the others import them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.dataflow.bindings import bound_anywhere
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
        found = [support for support in edit.supports if support.is_shared]
        needs[unit].update((support.name, support) for support in found)
        text = " ".join(edit.texts)
        named[unit].update(
            support.name for support in found if f"support:{support.name}}}" in text
        )
    outcome = Shared()
    for together in _programs([unit for unit, found in needs.items() if found], facts):
        home = Homes(facts).of(together)
        # two scripts that do not import each other, and have no module in common
        if home is None:
            outcome.homeless.update(together)
            continue
        supports_of_all = [
            support for unit in together for support in needs[unit].values()
        ]
        called = _called(supports_of_all, {home, *together}, facts)
        for unit in {home, *together}:
            outcome.called[unit].update(called)
        for unit in together:
            outcome.given[home].update(needs[unit])
            if unit is not home:
                module = Homes(facts).module(home, unit) or ""
                outcome.imported[unit] = dict.fromkeys(sorted(named[unit]), module)
    return outcome


def _called(
    supports: Iterable[Support], units: Collection[Unit], facts: Facts
) -> dict[str, str]:
    """Other names for the helpers whose own name is taken in one of some files."""
    found = {}
    for support in {support.name: support for support in supports}.values():
        is_imported = any(_imports(support.name, unit, facts) for unit in units)
        others = () if is_imported else other_names(support.name)
        for name in (support.name, *others):
            renamed = called_otherwise(support, {support.name: name})
            if not any(_is_taken(renamed, unit, facts) for unit in units):
                found[support.name] = name
                break
    return {name: other for name, other in found.items() if other != name}


def _imports(name: str, unit: Unit, facts: Facts) -> int:
    """How many imports of a file bind a name to what is legacy."""
    return sum(
        item.name == name and legacy_name(item.target) is not None
        for item in facts.imported(unit)
    )


def _is_taken(support: Support, unit: Unit, facts: Facts) -> bool:
    """Whether the name of a helper stands for more in a file than it and legacy imports."""
    count = bound_anywhere(unit)[support.name]
    if not count:
        return False
    definition = ast.dump(ast.parse(support.source).body[-1])
    # an earlier run may have put the helper here, or into a file that this one imports it from
    own = sum(ast.dump(node) == definition for node in unit.tree.body)
    imported = 0
    for passed in facts.flow.reading.passed_on:
        if passed.unit is unit and passed.name == support.name:
            nodes = (
                node
                for one in passed.sources
                for node in ast.iter_child_nodes(one.node)
            )
            imported += any(ast.dump(node) == definition for node in nodes)
    return count > own + imported + _imports(support.name, unit, facts)


def _programs(units: list[Unit], facts: Facts) -> list[list[Unit]]:
    """The files that may be in one program, directly or by way of others."""
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
        """A file from which all others of some can import, preferably one of them.

        None if there is none.
        """
        others = (unit for unit in self.facts.project.units if unit not in units)
        candidates = [*sorted(units, key=_path), *sorted(others, key=_path)]
        return next((home for home in candidates if self._serves(home, units)), None)

    def _serves(self, home: Unit, units: list[Unit]) -> bool:
        """Whether some files can import from a file, without a circle and without effects."""
        others = [unit for unit in units if unit is not home]
        reached = self.facts.imported_by(home)
        if home.places or any(unit.path in reached for unit in others):
            return False
        if any(self.module(home, unit) is None for unit in others):
            return False
        return self._only_defines(home) or all(
            home.path in self.facts.imported_by(unit) for unit in others
        )

    def _only_defines(self, unit: Unit) -> bool:
        """Whether importing a file has no effect other than to bind its names."""
        running = (node for node in unit.tree.body if not isinstance(node, DEFINING))
        effects = [
            self.facts.dataflow.effects(node) for node in running if not _is_main(node)
        ]
        return not any(found.acts or found.world for found in effects)

    def module(self, home: Unit, unit: Unit) -> str | None:
        """The name by which a file imports another; None if it cannot.

        That is the name in its own imports, or one like those in the files that it runs with.
        """
        own = next((name for name, found in self._imports(unit) if found is home), None)
        if own is not None:
            return own
        names = (name for name in self._possible_names(home, unit) if name)
        return next((name for name in names if self._found(unit, name) is home), None)

    def _possible_names(self, home: Unit, unit: Unit) -> Iterator[str]:
        """Names by which a file may import another: relative as others have it, then absolute."""
        reached = self.facts.imported_by(unit)
        direct = self.facts.importers_of(unit)
        others = [other for other in self.facts.project.units if other.path in reached]
        importers = [
            other for other in self.facts.project.units if other.path in direct
        ]
        imported = (
            name
            for other in importers
            for name, found in self._imports(other)
            if found is unit
        )
        if any(name[0] == "." for name in imported):
            beside = _dotted(home, PurePosixPath(unit.path).parent)
            if beside:
                yield f".{beside}"
        for other in others:
            yield from (_dotted(home, root) for root in self._roots(other))
        for other in importers:
            yield from (_dotted(home, root) for root in self._roots(other, unit))

    def _roots(self, unit: Unit, module: Unit | None = None) -> Iterator[PurePosixPath]:
        """The folders from which the absolute imports of a file find its modules, or `module`."""
        for name, found in self._imports(unit):
            if not name.startswith(".") and found is (module or found):
                steps = PurePosixPath(found.path).with_suffix("").parts
                above = len(steps) - found.is_package - len(name.split("."))
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
                names = [
                    module,
                    *(f"{module}{dot}{alias.name}" for alias in node.names),
                ]
            for name in names:
                found = self._found(unit, name)
                if found is not None:
                    yield name, found

    def _found(self, unit: Unit, name: str) -> Unit | None:
        """The module that a file means by a name, which may be relative."""
        project, rest = self.facts.project, name.lstrip(".")
        level = len(name) - len(rest)
        paths = (
            (project.relative(unit, level, rest),)
            if level
            else project.absolute(unit, rest)
        )
        if len(paths) != 1:
            return None
        found = project.at(paths[0])
        return None if found is None else found[0]


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
    return ".".join(steps[:-1] if unit.is_package else steps)
