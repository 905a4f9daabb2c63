"""The choices that a program makes within an expression: each is compared as an optimizer."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from optim2optax.parity.optimizer.sampling import (
    KNOWN_MODULES,
    Exchange,
    bound_in,
    constructor,
    starts_outside,
)
from optim2optax.parity.optimizer.texts import (
    Counterpart,
    names_defined,
    supports_of,
    syntax_trees,
)

MOST = 16
"""The most combinations of choices; beyond that, each choice is made by itself."""


def variants(emitted: EmittedOptimizer) -> list[EmittedOptimizer]:
    """An optimizer with its choices made, in every way.

    Choices are booleans, branches, comparisons with literals, and keys of a dict.
    """
    choices = {
        text: values for text, values in choices_of(emitted).items() if len(values) > 1
    }
    combinations = _combinations(choices)
    # Two choices may give the same texts.
    distinct = dict.fromkeys(
        _with(emitted, combination) for combination in combinations
    )
    return list(distinct)


def _combinations(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """A value for each choice, in every way if there are not too many."""
    if math.prod(map(len, choices.values())) <= MOST:
        products = itertools.product(*choices.values())
        return [dict(zip(choices, values, strict=True)) for values in products]
    usual = {text: values[0] for text, values in choices.items()}
    combinations = [usual]
    for text, values in choices.items():
        combinations += [{**usual, text: other} for other in values[1:]]
    return combinations


def _with(emitted: EmittedOptimizer, chosen: Mapping[str, Any]) -> EmittedOptimizer:
    """An optimizer with chosen values in the place of expressions of the program."""
    values = {text: value for text, value in chosen.items() if value is not ANY}
    if not values:
        return emitted

    exchange = Exchange({text: ast.Constant(value) for text, value in values.items()})
    found = replace(
        emitted,
        legacy_expression=exchange.in_text(emitted.legacy_expression),
        optax_expression=exchange.in_text(emitted.optax_expression),
    )
    # The helpers that `rewrite` emits have no names of the program; those of a new tree may.
    if not isinstance(found, Counterpart):
        return found
    return replace(
        found,
        supports=tuple(map(exchange.in_text, found.supports)),
        legacy_supports=tuple(map(exchange.in_text, found.legacy_supports)),
    )


OTHER = "any other"
ANY = object()
"""The choice that leaves the source text in its place, for which a number is sampled later."""


def choices_of(emitted: EmittedOptimizer) -> dict[str, tuple[Any, ...]]:
    """The values between which a program chooses, by the source texts of the expressions."""
    found: dict[str, dict[str, Any]] = {}
    for tree in syntax_trees(emitted):
        reader = _Reader(tree, emitted)
        for node, values in (*reader.choices(), *reader.booleans()):
            known = found.setdefault(ast.unparse(node), {})
            for value in values:
                # To Python, True and 1 are equal, but they are two choices.
                known.setdefault(repr(value), value)
    return {text: tuple(known.values()) for text, known in found.items()}


class _Reader:
    """Finds the choices in a tree: expressions of the program, with the values to choose from.

    `bound` are names that the tree itself binds, `known` those that have no value to choose.
    """

    def __init__(self, tree: ast.AST, emitted: EmittedOptimizer) -> None:
        self.tree = tree
        self.bound = bound_in(tree)
        self.known = {*KNOWN_MODULES, *names_defined(supports_of(emitted))}
        if emitted.schedule:
            self.known.add(ast.unparse(ast.parse(emitted.schedule)))

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
                # [leaf for leaf in leaves if use_bias]
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
                        literals = [
                            key for key in keys if isinstance(key, ast.Constant)
                        ]
                        yield key, tuple(literal.value for literal in literals)

    def booleans(self) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """Each expression of the program for a boolean parameter of a legacy optimizer."""
        for node in ast.walk(self.tree):
            # optim.Momentum(0.1, nesterov=settings.nesterov)
            name = constructor(node)
            if not isinstance(node, ast.Call) or name not in optimizers():
                continue
            parameters = optimizers()[name].parameters
            booleans = {
                parameter.name
                for parameter in parameters
                if parameter.default in ("True", "False")
            }
            names = (parameter.name for parameter in parameters)
            words = ((word.arg, word.value) for word in node.keywords)
            by_position = zip(names, node.args, strict=False)
            for parameter, argument in (*by_position, *words):
                if parameter in booleans:
                    yield from self._of_test(argument)

    def _of_test(self, node: ast.expr) -> Iterator[tuple[ast.expr, tuple[Any, ...]]]:
        """The expressions of the program that are true or false in a test."""
        if self._is_of_the_program(node):
            yield node, (True, False)
            return
        match node:
            # use_adam and debug; bool(settings.nesterov)
            case (
                ast.BoolOp(values=inner)
                | ast.Call(func=ast.Name(id="bool"), args=inner)
            ):
                for value in inner:
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
                each = value if isinstance(value, tuple | list | set) else (value,)
                yield node, tuple(itertools.chain.from_iterable(map(_around, each)))

    def _is_of_the_program(self, node: ast.expr) -> bool:
        """Whether the program has one value for an expression.

        It has none for what depends on the arguments of a predicate.
        """
        names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        # lambda path, _: path.endswith(suffix)
        if names & self.bound:
            return False
        return starts_outside(node, self.known)


def _around(value: Any) -> tuple[Any, ...]:
    """A value that a program compares with, and others than it."""
    if value is None:
        return ANY, None
    if isinstance(value, bool):
        return True, False
    # epoch < 5
    if isinstance(value, int):
        return value - 1, value, value + 1
    if isinstance(value, float):
        # Twice 0.0 is 0.0, which is no other value.
        return value / 2, value, value * 2 or 1.0
    if isinstance(value, str):
        return value, OTHER
    return (value,)
