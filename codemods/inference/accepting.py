"""Which calls a method accepts: with other arguments, a call of its name is one of another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from inspect import Signature
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.objects import Function
from codemods.vocabulary import words

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Shape: TypeAlias = tuple[tuple[bool, ...], frozenset["str | None"]]
"""Which positional arguments of a call are unpacked, and its keywords."""

KEEPING = frozenset(
    words("staticmethod classmethod abstractmethod override jit pmap compact nowrap")
)
"""Decorators with which a method takes the same arguments as without."""


class Accepting:
    """Leaves calls out that Python would refuse."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._signatures: dict[Function, list[Signature]] = {}
        self._shapes: dict[ast.Call, Shape] = {}
        self._accepts: dict[tuple[Function, Shape], bool] = {}

    def calls(
        self, function: Function, calls: Iterable[ast.Call]
    ) -> Iterator[ast.Call]:
        """Those of some calls that may be of a function."""
        is_limited = bool(self._signatures_of(function))
        name = getattr(function.node, "name", None)
        for call in calls:
            match call.func:
                case ast.Attribute(attr=word) if word == name and is_limited:
                    if self._is_accepted(function, call):
                        yield call
                case _:
                    yield call

    def _is_accepted(self, function: Function, call: ast.Call) -> bool:
        if call not in self._shapes:
            kinds = tuple(isinstance(one, ast.Starred) for one in call.args)
            self._shapes[call] = (kinds, frozenset(one.arg for one in call.keywords))
        # calls of one shape are all accepted, or none is
        asked = function, self._shapes[call]
        if asked not in self._accepts:
            signatures = self._signatures_of(function)
            found = (bind(one, call) for one in signatures)
            self._accepts[asked] = any(isinstance(one, Bound) for one in found)
        return self._accepts[asked]

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
