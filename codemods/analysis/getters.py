"""Attributes of legacy objects that `operator.attrgetter` and `methodcaller` read."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.dataflow.program import functions_in
from codemods.inference.binding import values_of
from codemods.inference.objects import (
    External,
    Getter,
    LegacyObject,
    Object,
    Place,
    plain,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import full_names

MAKING = full_names("operator", "attrgetter methodcaller")
ALL = frozenset[str]().union(*ATTRIBUTES.values())


def getter_use(facts: Queries, unit: Unit, call: ast.Call) -> Use | None:
    """The use that `operator.attrgetter("target")` is, by what the getter is called with.

    Its others are what has no such attribute, or may have none.
    """
    if MAKING.isdisjoint(facts.externals(call.func)):
        return None
    made = (item for item in facts.objects(call) if isinstance(item, Getter))
    paths = [path for getter in made for path in getter.paths]
    if ALL.isdisjoint(chain.from_iterable(paths)):
        return None
    read: dict[str, None] = {}
    objects: dict[LegacyObject, None] = {}
    others: dict[Object, None] = {}
    for site, given in _sites(facts, call):
        owners = [
            owner
            for place in given
            for path in paths
            for owner in _owners(facts, path, place)
        ]
        for name, item in owners:
            read[name] = None
            if isinstance(item, LegacyObject):
                objects[item] = None
            else:
                others[item] = None
        if not owners:
            others[External(ast.unparse(site))] = None
    if not objects:
        return None
    name = ", ".join(read)
    return Use("reflection", name, unit, call, tuple(objects), tuple(others))


def _sites(facts: Queries, call: ast.Call) -> Iterator[tuple[ast.Call, list[Place]]]:
    """The calls of a getter, and those that it is handed to, each with what it gets there."""
    for unit, node in facts.flow.stands_at(call):
        # not what holds the getter, or what it gave
        if not any(_is_made_by(call, item) for item in facts.objects(node)):
            continue
        around = unit.parents.get(node)
        if isinstance(around, ast.keyword):
            around = unit.parents.get(around)
        match around:
            # target_of(optimizer)
            case ast.Call(func=called, args=[first, *_]) if called is node:
                yield around, [("expression", first, None)]
            # map(target_of, optimizers), but not a function of the project
            case ast.Call(func=called) if node in values_of(around):
                if not any(functions_in(facts.objects(called))):
                    others = (one for one in values_of(around) if one is not node)
                    places = (("expression", one, None) for one in others)
                    yield around, [("each of", place) for place in places]


def _is_made_by(call: ast.Call, item: Object) -> bool:
    getter = plain(item)
    return isinstance(getter, Getter) and getter.call is call


def _owners(
    facts: Queries, path: Iterable[str], place: Place
) -> Iterator[tuple[str, Object]]:
    """The attribute of legacy objects that is read along a path, with each object that is there."""
    for attribute in path:
        items = facts.flow.solver.at(place)
        legacy = (item for item in items if isinstance(item, LegacyObject))
        if any(attribute in ATTRIBUTES.get(item.kind, ()) for item in legacy):
            yield from ((attribute, item) for item in items)
            return
        # attrgetter("agent.optimizer.target")
        place = ("attribute of", place, attribute)
