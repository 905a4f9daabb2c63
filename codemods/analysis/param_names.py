"""The names that params of a project's models have, as far as its code shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.inference.binding import values_of
from codemods.inference.objects import Class, Container
from codemods.optimizers.base import RATE

NAMING = ("param", "get_parameter")
"""Methods that are given the name of a param first."""


class ParamNames:
    """Finds whether a param has the name `learning_rate`, as the hyperparameter in a state.

    A model of the project, a layer in a call, or a dict of params shows it by that word.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def may_be_rate(self) -> bool:
        """Whether something shows a param with the name `learning_rate`."""
        return any(map(_is_rate, self._names()))

    def _names(self) -> Iterator[ast.expr | None]:
        """The expressions that name a param or a layer."""
        for optimizer in self.facts.groups:
            # of a definition, that is nothing
            for item in self.facts.target(optimizer):
                # optim.Adam().create({"learning_rate": x})
                if isinstance(item, Container) and isinstance(item.node, ast.Dict):
                    yield from item.node.keys
        for _, call in self.facts.flow.reading.calls:
            values = values_of(call)
            # self.param("learning_rate", init)
            if isinstance(call.func, ast.Attribute) and call.func.attr in NAMING:
                yield from values[:1]
            # Scaled("learning_rate")
            elif any(map(_is_rate, values)) and self._makes_module(call):
                yield from values
            # nn.Dense(3, name="learning_rate")
            else:
                yield from (one.value for one in call.keywords if one.arg == "name")
        for cls in filter(self._is_module, self.facts.flow.reading.classes):
            for node in ast.walk(cls.node):
                match node:
                    # self.learning_rate = self.param(…)
                    case ast.Attribute(attr=name, ctx=ast.Store()):
                        yield ast.Constant(name)
                    case ast.Constant():
                        yield node

    def _makes_module(self, call: ast.Call) -> bool:
        items = self.facts.objects(call.func)
        return any(isinstance(item, Class) and self._is_module(item) for item in items)

    def _is_module(self, cls: Class) -> bool:
        return any(
            name.startswith("flax.") and name.endswith(".Module")
            for name in self.facts.outer_bases(cls)
        )


def _is_rate(name: ast.expr | None) -> bool:
    """Whether an expression is the word `learning_rate`, or a text with a part of it."""
    match name:
        case ast.Constant(value=value):
            return value == RATE
        # f"{prefix}_rate"
        case ast.JoinedStr(values=parts):
            pattern = "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"
                for part in parts
            )
            return re.fullmatch(pattern, RATE) is not None
    return False
