"""The names that params of a project's models may have."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.shapes import Parameters
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Instance,
    Object,
    Result,
)
from codemods.inference.out_of_view import COMPUTING, FRAMEWORKS, HOLDING
from codemods.optimizers.base import RATE

NO_MODELS_OF_THEIR_OWN = (
    COMPUTING
    | FRAMEWORKS
    | HOLDING
    | sys.stdlib_module_names
    | {"absl", "builtins", "numpy"}
)
"""Packages without layers that have a param with the name of a hyperparameter."""


class ParamNames:
    """Finds whether a param may have the name `learning_rate`, as the hyperparameter in a state.

    It may if a model of the project, or a dict of params, has that word, or if a model or its
    layers are not in view. Params that come as such from code out of view are assumed to have other
    names, which is reported.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.parameters = facts.of(Parameters)

    @cached_property
    def may_be_rate(self) -> bool:
        """Whether some param may have the name `learning_rate`."""
        return any(self._reasons())

    def _reasons(self) -> Iterator[bool]:
        optimizers = (obj for obj in self.facts.groups if obj.kind == "optimizer")
        targets = (
            item for optimizer in optimizers for item in self.facts.target(optimizer)
        )
        containers = (item for item in targets if isinstance(item, Container))
        dicts = (item.node for item in containers if isinstance(item.node, ast.Dict))
        yield from (
            _may_be_rate(key, a_name=True) for node in dicts for key in node.keys
        )
        for _, call in self.facts.flow.reading.calls:
            yield from self._of_call(call)
        for cls in self.facts.flow.reading.classes:
            if self._is_module(cls):
                yield from self._of_module(cls)

    def _of_call(self, call: ast.Call) -> Iterator[bool]:
        """The signs in a call that names a param or a layer, or that makes params."""
        words = [*call.args, *(word.value for word in call.keywords)]
        # Dense(3, "learning_rate")
        if any(_may_be_rate(word) for word in words):
            classes = (
                item
                for item in self.facts.objects(call.func)
                if isinstance(item, Class)
            )
            yield any(map(self._is_module, classes))
        yield any(
            word.arg == "name" and _may_be_rate(word.value) for word in call.keywords
        )
        match call:
            # self.param("learning_rate", init)
            case ast.Call(
                func=ast.Attribute(attr="param" | "get_parameter"), args=[name, *_]
            ):
                yield _may_be_rate(name)
            # model.init(key, x)
            case ast.Call(
                func=ast.Attribute(
                    attr="init" | "init_with_output" | "init_by_shape", value=model
                )
            ):
                models = list(self.facts.objects(model))
                if models:
                    yield any(map(self._is_out_of_view, models))
                else:
                    yield self._is_given_by_others(model)

    def _is_given_by_others(self, model: ast.expr) -> bool:
        """Whether a model of which nothing is known comes from code that is not in view."""
        roots = self.parameters.roots(model)
        calls = (root for root in roots if isinstance(root, ast.Call))
        makers = (item for call in calls for item in self.facts.objects(call.func))
        return any(map(self._is_out_of_view, makers)) or any(
            map(self.parameters.is_given, roots)
        )

    def _of_module(self, cls: Class) -> Iterator[bool]:
        """The signs in a class of models."""
        for node in ast.walk(cls.node):
            match node:
                # self.learning_rate = self.param(…)
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name == RATE
                case ast.Constant():
                    yield _may_be_rate(node)
                # library.Layer()
                case ast.Call(func=function):
                    yield any(map(self._is_out_of_view, self.facts.objects(function)))

    def _is_module(self, cls: Class) -> bool:
        names = (
            item.name
            for item in self.facts.flow.ancestry(cls)
            if isinstance(item, External)
        )
        return any(
            name.startswith("flax.") and name.endswith(".Module") for name in names
        )

    def _is_out_of_view(self, item: Object) -> bool:
        """Whether an object, or a base of its class, is of a package that may make params."""
        cls = item.cls if isinstance(item, Instance) else item
        ancestry = self.facts.flow.ancestry(cls) if isinstance(cls, Class) else [item]
        return any(map(_comes_from_elsewhere, ancestry))


def _comes_from_elsewhere(item: Object) -> bool:
    """Whether an object is of an unknown package; a package itself is no model."""
    if not isinstance(item, External | Result):
        return False
    package, _, rest = item.name.partition(".")
    return bool(rest) and package not in NO_MODELS_OF_THEIR_OWN


def _pattern(part: ast.expr) -> str:
    """What a part of a formatted string matches."""
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"


def _may_be_rate(name: ast.expr | None, a_name: bool = False) -> bool:
    """Whether an expression may be the word `learning_rate`.

    An expression that is not a text may be it if it is known to be `a_name`.
    """
    match name:
        case ast.Constant(value=value):
            return value == RATE
        # f"{prefix}_rate"
        case ast.JoinedStr(values=parts):
            return re.fullmatch("".join(map(_pattern, parts)), RATE) is not None
    return a_name
