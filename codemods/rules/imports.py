"""Imports of legacy names. What becomes of one is decided last, by what still needs it."""

from __future__ import annotations

from codemods.edits import Keep
from codemods.rules import rule
from codemods.rules.context import Context
from codemods.uses import Use


@rule(
    "FO101",
    "imports of flax.optim",
    "import",
    before="from flax import optim\n",
    after="from flax.training import train_state\nimport optax\n",
)
def legacy_import(use: Use, context: Context) -> Keep:
    """An import of `flax.optim` or of a name from it is removed when nothing needs it any more, and the imports that the new
    code needs are added in the file's own style. An import that a module exports, through `__all__`, in an `__init__.py` or
    with `# noqa`, is left, with a reason.
    """
    return Keep()
