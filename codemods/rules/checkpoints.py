"""What is stored of an optimizer, and read back."""

from __future__ import annotations

import ast

from codemods.edits import Edit, Replace
from codemods.model import Refusal
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.uses import Use


@rule(
    "FO601",
    "the key target of a state dict is params",
    "state_dict",
    before='params = serialization.to_state_dict(optimizer)["target"]\n',
    after='params = serialization.to_state_dict(optimizer)["params"]\n',
)
def state_dict(use: Use, context: Context) -> Edit | Refusal:
    """A state dict of a legacy optimizer has the keys `target` and `state`; that of a `TrainState` has `params`, `opt_state` and
    `step`. Code that reads `state` is left, with a reason, and so is what reads a checkpoint that may come from elsewhere.
    """
    if use.things and use.name == "target" and isinstance(use.node, ast.Subscript):
        quote = use.unit.source(use.node.slice)[0]
        return Replace(use.unit.span(use.node.slice), f"{quote}params{quote}")
    return reasons.state(
        f"The key `{use.name}` is read from the state dict or checkpoint of an optimizer, whose layout changes.",
        "Read `params`, `opt_state` and `step` from new ones; old checkpoints need a conversion.",
    )
