"""What files that are not analysed may change in those that are, by their texts."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from codemods.dataflow.effects import Variable
from codemods.inference.containers import CHANGING, SHIFTING
from codemods.inference.view import View
from codemods.sources.parsing import parse


class Elsewhere:
    """Tells of the variables of modules whether code that is not analysed may set or change them.

    Args:
      flow: what is known of the files that are analysed.
      texts: those of the others that import them, directly or not.
    """

    def __init__(self, flow: View, texts: Iterable[str]) -> None:
        self._flow = flow
        self._texts = list(texts)

    @cached_property
    def assigned(self) -> frozenset[Variable]:
        """The variables that it may set, also by a function in view that declares them global."""
        names, _ = self._names
        return frozenset(self._named(names) | self._declared)

    @cached_property
    def changed(self) -> frozenset[Variable]:
        """The variables whose objects it may change in place."""
        _, names = self._names
        return frozenset(self._named(names))

    @cached_property
    def _names(self) -> tuple[set[str], set[str]]:
        """The names of attributes that it sets, and those on the way to what it changes."""
        assigned: set[str] = set()
        changed: set[str] = set()
        for text in self._texts:
            for node in _nodes(text):
                match node:
                    # train.RATE = 0.1
                    case ast.Attribute(
                        value=owner, attr=name, ctx=ast.Store() | ast.Del()
                    ) if path := _path(owner):
                        assigned.add(name)
                        changed |= path
                    # CONFIG["rate"] = 0.1, train.CONFIG.update(rate=0.1)
                    case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                        changed |= _path(owner)
                    case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                        changed |= (
                            _path(owner) if name in CHANGING | SHIFTING else set()
                        )
                    case ast.Call(
                        func=ast.Name(id="setattr"),
                        args=[_, ast.Constant(value=str(name)), _],
                    ):
                        assigned.add(name)
        return assigned, changed

    def _named(self, names: set[str]) -> set[Variable]:
        modules = self._flow.modules.values()
        return {
            Variable(scope, name) for scope in modules for name in scope.names & names
        }

    @property
    def _declared(self) -> set[Variable]:
        return {
            Variable(scope, name)
            for unit, scope in (self._flow.modules.items() if self._texts else ())
            for bound in unit.bindings.values()
            for name, declared, _ in bound
            if declared == "global"
        }


def _nodes(text: str) -> Iterable[ast.AST]:
    try:
        return ast.walk(parse(text))
    except (SyntaxError, ValueError, RecursionError):  # what cannot be read cannot run
        return ()


def _path(node: ast.expr) -> set[str]:
    """The names of `package.module.CONFIG["model"]`; none of `self`."""
    found: set[str] = set()
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in ("self", "cls"):
        return set()
    return {*found, node.id}
