"""Attributes of plain classes that get new names: `self.state` for `self.optimizer`."""

from __future__ import annotations

import ast
from collections import defaultdict

from codemods.analysis.evidence import CONFIG_LIKE, last_word
from codemods.analysis.facts import Facts
from codemods.flow.objects import Class, Instance, Thing
from codemods.renaming.names import STATE, WORD, Attribute, Renames, kind_of, scope_path
from codemods.sources.modules import Unit

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
    nodes = (node for unit in facts.project.units for node in unit.nodes)
    quoted = {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for cls in facts.flow.reading.classes:
        for name in sorted(by_name):
            if (
                not WORD.search(name)
                or kind_of(facts.flow.solver.at(facts.flow.field(cls, name)), done) != "optimizer"
            ):
                continue
            new = WORD.sub(STATE, name)
            owners = [node.value for _, node in by_name[new]]
            taken = name in quoted or any(
                facts.may_be_one(one, cls) or not _is_told(one, facts) for one in owners
            )
            for unit, node in (
                _all_of(cls, by_name[name], facts)
                if _is_plain(cls, name, facts) and not taken
                else ()
            ):
                found[unit].attributes[Attribute(scope_path(node, unit), ast.unparse(node))] = new


def _is_plain(cls: Class, name: str, facts: Facts) -> bool:
    """Whether a class has an attribute by assignments alone, shares it with no other class, and tells nobody its name."""
    others = (other for other in facts.flow.reading.classes if other is not cls)
    shared = any(cls in facts.flow.ancestry(other) for other in others) or bool(
        cls.node.bases or cls.node.keywords
    )
    by_name = facts.flow.is_asked_by_any_name(cls) or not BY_NAME.isdisjoint(cls.scope.names)
    own = name in cls.scope.names or bool(cls.node.decorator_list)
    return not (shared or by_name or own or "__dict__" in cls.unit.code)


def _is_told(node: ast.expr, facts: Facts) -> bool:
    known = any(isinstance(item, Instance | Thing) for item in facts.objects(node)) or bool(
        facts.full_name(node)
    )
    return known or CONFIG_LIKE.search(last_word(node)) is not None


def _all_of(cls: Class, places: Nodes, facts: Facts) -> Nodes:
    """The places that say an attribute of a class; none if one of them may say something else, too."""
    own: Nodes = []
    for unit, node in places:
        items = {*facts.objects(node.value)}
        if items == {Instance(cls)}:
            own.append((unit, node))
        elif Instance(cls) in items or not _is_told(node.value, facts):
            return []
    texts = {
        place: Attribute(scope_path(place[1], place[0]), ast.unparse(place[1])) for place in places
    }
    others = {text for place, text in texts.items() if place not in own}
    return own if others.isdisjoint(texts[place] for place in own) else []
