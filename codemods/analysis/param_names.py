"""What the parameters of a project's models may be called."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.shapes import Parameters
from codemods.flow.objects import Class, Container, External, Instance, Object, Result
from codemods.flow.out_of_view import COMPUTING, FRAMEWORKS, HOLDING
from codemods.optimizers.base import RATE

NO_MODELS_OF_THEIR_OWN = (
    COMPUTING | FRAMEWORKS | HOLDING | sys.stdlib_module_names | {"absl", "builtins", "numpy"}
)
"""Packages of whose layers none calls a parameter as a hyperparameter is called."""


class ParamNames:
    """Tells whether a parameter may be called `learning_rate`, as the hyperparameter is in the state of an optimizer.

    It may where a model of the project says that word, or a dict of parameters, and where a model or its layers are not in view.
    Of parameters that come as such from code out of view it is taken that none is called so, and told.
    """

    def __init__(self, facts: Facts, parameters: Parameters) -> None:
        self.facts = facts
        self.parameters = parameters

    @cached_property
    def may_be_rate(self) -> bool:
        """Whether some parameter may be called `learning_rate`."""
        return any(self._reasons())

    def _reasons(self) -> Iterator[bool]:
        optimizers = (thing for thing in self.facts.groups if thing.kind == "optimizer")
        targets = (item for optimizer in optimizers for item in self.facts.target(optimizer))
        dicts = (
            item.node
            for item in targets
            if isinstance(item, Container) and isinstance(item.node, ast.Dict)
        )
        yield from (_may_be_rate(key, a_name=True) for node in dicts for key in node.keys)
        for _, call in self.facts.flow.reading.calls:
            yield from self._of_call(call)
        for cls in self.facts.flow.reading.classes:
            if self._is_module(cls):
                yield from self._of_module(cls)

    def _of_call(self, call: ast.Call) -> Iterator[bool]:
        """What a call tells that names a parameter or a layer, or that makes parameters."""
        words = [*call.args, *(word.value for word in call.keywords)]
        if any(_may_be_rate(word) for word in words):
            yield any(
                isinstance(item, Class) and self._is_module(item)
                for item in self.facts.objects(call.func)
            )
        yield any(word.arg == "name" and _may_be_rate(word.value) for word in call.keywords)
        match call:
            case ast.Call(func=ast.Attribute(attr="param" | "get_parameter"), args=[name, *_]):
                yield _may_be_rate(name)
            case ast.Call(
                func=ast.Attribute(attr="init" | "init_with_output" | "init_by_shape", value=model)
            ):
                models = list(self.facts.objects(model))
                yield (
                    any(map(self._is_out_of_view, models))
                    if models
                    else self._is_given_by_others(model)
                )

    def _is_given_by_others(self, model: ast.expr) -> bool:
        """Whether a model of which nothing is known comes from code that is not in view."""
        roots = self.parameters.roots(model)
        calls = (root.func for root in roots if isinstance(root, ast.Call))
        made = any(
            any(map(self._is_out_of_view, self.facts.objects(function))) for function in calls
        )
        return made or any(map(self.parameters.is_given, roots))

    def _of_module(self, cls: Class) -> Iterator[bool]:
        """What a class of models tells."""
        for node in ast.walk(cls.node):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name == RATE
                case ast.Constant():
                    yield _may_be_rate(node)
                case ast.Call(func=function):
                    yield any(map(self._is_out_of_view, self.facts.objects(function)))

    def _is_module(self, cls: Class) -> bool:
        names = (item.name for item in self.facts.flow.ancestry(cls) if isinstance(item, External))
        return any(name.startswith("flax.") and name.endswith(".Module") for name in names)

    def _is_out_of_view(self, item: Object) -> bool:
        """Whether something comes from elsewhere, or its class is derived from what does, and may make parameters."""
        cls = item.cls if isinstance(item, Instance) else item
        return any(
            map(
                _comes_from_elsewhere,
                self.facts.flow.ancestry(cls) if isinstance(cls, Class) else [item],
            )
        )


def _comes_from_elsewhere(item: Object) -> bool:
    """Whether something is of a package of which nothing is known; a package itself is no model."""
    package, _, rest = (
        item.name.partition(".") if isinstance(item, External | Result) else ("", "", "")
    )
    return bool(rest) and package not in NO_MODELS_OF_THEIR_OWN


def _may_be_rate(name: ast.expr | None, a_name: bool = False) -> bool:
    """Whether an expression may be the word `learning_rate`; what is no text at all may be if it is known to be `a_name`."""
    match name:
        case ast.Constant(value=value):
            return value == RATE
        case ast.JoinedStr(values=parts):
            texts = (
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"
                for part in parts
            )
            return re.fullmatch("".join(texts), RATE) is not None
    return a_name
