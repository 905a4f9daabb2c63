"""Whether an expression may be what a package makes that is not in view."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.queries import Queries
from codemods.inference.binding import values_of
from codemods.inference.holders import unwrapped
from codemods.inference.objects import External, LegacyObject, Object, Place, Result
from codemods.inference.out_of_view import effect_of, is_number, is_well_known


def may_be_unseen(facts: Queries, node: ast.expr) -> bool:
    """Whether an object may come from a package out of view: `Own(rate) if own else Adam(rate)`."""
    places = facts.flow.behind(facts.flow.places[node])
    return any(_is_unseen(facts, place) for place in places)


def _is_unseen(facts: Queries, place: Place) -> bool:
    # TABLE[name](rate) of a table that has `Own` among others
    if isinstance(place, ast.Call):
        return _calls_unseen(facts, place)
    if facts.flow.sources(place):
        return False
    items = facts.flow.solver.at(place)
    # what is given an optimizer may give that back, and `create` is asked by itself
    if any(isinstance(one, LegacyObject) and one.kind == "optimizer" for one in items):
        return False
    return _unknown(items)


def _calls_unseen(facts: Queries, call: ast.Call) -> bool:
    """Whether a call may be of a function or class out of view."""
    given = values_of(call)
    if isinstance(call.func, ast.Attribute):
        given = [call.func.value, *given]
    # what is given an optimizer may give that back
    if any(facts.within(facts.flow.places.read(one)) for one in given):
        return False
    if _unknown(map(unwrapped, facts.objects(call.func))):
        return True
    return any(
        _is_unknown(name)
        for root in facts.flow.roots(facts.flow.places[call.func])
        if isinstance(root, ast.expr)
        for name in facts.flow.origin_names(root)
    )


def is_something_else(facts: Queries, node: ast.expr) -> bool:
    """Whether an object comes from packages that have nothing to do with legacy optimizers."""
    names = facts.flow.origin_names(node)
    if all(map(is_number, names)):
        # beside a number, an attribute is read of the container or instance
        return all(isinstance(item, Result | External) for item in facts.objects(node))
    return all(is_well_known(name) for name in names if not is_number(name))


def _unknown(items: Iterable[Object]) -> bool:
    """Whether one of some objects is of a package of which nothing is known."""
    names = (item.name for item in items if isinstance(item, External | Result))
    return any(map(_is_unknown, names))


def _is_unknown(name: str) -> bool:
    """Whether a full name is one of a package of which nothing is known."""
    return bool(name) and effect_of(name) == "unknown" and not is_well_known(name)
