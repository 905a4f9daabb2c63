"""The idioms in their order, each with the rule for what it changes."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from codemods.analysis.uses import Use
from codemods.idioms.base import Idiom
from codemods.rewriting.edits import Edit
from codemods.rules import rule

if TYPE_CHECKING:
    from codemods.rules.context import Context

MODULES = (
    "codemods.idioms.schedules",
    "codemods.idioms.clipping",
    "codemods.idioms.own_states",
    "codemods.functional",
)
"""Where the idioms are, each behind those whose results it asks for."""


@cache
def in_order() -> tuple[type[Idiom], ...]:
    """The classes of all idioms."""
    found: list[type[Idiom]] = []
    for module in MODULES:
        idiom: type[Idiom] = importlib.import_module(module).IDIOM
        found.append(idiom)
    return tuple(found)


def _register(idiom: type[Idiom]) -> None:
    """Let the changes of an idiom be decided on as any other use is, and explained as a rule is."""

    def decide(use: Use, context: Context) -> Edit:
        return context.idioms[idiom].edit(use)

    decide.__doc__ = idiom.__doc__
    rule(idiom.code, idiom.summary, idiom.kind, before=idiom.before, after=idiom.after)(
        decide
    )


for _idiom in in_order():
    _register(_idiom)
