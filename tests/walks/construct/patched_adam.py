"""Adam where a test puts something in its place by its path."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.rewriting.edits import Edit, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context


@rule(
    "FO198",
    "a patched path is that of optax",
    "patched:Adam",
    before='with mock.patch("flax.optim.Adam") as made:\n    train()\n',
    after='with mock.patch("optax.adam") as made:\n    train()\n',
)
def patched_adam(use: Use, context: Context) -> Edit | Refusal:
    """The program calls the function `optax.adam` now, so that is what a test replaces."""
    del context
    match use.node:
        case ast.Call(args=[ast.Constant(value="flax.optim.Adam") as path, *_]):
            return Replace(use.unit.span(path), '"optax.adam"')
    return reasons.run_time_class(
        "An attribute of Adam is set here, for all that is made by it.",
        "Write a function that is given the object.",
    )
