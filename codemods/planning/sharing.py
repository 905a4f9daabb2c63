"""Helpers that are long, or that several files need: a new module of the project has them."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

import libcst as cst

from codemods.analysis.facts import Facts
from codemods.model import Form
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import converted
from codemods.optimizers.base import Support
from codemods.rewriting.edits import (
    ConvertDefinition,
    Edit,
)
from codemods.sources.modules import Unit
from codemods.sources.places import Places

NAMES = ("optax_compat", "optax_helpers")
"""What a new module is called: the first that is free."""

LONGEST = 15
"""A helper of more lines is in the new module, also where one file alone needs it."""

NARROW = re.compile(r"^  \S", re.MULTILINE)
WORD = re.compile(r"\w+")

Made = tuple[Unit, ast.AST, Edit]
"""An edit, with its file and the node that it is about."""

Needs = dict[Unit, dict[str, Support]]
"""The helpers that each file needs, each behind those that it calls."""


@dataclass
class Shared:
    """Where helpers are, if not in the one file that needs them.

    `modules` has the new ones by path, without ending, each with its helpers. `imported` has for
    each file the helpers that it may import from one, with the name of that module there. `given`
    are those that a file itself has for others, and `called` other names for helpers in a file.
    `homeless` are the files that need one and the same helper, and have no module in common.
    `narrow` are the modules that are indented by two.
    """

    places: Places | None = None
    modules: dict[str, dict[str, Support]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    imported: dict[Unit, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    given: dict[Unit, dict[str, Support]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    called: dict[Unit, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    homeless: set[Unit] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)

    def module(self, unit: Unit) -> tuple[str, str] | None:
        """A new module that a file can import: where it is, and its name there."""
        for place in self.modules:
            name = self.name(unit, place)
            if name is not None:
                return place, name
        return None

    def name(self, unit: Unit, place: str) -> str | None:
        """The name by which a file imports the module at a place."""
        found = self.places.name(unit.path, place) if self.places else None
        return None if found is None else found.said


def shared(made: Iterable[Made], facts: Facts, form: Form) -> Shared:
    """Choose the modules for helpers, and what each file imports."""
    needs: Needs = defaultdict(dict)
    for unit, node, edit in made:
        for support in _supports(edit, node, unit, form):
            # one without code is only an import, which each file has itself
            if support.source:
                needs[unit][support.name] = support
    counts = Counter(chain.from_iterable(needs.values()))
    moving = {
        unit.path: unit
        for unit, supports in sorted(needs.items(), key=lambda item: item[0].path)
        if any(is_long(one) or counts[name] > 1 for name, one in supports.items())
    }
    outcome = Shared()
    # the only file of a program keeps what it needs, as what comes from standard input
    if not moving or sum(unit.writable for unit in facts.project.read) < 2:
        return outcome
    texts = {unit.path: unit.code for unit in facts.project.read}
    places = outcome.places = Places(
        {**facts.project.others, **texts},
        facts.paths,
        graphs=facts.graphs,
        written=[unit.path for unit in facts.project.read if unit.writable],
    )
    files = [path for path, unit in moving.items() if not unit.places]
    for place, together in _by_place(files, places).items():
        _move(place, [moving[path] for path in together], needs, outcome)
    # a notebook runs in any folder: it finds the new module only where it imports the package
    for path, unit in moving.items():
        for place, there in outcome.modules.items():
            if unit.places and places.imports_beside(path, place):
                lacking = {
                    name: one for name, one in needs[unit].items() if name not in there
                }
                if any(map(is_long, lacking.values())):
                    there.update(lacking)
                _import(unit, place, needs[unit], outcome)
                break
    sharing = [
        path
        for path, unit in moving.items()
        if any(support.is_shared for support in needs[unit].values())
    ]
    for program in places.programs(sharing):
        served = {outcome.module(moving[path]) for path in program}
        modules = {None if one is None else one[0] for one in served}
        if len(program) > 1 and (len(modules) > 1 or None in modules):
            outcome.homeless.update(moving[path] for path in program)
    return outcome


def is_long(support: Support) -> bool:
    """Whether a helper is in a module of its own, whoever needs it."""
    return support.is_shared or support.source.count("\n") > LONGEST


def _supports(edit: Edit, node: ast.AST, unit: Unit, form: Form) -> Iterable[Support]:
    """The helpers that an edit needs."""
    match edit, node:
        case ConvertDefinition(), ast.Call():
            call = cst.ensure_type(
                cst.parse_expression(f"({unit.source(node)})"), cst.Call
            )
            return converted(
                optimizers()[edit.optimizer], call, form, edit.inject
            ).supports
    return edit.supports


def _by_place(paths: list[str], places: Places) -> dict[str, list[str]]:
    """The files by the new module that they can import, all of them by one name.

    It is that of all files, else of those of a program, of a folder, or of each.
    """
    found: dict[str, list[str]] = defaultdict(list)
    pending = [paths] if paths else []
    while pending:
        group = pending.pop()
        place = next(filter(None, (places.find(group, name) for name in NAMES)), None)
        if place is not None:
            if places.serves(place, [*found[place], *group]):
                found[place] += group
            continue
        folders: dict[str, list[str]] = defaultdict(list)
        for path in group:
            folders[path.rpartition("/")[0]].append(path)
        ways = (places.programs(group), [*folders.values()], [[path] for path in group])
        pending += next((parts for parts in ways if len(parts) > 1), [])
    return {place: sorted(group) for place, group in found.items()}


def _move(place: str, units: list[Unit], needs: Needs, outcome: Shared) -> None:
    """Put helpers of some files into a module that all of them can import."""
    counts = Counter(chain.from_iterable(needs[unit] for unit in units))
    supports = _commonest(needs[unit] for unit in units)
    is_needed = any(is_long(one) or counts[name] > 1 for name, one in supports.items())
    if not is_needed:
        return
    outcome.modules[place].update(supports)
    if any(NARROW.search(unit.code) for unit in units):
        outcome.narrow.add(place)
    for unit in units:
        _import(unit, place, needs[unit], outcome)


def _import(
    unit: Unit, place: str, needed: dict[str, Support], outcome: Shared
) -> None:
    """Let a file import what it needs of a new module."""
    there = outcome.modules[place]
    # where a helper is another one here, what calls it is, too
    own: set[str] = set()
    for name, support in needed.items():
        words = WORD.findall(support.source)
        if support != there.get(name) or not own.isdisjoint(words):
            own.add(name)
    module = outcome.name(unit, place) or ""
    imported = sorted(needed.keys() - own)
    outcome.imported[unit] = dict.fromkeys(imported, module)


def _commonest(needs: Iterable[dict[str, Support]]) -> dict[str, Support]:
    """The helpers of some files: of those with one name, the one that most of them need."""
    found: dict[str, Counter[Support]] = defaultdict(Counter)
    for supports in needs:
        for name, support in supports.items():
            found[name][support] += 1
    return {name: count.most_common(1)[0][0] for name, count in found.items()}
