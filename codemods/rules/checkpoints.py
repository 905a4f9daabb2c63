"""What is stored of an optimizer, and read back."""

from __future__ import annotations

from codemods.model import Refusal
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.uses import Use


@rule("FO601", "the state dict of an optimizer", "state_dict")
def state_dict(use: Use, context: Context) -> Refusal:
    """A checkpoint or state dict of a legacy optimizer has the keys `target` and `state`; that of a `TrainState` has `params`,
    `opt_state` and `step`. Code that reads it by key is left, with a reason.
    """
    return reasons.state(
        f"The key `{use.name}` is read from the state dict or checkpoint of an optimizer, whose layout changes.",
        "Read `params`, `opt_state` and `step` from new ones; old checkpoints need a conversion.",
    )
