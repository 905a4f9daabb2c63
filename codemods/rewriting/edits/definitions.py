"""Edits of what makes the definitions of optimizers: their constructors and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.optimizers import composite
from codemods.optimizers.functions import Alias
from codemods.rewriting.edits.base import (
    Edit,
    Made,
    Place,
)
from codemods.rewriting.edits.calls import RewriteCall
from codemods.rewriting.edits.expressions import Replace


@dataclass(frozen=True)
class ConvertDefinition(Edit):
    """Turn the constructor call at `span` into its optax form.

    `rate` is the source text of another learning rate, if it gets one, and `as_float` the form that
    makes a float of its own, if that may be none when the program runs. `sets_decay` says that each
    step sets the weight decay. `link` is the source text of what comes first in the chain. `note`
    is what the report says of the site.
    """

    optimizer: str
    inject: bool
    rate: str = ""
    as_float: str = ""
    sets_decay: bool = False
    link: str = ""
    note: str = ""

    @property
    def needs(self) -> set[str]:
        # a composite is written with helpers
        return set() if self.optimizer in composite() else {"optax"}

    def gone(self, place: Place) -> Iterable[ast.AST]:
        return _callee(place)

    @property
    def made(self) -> Made:
        schedule = "" if self.inject else self.rate
        return Made(self.inject, schedule, self.link)


@dataclass(frozen=True)
class ConvertClass(Replace):
    """Put a function in the place of a legacy class, or of the callee of its call.

    `alias` is the function of optax, if there is one that takes the same arguments by the same
    names.
    """

    inject: bool = False
    alias: Alias | None = None

    @property
    def made(self) -> Made:
        return Made(self.inject)


@dataclass(frozen=True)
class ConvertPartial(RewriteCall):
    """Put the function in the place of the class in `functools.partial(optim.Adam, beta1=0.5)`."""

    alias: Alias | None = None


def _callee(place: Place) -> Iterable[ast.AST]:
    """The name of the class, in `optim.Adam(rate)`, whose arguments stay."""
    return ast.walk(place.node.func) if isinstance(place.node, ast.Call) else ()
