"""Calls that restore an optimizer, and would not load what was stored before the migration."""

from __future__ import annotations

import ast
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.analysis.naming import last_word
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message
from codemods.vocabulary import FILL


def note(use: Use) -> Message:
    """What loads an old checkpoint at a call, as a sentence."""
    if use.kind in BY_METHOD:
        return message(
            "It is restored at {} from a state dict, of which the keys are others now: one from "
            "before the migration does not load. Written to a file by "
            "`flax.serialization.msgpack_serialize`, it is what `optim2optax checkpoint convert` "
            "converts.",
            use.location,
        )
    return message(
        "It is restored at {}, where a checkpoint from before the migration does not load: "
        "`optim2optax checkpoint convert` converts it, and "
        "`optim2optax.checkpoints.loading.load_legacy_checkpoint(path, state)` loads it.",
        use.location,
    )


BY_METHOD = ("optimizer.restore_state", "definition.restore_state")
"""The methods that fill an optimizer with a state dict."""


def _fills(use: Use) -> bool:
    """Whether an optimizer gets a state dict, other than that of an optimizer then and there."""
    if use.kind not in BY_METHOD or use.call is None:
        return False
    # optimizer.restore_state(other.state_dict())
    calls = [one for one in values_of(use.call)[-1:] if isinstance(one, ast.Call)]
    return not any(last_word(one.func) == "state_dict" for one in calls)


def restoring(facts: Facts) -> list[Use]:
    """The calls that restore optimizers, by themselves or in something else."""
    found = [use for use in facts.uses if use.kind == "restored" or _fills(use)]
    known = {use.node for use in found}
    for unit, call in facts.flow.reading.calls:
        if call in known or FILL.isdisjoint(facts.externals(call.func)):
            continue
        # checkpoints.restore_checkpoint(folder, State(optimizer, rng))
        given = chain.from_iterable(map(facts.objects, values_of(call)))
        held = facts.dataflow.handing.within(given)
        optimizers = tuple(
            one
            for one in held
            if isinstance(one, LegacyObject) and one.kind == "optimizer"
        )
        if optimizers:
            name = ast.unparse(call.func)
            found.append(Use("restored", name, unit, call, optimizers))
    return found


def may_have_copies(node: ast.expr, use: Use, stepping: Stepping) -> bool:
    """Whether an optimizer that comes here may have been replicated by its own method."""
    if not stepping.axes(use.objects):
        return False
    # save_checkpoint(directory, jax_utils.unreplicate(optimizer), step)
    if isinstance(node, ast.Call) and last_word(node.func) == "unreplicate":
        return False
    # where it is replicated in the same function, what comes before that has no copies
    scope = stepping.facts.scope(node)
    here: list[Use] = []
    for found in stepping.facts.uses:
        # optimizer = optimizer.replicate()
        if found.kind != "optimizer.replicate":
            continue
        is_ours = not {*found.objects}.isdisjoint(use.objects)
        if is_ours and stepping.facts.scope(found.owner) is scope:
            here.append(found)
    if not here:
        return True
    may_follow = stepping.facts.dataflow.may_follow
    return any(may_follow(node, found.node) for found in here)
