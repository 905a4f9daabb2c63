"""The learning rate for a constructor without one, where all steps set the same."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins, statement_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms.overrides import Overrides
from codemods.inference.objects import LegacyObject
from codemods.optimizers.base import RATE

SIMPLE = (ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


def first_rate(use: Use, stepping: Stepping, overrides: Overrides) -> str:
    """The source text of the rate that each step sets, for the constructor at a use.

    It is a number, or a name at the top level of the constructor's own file that is a number from
    before the constructor on; empty if the steps do not all set the same.
    """
    made = (found for obj in use.objects for found in stepping.optimizers_of(obj))
    given = [overrides.of(step) for step in stepping.steps(made)]
    if _takes_bare_steps(use.objects, stepping.facts):
        return ""
    texts: set[str] = set()
    for word in given:
        # optimizer.apply_gradient(grads, learning_rate=rate)
        if word is not None and word.arg == RATE:
            texts.add(_text(word.value, use, stepping.origins))
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


def _takes_bare_steps(objects: Iterable[LegacyObject], facts: Facts) -> bool:
    """Whether a definition takes steps without an optimizer."""
    own = {*objects}
    bare = (use for use in facts.uses if use.kind == "definition.apply_gradient")
    return any(not own.isdisjoint(use.objects) for use in bare)


def _text(rate: ast.expr, use: Use, origins: Origins) -> str:
    """The source text of a rate as it can be written at a constructor; empty if it cannot."""
    value = origins.expanded(rate)
    if _is_number(value):
        return ast.unparse(value)
    variable = origins.variable(value)
    only = origins.value(variable)
    if variable is None or only is None or not _is_number(only):
        return ""
    # LEARNING_RATE = 0.1
    setting = origins.setting(variable)
    if setting is None or not isinstance(use.node, ast.expr):
        return ""
    if use.unit.parents.get(setting) is not use.unit.tree:
        return ""
    if setting.lineno >= use.node.lineno:
        return ""
    here = origins.facts.scope(use.node)
    # the name is that variable at the constructor, too
    is_in_reach = here.binding(variable.name) is variable.scope
    return variable.name if is_in_reach else ""


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
