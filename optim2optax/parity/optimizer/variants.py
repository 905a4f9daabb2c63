"""The choices that a program makes within an expression: each is compared as an optimizer."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.choices import ANY, choices_of
from optim2optax.parity.optimizer.counterpart import Counterpart

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

    def chosen_in(sources: Sequence[str]) -> tuple[str, ...]:
        return tuple(_exchanged(source, values, "exec") for source in sources)

    found = replace(
        emitted,
        legacy_expression=_exchanged(emitted.legacy_expression, values, "eval"),
        optax_expression=_exchanged(emitted.optax_expression, values, "eval"),
    )
    # The helpers that `rewrite` emits have no names of the program; those of a new tree may.
    if not isinstance(found, Counterpart):
        return found
    return replace(
        found,
        supports=chosen_in(found.supports),
        legacy_supports=chosen_in(found.legacy_supports),
    )


def _exchanged(text: str, values: Mapping[str, Any], mode: str) -> str:
    tree = _Choose(values).visit(ast.parse(text, mode=mode))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Choose(ast.NodeTransformer):
    """Puts values in the place of expressions, which it knows by their source texts."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> ast.AST:
        # settings.nesterov
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if text in self.values:
            return ast.Constant(self.values[text])
        return super().generic_visit(node)
