"""The choices that a program makes within an expression: each is compared as an optimizer."""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from optim2optax.parity.sampling import KNOWN_MODULES

MOST = 16
"""The most combinations of choices; beyond that, each choice is made by itself."""

LONGEST = 20_000
"""The largest number of steps to which a replay goes."""

LARGEST = 512
"""The largest size below and above which leaves are probed."""

SIZES = (".ndim", ".shape", ".size", "ndim(", "len(", "size(")
OTHER = "any other"
_ANY = object()
"""The choice that leaves the source text in its place, for which a number is sampled later."""


def variants(emitted: EmittedOptimizer) -> list[EmittedOptimizer]:
    """An optimizer with its choices made, in every way.

    Choices are booleans, branches, comparisons with literals, and keys of a dict.
    """
    choices = {text: values for text, values in _choices(emitted).items() if len(values) > 1}
    if math.prod(map(len, choices.values())) <= MOST:
        products = itertools.product(*choices.values())
        combinations = [dict(zip(choices, values, strict=True)) for values in products]
    else:
        usual = {text: values[0] for text, values in choices.items()}
        combinations = [usual]
        for text, values in choices.items():
            combinations += [{**usual, text: other} for other in values[1:]]
    return list(dict.fromkeys(_with(emitted, combination) for combination in combinations))


def _choices(emitted: EmittedOptimizer) -> dict[str, tuple[Any, ...]]:
    """The values between which a program chooses, by the source texts of the expressions."""
    found: dict[str, list[Any]] = {}
    for tree in _trees(emitted):
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


def _trees(emitted: EmittedOptimizer) -> list[ast.AST]:
    """The syntax trees of an optimizer's source texts."""
    texts = [emitted.legacy_expression, emitted.optax_expression]
    supports = (*getattr(emitted, "legacy_supports", ()), *emitted.supports)
    return [*(ast.parse(text, mode="eval") for text in texts), *map(ast.parse, supports)]


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
                            yield value, (_ANY, nothing)
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
        return _ANY, None
    if isinstance(value, bool):
        return True, False
    if isinstance(value, int):
        return value - 1, value, value + 1
    if isinstance(value, float):
        return value / 2, value, value * 2 or 1.0
    return (value, OTHER) if isinstance(value, str) else (value,)


def _with(emitted: EmittedOptimizer, chosen: Mapping[str, Any]) -> EmittedOptimizer:
    """An optimizer with chosen values in the place of expressions of the program."""
    values = {text: value for text, value in chosen.items() if value is not _ANY}
    if not values:
        return emitted
    own = {
        name: tuple(_exchanged(one, values, "exec") for one in getattr(emitted, name, ()))
        for name in _SUPPORTS
    }
    return replace(
        emitted,
        legacy_expression=_exchanged(emitted.legacy_expression, values, "eval"),
        optax_expression=_exchanged(emitted.optax_expression, values, "eval"),
        **{name: sources for name, sources in own.items() if hasattr(emitted, "legacy_supports")},  # type: ignore[arg-type]
    )


_SUPPORTS = ("supports", "legacy_supports")


def _exchanged(text: str, values: Mapping[str, Any], mode: str) -> str:
    tree = _Choose(values).visit(ast.parse(text, mode=mode))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Choose(ast.NodeTransformer):
    """Puts values in the place of expressions, which it knows by their source texts."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.unparse(node) if isinstance(node, ast.expr) else None
        if text is not None and text in self.values:
            return ast.Constant(self.values[text])
        return super().generic_visit(node)


def horizon(emitted: EmittedOptimizer, steps: int) -> int:
    """More steps than any number of steps in the expressions, up to LONGEST; 0 if there is none."""
    found = itertools.chain.from_iterable(map(_numbers, _trees(emitted)))
    numbers = [number for number in found if number >= steps - 2]
    return min(int(max(numbers) * 1.1) + 10, LONGEST) if numbers else 0


def _numbers(node: ast.AST) -> Iterator[float]:
    """The whole numbers in a tree that are no sizes, and the products and sums of two of them."""
    if isinstance(node, ast.keyword) and node.arg == "min_dim_size_to_factor":
        return
    if isinstance(node, ast.Compare) and any(word in ast.unparse(node) for word in SIZES):
        return
    # epochs * 1000
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Sub):
        parts = [list(_numbers(part)) for part in (node.left, node.right)]
        if all(len(part) == 1 for part in parts):
            (left,), (right,) = parts
            yield left * right if isinstance(node.op, ast.Mult) else left + right
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int | float) and value % 1 == 0:
        yield float(value)
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def sizes(emitted: EmittedOptimizer) -> tuple[int, ...]:
    """The numbers with which the sizes of leaves are compared, up to LARGEST."""
    found = set()
    for tree in _trees(emitted):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(word in ast.unparse(node) for word in SIZES):
                found |= {int(number) for number in _constants(node)}
            if isinstance(node, ast.keyword) and node.arg == "min_dim_size_to_factor":
                found |= {int(number) for number in _constants(node.value)}
    return tuple(sorted(number for number in found if 1 < number <= LARGEST))


def _constants(node: ast.AST) -> Iterator[int]:
    """The whole numbers below a node."""
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, int) and not isinstance(value, bool):
            yield value
