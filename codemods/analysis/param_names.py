"""The names that params of a project's models have, as far as its code shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.inference.binding import values_of
from codemods.inference.objects import Class, Container, Instance
from codemods.optimizers.base import RATE

NAMING = ("param", "get_parameter")
"""Methods that are given the name of a param first."""


class ParamNames:
    """Finds whether a param has the name of a number in a state: `learning_rate`, `count`.

    A model of the project, a layer in a call, or a dict of params shows it by that word.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[str, bool] = {}

    @property
    def may_be_rate(self) -> bool:
        """Whether something shows a param with the name `learning_rate`."""
        return self.may_be(RATE)

    def may_be(self, word: str) -> bool:
        """Whether something shows a param with that name."""
        if word not in self._known:
            self._known[word] = any(_is(word, name) for name in self._names(word))
        return self._known[word]

    def _names(self, word: str) -> Iterator[ast.expr | str | None]:
        """What names a param or a layer, where one may be called by a word."""
        # of a definition, that is nothing
        targets = map(self.facts.target, self.facts.groups)
        items = dict.fromkeys(chain.from_iterable(targets))
        pending = [*items]
        for item in pending:  # grows while it is read
            match item:
                case Container(node=node):
                    yield from _keys(node)
                    # params["learning_rate"] = x
                    keys = self.facts.flow.keys_of(item)
                    yield from (key for key in keys if isinstance(key, str))
                    inner = self.facts.flow.solver.at(("elements", item))
                    pending += (one for one in inner if one not in items)
                    items |= dict.fromkeys(inner)
                case Instance(cls=cls):
                    yield from self.facts.flow.fields_in_order(cls)
        for _, call in self.facts.flow.reading.calls:
            values = values_of(call)
            # self.param("learning_rate", init)
            if isinstance(call.func, ast.Attribute) and call.func.attr in NAMING:
                yield from values[:1]
            # Scaled("learning_rate")
            elif any(_is(word, one) for one in values) and self._makes_module(call):
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


def _keys(node: ast.AST) -> Iterator[ast.expr | str | None]:
    """The keys that are written where a dict is made."""
    match node:
        # {"learning_rate": x}
        case ast.Dict(keys=keys):
            yield from keys
        # dict(learning_rate=x)
        case ast.Call(keywords=words):
            yield from (word.arg for word in words)


def _is(word: str, name: ast.expr | str | None) -> bool:
    """Whether something is a word, or a text with a part of it."""
    match name:
        case str():
            return name == word
        case ast.Constant(value=value):
            return bool(value == word)
        # f"{prefix}_rate"
        case ast.JoinedStr(values=parts):
            pattern = "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"
                for part in parts
            )
            return re.fullmatch(pattern, word) is not None
    return False
