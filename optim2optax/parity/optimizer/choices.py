"""The values between which a program chooses within the expressions of an optimizer."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator
from typing import Any

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from optim2optax.parity.optimizer.sampling import KNOWN_MODULES
from optim2optax.parity.optimizer.texts import syntax_trees

OTHER = "any other"
ANY = object()
"""The choice that leaves the source text in its place, for which a number is sampled later."""


def choices_of(emitted: EmittedOptimizer) -> dict[str, tuple[Any, ...]]:
    """The values between which a program chooses, by the source texts of the expressions."""
    found: dict[str, list[Any]] = {}
    for tree in syntax_trees(emitted):
        reader = _Reader(tree, emitted)
        for node, values in (*reader.choices(), *reader.booleans()):
            known = found.setdefault(ast.unparse(node), [])
            known += [value for value in values if not _is_among(value, known)]
    return {text: tuple(values) for text, values in found.items()}


def _is_among(value: Any, known: list[Any]) -> bool:
    """Whether a value is known; to Python, True and 1 are equal, but they are two choices."""
    return any(value is other or _same(value, other) for other in known)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


class _Reader:
    """Finds the choices in a tree: expressions of the program, with the values to choose from.

    `bound` are names that the tree itself binds, `known` those that have no value to choose.
    """

    def __init__(self, tree: ast.AST, emitted: EmittedOptimizer) -> None:
        self.tree = tree
        self.bound: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                self.bound.add(node.arg)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.bound.add(node.id)
        self.known = {*KNOWN_MODULES, *vars(builtins)}
        if emitted.schedule:
            self.known.add(ast.unparse(ast.parse(emitted.schedule)))
        for source in (*getattr(emitted, "legacy_supports", ()), *emitted.supports):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    self.known.add(node.name)

    def choices(self) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """Each expression of the program that a branch depends on."""
        for node in ast.walk(self.tree):
            match node:
                # optim.Adam(1e-3) if use_adam else optim.Momentum(0.1)
                case (
                    ast.IfExp(test=test)
                    | ast.If(test=test)
                    | ast.UnaryOp(op=ast.Not(), operand=test)
                ):
                    yield from self._of_test(test)
                case ast.comprehension(ifs=tests):
                    for test in tests:
                        yield from self._of_test(test)
                # rate or 1e-3
                case ast.BoolOp(op=operator, values=[*first, _]):
                    nothing = False if isinstance(operator, ast.And) else None
                    for value in first:
                        if self._is_of_the_program(value):
                            yield value, (ANY, nothing)
                # name == "adam"
                case ast.Compare(left=left, ops=[_], comparators=[right]):
                    yield from self._of_comparison(left, right)
                # {"adam": optim.Adam(1e-3), "sgd": optim.GradientDescent(0.1)}[name]
                case ast.Subscript(value=ast.Dict(keys=keys), slice=key):
                    if self._is_of_the_program(key):
                        yield key, tuple(one.value for one in keys if isinstance(one, ast.Constant))

    def booleans(self) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """Each expression of the program for a boolean parameter of a legacy optimizer."""
        for node in ast.walk(self.tree):
            name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or name not in optimizers():
                continue
            # optim.Momentum(0.1, nesterov=settings.nesterov)
            parameters = optimizers()[name].parameters
            names = [parameter.name for parameter in parameters]
            arguments = dict(zip(names, node.args, strict=False))
            arguments |= {word.arg: word.value for word in node.keywords if word.arg}
            for parameter in parameters:
                if parameter.default in ("True", "False") and parameter.name in arguments:
                    yield from self._of_test(arguments[parameter.name])

    def _of_test(self, node: ast.expr) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """The expressions of the program that are true or false in a test."""
        if self._is_of_the_program(node):
            yield node, (True, False)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._of_test(value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "bool":
            for value in node.args:
                yield from self._of_test(value)

    def _of_comparison(
        self, left: ast.expr, right: ast.expr
    ) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """An expression of the program that is compared with a literal, and values to compare."""
        for node, other in ((left, right), (right, left)):
            try:
                value = ast.literal_eval(other)
            except ValueError:
                continue
            if self._is_of_the_program(node):
                # name in ("adam", "adamw")
                yield node, tuple(itertools.chain.from_iterable(map(_around, _each(value))))

    def _is_of_the_program(self, node: ast.expr) -> bool:
        """Whether the program has one value for an expression.

        It has none for what depends on the arguments of a predicate.
        """
        if any(isinstance(inner, ast.Name) and inner.id in self.bound for inner in ast.walk(node)):
            return False
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        return isinstance(root, ast.Name) and root.id not in self.known


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list | set) else (value,)


def _around(value: Any) -> tuple[Any, ...]:
    """A value that a program compares with, and others than it."""
    if value is None:
        return ANY, None
    if isinstance(value, bool):
        return True, False
    if isinstance(value, int):
        return value - 1, value, value + 1
    if isinstance(value, float):
        return value / 2, value, value * 2 or 1.0
    return (value, OTHER) if isinstance(value, str) else (value,)
