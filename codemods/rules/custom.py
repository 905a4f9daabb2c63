"""Optimizers of the user's own: subclasses of `OptimizerDef`."""

from __future__ import annotations

import ast

from codemods.analysis.legacy import Unnamed
from codemods.analysis.uses import Use, legacy_bases
from codemods.model import Refusal
from codemods.optimizers import optimizers
from codemods.optimizers.interface import (
    OPTIMIZER_STATE,
    interface_of,
    param_state,
)
from codemods.rewriting.edits import Edit, Keep, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.definitions import refuse_traversals
from codemods.rules.hyper_params import multi_classes
from codemods.rules.types import made_by_hand, named
from codemods.vocabulary import PACKAGE

WITH_STATES = [
    name
    for name, optimizer in optimizers().items()
    if optimizer.rule and optimizer.state
]
"""The optimizers from which a class of the user's own may derive, and which have a state for each
parameter."""

TAKEN = ("create", "state_dict", "restore_state", "init", "update")
"""The methods that a train state or a transformation has under the same name."""


@rule(
    "FO701",
    "a custom OptimizerDef keeps its rule",
    "base",
    before="class Sign(optim.OptimizerDef): ...\n",
    after="class Sign(OptimizerDef): ...\n",
)
def custom(use: Use, context: Context) -> Edit | Refusal:
    """A class that derives from `OptimizerDef` keeps its methods, and so its arithmetic. Its base
    becomes a small class that is added to the project. This has the methods of `OptimizerDef`, and
    `init` and `update`, so that the class is an optax transformation as it stands:
    `TrainState.create(tx=Sign(0.1), …)` and `optax.chain(clip, Sign(0.1))` accept it.

    A class that derives from another optimizer gets a base with the constructor, state and
    arithmetic of that optimizer. A class with a `create` or `state_dict` of its own stays, with a
    reason.
    """
    owner = use.parent
    assert isinstance(owner, ast.ClassDef)
    methods = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    supports = interface_of(use.name)
    if not supports or not methods.isdisjoint(TAKEN):
        own = sorted(methods.intersection(TAKEN))
        what = (
            f" and has a `{own[0]}` of its own"
            if own
            else " in a way that has no counterpart"
        )
        base = PACKAGE if use.legacy is Unnamed.MODULE else use.name
        return has_no_base(f"derives from `{base}`{what}")
    return Replace(use.span, f"{{support:{supports[-1].name}}}", supports=supports)


def has_no_base(what: str) -> Refusal:
    """Why a class of the user's own stays: what it does has no counterpart in a base."""
    return reasons.custom_definition(
        f"This class {what}.",
        "Write it as an `optax.GradientTransformation`: `init` makes the state, `update` turns "
        "gradients into updates.",
    )


@rule("FO702", "a custom optimizer is made", "custom")
def made(use: Use, context: Context) -> Keep | Refusal:
    """An instance of the user's own class is a transformation as it is made. One that derives from
    `MultiOptimizer` has the rates of its parts. If steps set hyperparameters, all definitions that
    they may use keep their interface (FO706).
    """
    assert isinstance(use.node, ast.Call)
    # LoggingOptimizer((kernels, optim.Adam(1e-3)), (others, optim.Momentum(0.1)))
    is_multi = bool(multi_classes(use.node, context))
    return (refuse_traversals(use.node, context) if is_multi else None) or Keep()


@rule(
    "FO703",
    "the state of a custom optimizer",
    "definition:OptimizerState",
    "annotation:OptimizerState",
)
def state(use: Use, context: Context) -> Edit | Refusal:
    """The `OptimizerState` of the user's own optimizer becomes a class in the file with the same
    fields.
    """
    # def init_state(self, params) -> OptimizerState
    if use.kind == "annotation":
        return named(use, "{optax}.OptState")
    # OptimizerState(0, param_states), for no optimizer in view
    if not use.objects:
        return made_by_hand(use)
    return named(use, f"{{support:{OPTIMIZER_STATE.name}}}", (OPTIMIZER_STATE,))


@rule(
    "FO213",
    "what an optimizer keeps for a parameter",
    *(f"definition:_{name}ParamState" for name in WITH_STATES),
)
def param_state_made(use: Use, context: Context) -> Edit | Refusal:
    """A class that derives from an optimizer (FO701) may make what that keeps for a parameter. The
    private class of this is added to the project.
    """
    assert isinstance(use.node, ast.Call)
    optimizer = use.name.removeprefix("_").removesuffix("ParamState")
    if optimizer not in legacy_bases(use, context.facts):
        return made_by_hand(use)
    support = param_state(optimizer)
    function = use.unit.span(use.node.func)
    return Replace(function, f"{{support:{support.name}}}", supports=(support,))
