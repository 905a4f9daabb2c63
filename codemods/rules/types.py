"""Annotations and isinstance checks."""

from __future__ import annotations

import ast

from codemods.analysis.legacy import Unnamed
from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.optimizers import optimizers
from codemods.optimizers.base import Support
from codemods.rewriting.edits import Edit, Keep, Replace, ReplaceQuoted
from codemods.rules import reasons, rule
from codemods.rules.context import Context

NAMES = {
    "Optimizer": "{TrainState}",
    "OptimizerDef": "{optax}.GradientTransformation",
    "OptimizerState": "{optax}.OptState",
}
"""Templates for the classes that annotations and checks name."""


@rule(
    "FO206",
    "annotations",
    "annotation",
    "value:Optimizer",
    before="def train_step(optimizer: optim.Optimizer, batch): ...\n",
    after="def train_step(optimizer: train_state.TrainState, batch): ...\n",
)
def annotation(use: Use, context: Context) -> Edit | Keep | Refusal:
    """`Optimizer` becomes `TrainState`. `OptimizerDef` and the optimizers' classes become
    `optax.GradientTransformation`, also inside `Optional[…]`, `Tuple[…]` and quotes, and in type
    aliases. `ModelParamTraversal` becomes the `Callable` that a predicate is.
    """
    if use.name == "ModelParamTraversal":
        return _traversal(use, context)
    template = NAMES.get(use.name, "{optax}.GradientTransformation")
    if use.name not in (*NAMES, *optimizers()):
        return reasons.name_needed("This annotation has no counterpart.", "Remove it.")
    return named(use, template)


def _traversal(use: Use, context: Context) -> Edit | Keep:
    """A traversal becomes a predicate where an optimizer of the program has one."""
    program = context.facts.together(use.unit)
    for _, inner in context.facts.legacy.links:
        if inner.kind == "traversal" and inner.unit.path in program:
            return named(use, "{Callable}")
    return named(use, "{ModelParamTraversal}") if use.legacy_import else Keep()


def named(use: Use, template: str, supports: tuple[Support, ...] = ()) -> Edit:
    """A name in the place of a legacy one, which may be called, or stand in a quoted annotation."""
    # "Optional[optim.Optimizer]"
    if isinstance(use.node, ast.Constant):
        return ReplaceQuoted(use.span, ((use.quoted, template),), supports)
    node = use.node.func if isinstance(use.node, ast.Call) else use.node
    return Replace(use.unit.span(node), template, supports=supports)


def made_by_hand(use: Use) -> Refusal:
    """Why a state stays that nothing but `flax.optim` itself makes elsewhere."""
    return reasons.definition_internals(
        f"`{use.name}` is made by hand.",
        "Let `TrainState.create` and `apply_gradients` make the state.",
    )


@rule(
    "FO207",
    "isinstance checks",
    "check",
    before="assert isinstance(optimizer, flax.optim.Optimizer)\n",
    after="assert isinstance(optimizer, train_state.TrainState)\n",
)
def check(use: Use, context: Context) -> Edit | Refusal:
    """A check for `Optimizer` becomes a check for `TrainState`. Checks for the class of a state, of
    its parts or for a kind of definition have no counterpart.
    """
    is_own = any(obj.made_by is Unnamed.CUSTOM for obj in use.objects)
    if use.name == "OptimizerDef" and is_own:
        return reasons.run_time_class(
            "This asks for the class `OptimizerDef` of a definition of your own, which is no "
            "`optax.GradientTransformation`.",
            "Ask for its method `update` instead.",
        )
    if use.name in ("Optimizer", "OptimizerDef"):
        return Replace(use.span, NAMES[use.name])
    return reasons.run_time_class(
        f"This asks for the class `{use.name}`, but all optax transformations are of one class.",
        "Keep the choice in a variable.",
    )
