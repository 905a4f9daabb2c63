"""Attributes of plain classes that get new names: `self.state` for `self.optimizer`."""

from __future__ import annotations

import ast
from collections import defaultdict

from codemods.analysis.facts import Facts
from codemods.analysis.naming import CONFIG_LIKE, last_word
from codemods.inference.objects import Class, Instance, LegacyObject, Module
from codemods.renaming.new_names import (
    STATE,
    WORD,
    Renames,
    attribute_of,
    kind_of,
)
from codemods.sources.modules import Unit

BY_NAME = frozenset(
    ("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__slots__")
)
"""Methods and variables of a class by which attributes may be read by their names."""

Nodes = list[tuple[Unit, ast.Attribute]]


def plan_attributes(
    facts: Facts, done: set[LegacyObject], found: dict[Unit, Renames]
) -> None:
    """Note the new names of attributes of plain classes, where every place with them is in view.

    The fields of dataclasses keep their names: checkpoints have them as keys.
    """
    by_name: dict[str, Nodes] = defaultdict(list)
    for unit, node in facts.flow.reading.attributes:
        by_name[node.attr].append((unit, node))
    nodes = (node for unit in facts.project.units for node in unit.nodes)
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    quoted = {value for value in constants if isinstance(value, str)}
    for cls in facts.flow.reading.classes:
        for name in sorted(by_name):
            if not WORD.search(name):
                continue
            place = facts.flow.field(cls, name)
            items = facts.flow.solver.at(place)
            if kind_of(items, done) != "optimizer":
                continue
            # the class may have a `self.state` already
            new = WORD.sub(STATE, name)
            # getattr(self, "optimizer")
            if name in quoted:
                continue
            owners = (node.value for _, node in by_name[new])
            is_taken = any(_may_be_of(one, cls, facts) for one in owners)
            if is_taken or not _is_plain(cls, name, facts):
                continue
            for unit, node in _all_of(cls, by_name[name], facts):
                attribute = attribute_of(node, unit)
                found[unit].attributes[attribute] = new


def _may_be_of(node: ast.expr, cls: Class, facts: Facts) -> bool:
    """Whether an expression may be an instance of a class, as far as is known."""
    return facts.may_be_one(node, cls) or not is_known(node, facts)


def _is_plain(cls: Class, name: str, facts: Facts) -> bool:
    """Whether a class has an attribute only by assignments, and it is not read by its name.

    No class that it derives from, or that derives from it, has the attribute, too.
    """
    if cls.node.bases or cls.node.keywords or cls.node.decorator_list:
        return False
    others = (other for other in facts.flow.reading.classes if other is not cls)
    if any(cls in facts.flow.ancestry(other) for other in others):
        return False
    names = cls.scope.names
    if facts.flow.is_asked_by_any_name(cls) or not BY_NAME.isdisjoint(names):
        return False
    return name not in names and "__dict__" not in cls.unit.code


def is_known(node: ast.expr, facts: Facts) -> bool:
    """Whether it is known what an expression is; a configuration has words and numbers."""
    items = facts.objects(node)
    if any(isinstance(item, Instance | Module | LegacyObject) for item in items):
        return True
    # jax.config
    if facts.full_name(node):
        return True
    # FLAGS.optimizer
    return CONFIG_LIKE.search(last_word(node)) is not None


def _all_of(cls: Class, places: Nodes, facts: Facts) -> Nodes:
    """The places of an attribute of a class; none if one of them may be of another class."""
    own: Nodes = []
    for unit, node in places:
        # `self` of `self.optimizer`
        items = {*facts.objects(node.value)}
        if items == {Instance(cls)}:
            own.append((unit, node))
        # something of unknown origin may be of the class
        elif Instance(cls) in items or not is_known(node.value, facts):
            return []
    # a place is found again by its text, so no other place may have the same
    texts = {(unit, node): attribute_of(node, unit) for unit, node in places}
    others = {text for place, text in texts.items() if place not in own}
    if others.isdisjoint(texts[place] for place in own):
        return own
    return []
