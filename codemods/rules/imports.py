"""Imports of legacy names. What becomes of one is decided last, by what still needs it."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.rewriting.edits import Keep
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.sources.modules import Unit


@rule(
    "FO101",
    "imports of flax.optim",
    "import",
    before="from flax import optim\n",
    after="from flax.training import train_state\nimport optax\n",
)
def legacy_import(use: Use, context: Context) -> Keep | Refusal:
    """An import of `flax.optim`, or of a name from it, is removed when nothing needs it any more.
    The imports that the new code needs are added in the file's own style. If files of the project
    import such a name from one another, all these imports go when nothing needs the last one. An
    import stays, with a reason, if its module exports it, through `__all__`, in an `__init__.py` or
    with `# noqa`.
    """
    assert isinstance(use.node, ast.stmt)
    if shares_its_line(use.unit, use.node):
        return reasons.statement_form(
            "This import stands behind the colon of another statement.",
            "Put it on a line of its own.",
        )
    return Keep()


def shares_its_line(unit: Unit, statement: ast.stmt) -> bool:
    """Whether a statement is the one-line body of another, as in `if new: import this`."""
    # a module has no line
    parent = unit.parents.get(statement)
    return getattr(parent, "lineno", 0) == statement.lineno
