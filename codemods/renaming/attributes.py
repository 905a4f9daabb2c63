"""Attributes of plain classes that get new names: `self.state` for `self.optimizer`."""

from __future__ import annotations

import ast
from collections import defaultdict

from codemods.evidence import CONFIG_LIKE, last_word
from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.objects import Class, Instance, Thing
from codemods.renaming.names import STATE, WORD, Attribute, Renames, kind_of, scope_path

BY_NAME = frozenset(("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__slots__"))
"""What has the names of attributes in quotes."""

Nodes = list[tuple[Unit, ast.Attribute]]


def plan_attributes(facts: Facts, done: set[Thing], found: dict[Unit, Renames]) -> None:
    """Note the new names of what instances of plain classes hold, where every place that says them is in view.

    The fields of dataclasses keep their names: checkpoints have them as keys.
    """
    by_name: dict[str, Nodes] = defaultdict(list)
    for unit, node in facts.flow.reading.attributes:
        by_name[node.attr].append((unit, node))
    quoted = {
        node.value
        for unit in facts.project.units
        for node in unit.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for cls in facts.flow.reading.classes:
        for name in sorted(by_name):
            if not WORD.search(name) or kind_of(facts.flow.solver.at(facts.flow.field(cls, name)), done) != "optimizer":
                continue
            new = WORD.sub(STATE, name)
            if (
                name in quoted
                or not _is_plain(cls, name, facts)
                or any(_concerns(cls, one, facts) for one in by_name[new])
            ):
                continue
            nodes = _all_of(cls, by_name[name], facts)
            for unit, node in nodes:
                found[unit].attributes[Attribute(scope_path(node, unit), ast.unparse(node))] = new


def _is_plain(cls: Class, name: str, facts: Facts) -> bool:
    """Whether a class has an attribute by assignments alone, shares it with no other class, and tells nobody its name."""
    others = (other for other in facts.flow.reading.classes if other is not cls)
    shared = any(cls in facts.flow.ancestry(other) for other in others) or bool(cls.node.bases or cls.node.keywords)
    by_name = facts.flow.is_asked_by_any_name(cls) or not BY_NAME.isdisjoint(cls.scope.names)
    own = name in cls.scope.names or bool(cls.node.decorator_list)
    return not (shared or by_name or own or "__dict__" in cls.unit.code)


def _concerns(cls: Class, place: tuple[Unit, ast.Attribute], facts: Facts) -> bool:
    """Whether an attribute may be one of an instance of a class."""
    items = list(facts.objects(place[1].value))
    return any(isinstance(item, Instance) and item.cls is cls for item in items) or not _is_told(place[1].value, facts)


def _is_told(node: ast.expr, facts: Facts) -> bool:
    known = any(isinstance(item, Instance | Thing) for item in facts.objects(node)) or bool(facts.full_name(node))
    return known or CONFIG_LIKE.search(last_word(node)) is not None


def _all_of(cls: Class, places: Nodes, facts: Facts) -> Nodes:
    """The places that say an attribute of a class; none if one of them may say something else, too."""
    own: Nodes = []
    texts: set[Attribute] = set()
    for unit, node in places:
        items = list(facts.objects(node.value))
        mine = [item for item in items if isinstance(item, Instance) and item.cls is cls]
        if mine and len(mine) == len(items):
            own.append((unit, node))
            texts.add(Attribute(scope_path(node, unit), ast.unparse(node)))
        elif mine or not _is_told(node.value, facts):
            return []
    others = {Attribute(scope_path(node, unit), ast.unparse(node)) for unit, node in places if (unit, node) not in own}
    return own if texts.isdisjoint(others) else []
