"""The learning rate for a constructor without one, where all steps set the same."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins, statement_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms.overrides import Overrides
from codemods.optimizers.base import RATE

SIMPLE = (ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


def first_rate(use: Use, stepping: Stepping, overrides: Overrides) -> str:
    """The number that each step sets as the rate, for the constructor at a use.

    Empty if the steps do not all set the same number.
    """
    made = (found for obj in use.objects for found in stepping.optimizers_of(obj))
    given = [overrides.of(step) for step in stepping.steps(made)]
    texts: set[str] = set()
    for word in given:
        # optimizer.apply_gradient(grads, learning_rate=rate)
        if word is not None and word.arg == RATE:
            texts.add(_text(word.value, stepping.origins))
        else:
            texts.add("")
    return texts.pop() if len(texts) == 1 else ""


def has_room(use: Use) -> bool:
    """Whether a comment above the statement around a use is about nothing else."""
    statement = statement_of(use.unit, use.node)
    lines = use.unit.code.split("\n")
    line = lines[statement.lineno - 1].encode()
    # seed = 0; optimizer = optim.Adam().create(params)
    ahead = line[: statement.col_offset].strip()
    return isinstance(statement, SIMPLE) and not ahead


def _text(rate: ast.expr, origins: Origins) -> str:
    """The source text of a rate that is a number; empty for any other."""
    value = origins.expanded(rate)
    is_number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return ast.unparse(value) if is_number else ""
