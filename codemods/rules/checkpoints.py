"""What is stored of an optimizer, and read back."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.optimizers.base import Support, helper
from codemods.rewriting.edits import Edit, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context

PARAMS_OF = helper('''def params_of(checkpoint):
    """The parameters in a checkpoint that was read as plain dicts, new or old."""
    key = "target" if "target" in checkpoint else "params"
    return checkpoint[key]
''')
STEP_OF = helper('''def step_of(checkpoint):
    """The step in a checkpoint that was read as plain dicts, new or old."""
    return (checkpoint["state"] if "state" in checkpoint else checkpoint)["step"]
''')


@rule(
    "FO601",
    "the key target of a state dict is params",
    "state_dict",
    before='params = serialization.to_state_dict(optimizer)["target"]\n',
    after='params = serialization.to_state_dict(optimizer)["params"]\n',
)
def state_dict(use: Use, context: Context) -> Edit | Refusal:
    """A state dict of a legacy optimizer has the keys `target` and `state`; that of a `TrainState`
    has `params`, `opt_state` and `step`. Code that reads anything but the step from `state` stays,
    with a reason.
    """
    # serialization.to_state_dict(optimizer)["target"]
    if use.name == "target" and isinstance(use.node, ast.Subscript):
        quote = use.unit.source(use.node.slice)[0]
        return Replace(use.unit.span(use.node.slice), f"{quote}params{quote}")
    # serialization.to_state_dict(optimizer)["state"]["step"]
    step = _step_in_state(use)
    if step is None:
        return _refuse(use)
    quote = use.unit.source(step.slice)[0]
    template = f"{{owner}}[{quote}step{quote}]"
    if context.counted.needs_array(step, use.unit):
        template = f"{{jnp}}.asarray({template}, {{jnp}}.int32)"
    return Replace(use.unit.span(step), template, (use.owner_hole,))


def _step_in_state(use: Use) -> ast.Subscript | None:
    """The whole of `x["state"]["step"]`, if a use is its first half."""
    match use.parent:
        case (
            ast.Subscript(slice=ast.Constant(value="step"), ctx=ast.Load()) as step
        ) if step.value is use.node:
            return step
    return None


@rule(
    "FO604",
    "the key target of a checkpoint may be params",
    "checkpoint",
    before='params = checkpoints.restore_checkpoint(directory, None)["target"]\n',
    after="params = params_of(checkpoints.restore_checkpoint(directory, None))\n",
)
def checkpoint(use: Use, context: Context) -> Edit | Refusal:
    """A checkpoint that is read as plain dicts may have been stored before or after the migration,
    by this program or by another. So its parameters may be under either key, and its step in either
    place. Small functions that are added to the project look for both.
    """
    span = use.span
    match use.node:
        # restored["state"]["step"]
        case ast.Subscript(value=restored, ctx=ast.Load()) if use.name == "state":
            step = _step_in_state(use)
            if step is None:
                return _refuse(use)
            span, template = (
                use.unit.span(step),
                f"{{support:{STEP_OF.name}}}({{restored}})",
            )
            supports: tuple[Support, ...] = (STEP_OF,)
        # restored["target"]
        case ast.Subscript(value=restored, ctx=ast.Load()):
            template = f"{{support:{PARAMS_OF.name}}}({{restored}})"
            supports = (PARAMS_OF,)
        # "target" in restored
        case ast.Compare(
            left=left,
            ops=[ast.In() | ast.NotIn() as operator],
            comparators=[restored],
        ):
            quote = use.unit.source(left)[0]
            # exported variables have `params`, too
            keys = f"{{{quote}target{quote}, {quote}opt_state{quote}}}"
            template = f"{keys}.isdisjoint({{restored}})"
            if not isinstance(operator, ast.NotIn):
                template = f"not {template}"
            supports = ()
        case _:
            return _refuse(use)
    return Replace(span, template, (("restored", use.unit.span(restored)),), supports)


def _refuse(use: Use) -> Refusal:
    return reasons.state(
        f"The key `{use.name}` of the state dict or checkpoint of an optimizer is used, whose "
        "layout changes.",
        "Read `params`, `opt_state` and `step` from new ones; old checkpoints need a conversion.",
    )
