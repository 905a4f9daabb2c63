"""Which optimizers get to a file that is set aside, as an internal error came of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.sources.modules import Unit, file_of

if TYPE_CHECKING:
    from codemods.analysis.facts import Facts


def beyond(facts: Facts, aside: Collection[str]) -> dict[LegacyObject, str]:
    """The objects that get to files set aside, and to which."""
    found: dict[LegacyObject, str] = {}
    if not aside:
        return found
    for _, call in facts.flow.reading.calls:
        # the files that are not analysed, of which a call may be of a function
        files = map(file_of, facts.flow.origin_names(call.func))
        for file in {file for file in files if file in aside}:
            # what the call is given, and what it gives
            for node in (call, *values_of(call)):
                inner = node.value if isinstance(node, ast.Starred) else node
                carried = facts.flow.carried(facts.flow.places.read(inner))
                found |= dict.fromkeys(carried, str(file))
    for file in sorted(aside):
        for unit in facts.project.units:
            if file in facts.importers_of(unit):
                found |= dict.fromkeys(_named(facts, unit, facts.others[file]), file)
    return found


def _named(facts: Facts, unit: Unit, text: str) -> Iterator[LegacyObject]:
    """What the variables and functions of a file have, take and return that a text names."""
    scope = facts.flow.modules[unit]
    for name in sorted(scope.names):
        if name in text:
            yield from facts.within(("variable", scope, name))
