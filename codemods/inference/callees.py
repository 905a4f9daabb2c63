"""Which functions and classes a callee may be, by its name and what that is bound to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.inference.containers import METHODS
from codemods.inference.depth import HANDING
from codemods.inference.objects import Class, Function
from codemods.inference.reading import Binding, last_name

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

NEW = ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp
"""Expressions that make a container."""


class Callees:
    """Finds definitions by the text and its scopes alone."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine

    def of(self, node: ast.expr) -> list[Function | Class]:
        """The functions and classes that a callee may be, by its name."""
        while isinstance(node, ast.Subscript | ast.Call) and not _is_handed(node):
            node = node.value if isinstance(node, ast.Subscript) else node.func
        return self._defined(node, ())

    def _defined(
        self, node: ast.expr | None, within: tuple[object, ...]
    ) -> list[Function | Class]:
        match node:
            case ast.Attribute(value=owner, attr=name):
                # losses.append(loss), of Python's own list
                if name in METHODS and self._is_of_python(owner):
                    return []
                return [*self.engine.index.defined.get(name, ())]
            case ast.Lambda():
                return [self.engine.functions[node]]
            # jax.value_and_grad(loss_fn)
            case ast.Call(args=[first, *_]) if _is_handed(node):
                return self._defined(first, within)
            case ast.Name(id=name):
                scope = self.engine.scopes[node].binding(name)
                if scope is None or (scope, name) in within:
                    return []
                found: list[Function | Class] = []
                for binding in self.engine.bindings_of(scope, name):
                    found += self._defined_by(binding, (*within, (scope, name)))
                return found
        return []

    def _is_of_python(self, node: ast.expr) -> bool:
        """Whether a variable is only ever bound to new containers of Python."""
        # train.losses = Recorder()
        if not isinstance(node, ast.Name) or node.id in self.engine.index.stores:
            return False
        scope = self.engine.scopes[node].binding(node.id)
        bindings = [] if scope is None else self.engine.bindings_of(scope, node.id)
        return bool(bindings) and all(
            isinstance(one.source, NEW) and not one.steps for one in bindings
        )

    def _defined_by(
        self, binding: Binding, within: tuple[object, ...]
    ) -> list[Function | Class]:
        match binding.node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self.engine.functions[binding.node]]
            case ast.ClassDef():
                return [self.engine.class_of(binding.node)]
            case ast.ImportFrom():
                assert binding.alias is not None
                return [*self.engine.index.defined.get(binding.alias.name, ())]
        # p_step = jax.pmap(partial(step, model))
        return self._defined(binding.source, within)


def _is_handed(node: ast.expr) -> bool:
    """Whether this is what a function gives that hands its first argument back."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    return last_name(node.func) in HANDING
