"""What a program may choose within an expression: every choice becomes an optimizer of its own."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from optim2optax.parity.sampling import KNOWN_MODULES

MOST = 16
"""How many combinations of choices are taken; beyond that, each choice is made by itself."""

LONGEST = 20_000
"""The largest number of steps to which a replay goes."""

LARGEST = 512
"""The largest size on both sides of which leaves are probed."""

SIZES = (".ndim", ".shape", ".size", "ndim(", "len(", "size(")
OTHER = "any other"
_ANY = object()
"""Stands for a value that leaves the source text in its place, for which a number is sampled later."""


def variants(emitted: EmittedOptimizer) -> list[EmittedOptimizer]:
    """An optimizer with its choices made, in every way: booleans, branches, comparisons with literals, keys of a dict."""
    choices = {text: values for text, values in _choices(emitted).items() if len(values) > 1}
    number = 1
    for values in choices.values():
        number *= len(values)
    if number <= MOST:
        combinations = [
            dict(zip(choices, values, strict=True))
            for values in itertools.product(*choices.values())
        ]
    else:
        usual = {text: values[0] for text, values in choices.items()}
        combinations = [
            usual,
            *({**usual, text: other} for text, values in choices.items() for other in values[1:]),
        ]
    return list(dict.fromkeys(_with(emitted, combination) for combination in combinations))


def _choices(emitted: EmittedOptimizer) -> dict[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = {}
    for tree in _trees(emitted):
        reader = _Reader(tree, emitted)
        for node, values in (*reader.choices(), *reader.booleans()):
            known = found.setdefault(ast.unparse(node), [])
            known += [
                value
                for value in values
                if not any(value is other or _same(value, other) for other in known)
            ]
    return {text: tuple(values) for text, values in found.items()}


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _trees(emitted: EmittedOptimizer) -> list[ast.AST]:
    texts = [emitted.legacy_expression, emitted.optax_expression]
    supports = (*getattr(emitted, "legacy_supports", ()), *emitted.supports)
    return [*(ast.parse(text, mode="eval") for text in texts), *map(ast.parse, supports)]


class _Reader:
    """Finds what chooses in a tree, and the values that it chooses by."""

    def __init__(self, tree: ast.AST, emitted: EmittedOptimizer) -> None:
        self.tree = tree
        nodes = [*ast.walk(tree)]
        self.bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
        self.bound |= {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        }
        self.known = {*KNOWN_MODULES, *vars(builtins)}
        self.known |= {ast.unparse(ast.parse(emitted.schedule))} if emitted.schedule else set()
        self.known |= {
            node.name
            for source in (*getattr(emitted, "legacy_supports", ()), *emitted.supports)
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }

    def choices(self) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """Each expression of the program that a branch depends on."""
        for node in ast.walk(self.tree):
            match node:
                case (
                    ast.IfExp(test=test)
                    | ast.If(test=test)
                    | ast.UnaryOp(op=ast.Not(), operand=test)
                ):
                    yield from self._of_test(test)
                case ast.comprehension(ifs=tests):
                    for test in tests:
                        yield from self._of_test(test)
                case ast.BoolOp(op=operator, values=[*first, _]):
                    nothing = False if isinstance(operator, ast.And) else None
                    yield from (
                        (value, (_ANY, nothing))
                        for value in first
                        if self._is_of_the_program(value)
                    )
                case ast.Compare(left=left, ops=[_], comparators=[right]):
                    yield from self._of_comparison(left, right)
                case ast.Subscript(value=ast.Dict(keys=keys), slice=key) if self._is_of_the_program(
                    key
                ):
                    yield key, tuple(one.value for one in keys if isinstance(one, ast.Constant))

    def booleans(self) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """Each expression of the program that stands for a boolean parameter of a legacy optimizer."""
        for node in ast.walk(self.tree):
            name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or name not in optimizers():
                continue
            parameters = optimizers()[name].parameters
            given = {
                parameter.name: value
                for parameter, value in zip(parameters, node.args, strict=False)
            }
            given |= {word.arg: word.value for word in node.keywords if word.arg}
            for parameter in parameters:
                if parameter.default in ("True", "False") and parameter.name in given:
                    yield from self._of_test(given[parameter.name])

    def _of_test(self, node: ast.expr) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
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
        for node, other in ((left, right), (right, left)):
            try:
                value = ast.literal_eval(other)
            except ValueError:
                continue
            if self._is_of_the_program(node):
                yield node, tuple(one for literal in _each(value) for one in _around(literal))

    def _is_of_the_program(self, node: ast.expr) -> bool:
        """Whether the program has one value for it: no call of a function with what a predicate is given, for example."""
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
    return ast.unparse(ast.fix_missing_locations(_Choose(values).visit(ast.parse(text, mode=mode))))


class _Choose(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.unparse(node) if isinstance(node, ast.expr) else None
        if text is not None and text in self.values:
            return ast.Constant(self.values[text])
        return super().generic_visit(node)


def horizon(emitted: EmittedOptimizer, steps: int) -> int:
    """How many steps go past every number in the expressions that may be one of steps, up to LONGEST."""
    numbers = [
        number for tree in _trees(emitted) for number in _numbers(tree) if number >= steps - 2
    ]
    return min(int(max(numbers, default=0) * 1.1) + 10, LONGEST) if numbers else 0


def _numbers(node: ast.AST) -> Iterator[float]:
    """The whole numbers in a tree that are no sizes, and the products and sums of such."""
    if isinstance(node, ast.keyword) and node.arg == "min_dim_size_to_factor":
        return
    if isinstance(node, ast.Compare) and any(word in ast.unparse(node) for word in SIZES):
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Sub):
        parts = [list(_numbers(part)) for part in (node.left, node.right)]
        if all(len(part) == 1 for part in parts):
            (left,), (right,) = parts
            yield left * right if isinstance(node.op, ast.Mult) else left + right
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and node.value % 1 == 0
    ):
        yield float(node.value)
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
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Constant)
            and isinstance(inner.value, int)
            and not isinstance(inner.value, bool)
        ):
            yield inner.value
