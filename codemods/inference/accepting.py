"""Which calls a method accepts: with other arguments, a call of its name is one of another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from inspect import Signature
from typing import TYPE_CHECKING

from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.objects import Function
from codemods.vocabulary import words

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

KEEPING = frozenset(
    words("staticmethod classmethod abstractmethod override jit pmap compact nowrap")
)
"""Decorators with which a method takes the same arguments as without."""


class Accepting:
    """Leaves calls out that Python would refuse."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._signatures: dict[Function, list[Signature]] = {}

    def calls(
        self, function: Function, calls: Iterable[ast.Call]
    ) -> Iterator[ast.Call]:
        """Those of some calls that may be of a function."""
        signatures = self._signatures_of(function)
        name = getattr(function.node, "name", None)
        for call in calls:
            match call.func:
                case ast.Attribute(attr=word) if word == name and signatures:
                    if any(isinstance(bind(one, call), Bound) for one in signatures):
                        yield call
                case _:
                    yield call

    def _signatures_of(self, function: Function) -> list[Signature]:
        """The signatures of a method as calls under its name see it; none if these may differ."""
        if function not in self._signatures:
            self._signatures[function] = [*self._signatures_found(function)]
        return self._signatures[function]

    def _signatures_found(self, function: Function) -> Iterator[Signature]:
        cls, node = self.engine.class_of_method(function), function.node
        if cls is None or isinstance(node, ast.Lambda):
            return
        decorators = self.engine.decorators(node)
        is_known = decorators <= KEEPING and len(decorators) == len(node.decorator_list)
        # self.step = jax.pmap(self.step)
        is_one = len(self.engine.bindings_of(cls.scope, node.name)) == 1
        if not is_known or not is_one or node.name in self.engine.index.stores:
            return
        if "classmethod" not in decorators:
            yield signature_of(node.args)
        if "staticmethod" not in decorators:
            yield signature_of(node.args, bound=1)
