"""Optimizers whose definitions keep their interface, as a program works with definitions."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.inference.binding import Wrong, arguments_of, bind
from codemods.inference.objects import LegacyObject
from codemods.model import Refusal
from codemods.optimizers import optimizers
from codemods.optimizers.base import helper
from codemods.optimizers.interface import (
    APPLY_GRADIENTS_WITH,
    by_name,
    has_interface,
    interface_of,
)
from codemods.optimizers.methods import RESTORE_STATE_DICT, STATE_DICT, STEP
from codemods.rewriting.edits import Argument, Edit, Keep, Replace, RewriteCall
from codemods.rules import reasons, rule
from codemods.rules.classes import in_table, lookup_of
from codemods.rules.context import Context
from codemods.rules.custom import custom
from codemods.rules.hyper_params import refuse_unseen
from codemods.rules.types import named
from codemods.vocabulary import words

FIELDS = {"target": "params", "state": "opt_state", "optimizer_def": "tx"}
"""The fields of an optimizer, and those of a train state."""

STORED = {"state_dict": STATE_DICT, "restore_state": RESTORE_STATE_DICT}
"""The methods of a definition that make and read state dicts, with their signatures."""

RESTORED = helper('''def restored(params, opt_state, state_dict):
    """Parameters and the state of an optimizer, from their state dict."""
    wanted = {"target": params, "state": opt_state}
    return tuple(
        serialization.from_state_dict(old, state_dict[key])
        for key, old in wanted.items()
    )
''')

ARGUMENTS = "FO905"
"""The code of the reason why a call stays that legacy did not accept."""

ANNOTATED = ("OptimizerDef", "OptimizerState")
"""The classes that an annotation may name beside those of the optimizers."""

OF_CLASSES = ("check", "class", "definition", "value")
"""The kinds of uses that name a class."""

WORKING = words(
    "apply_gradient apply_param_gradient hyper_params init_param_state init_state "
    "own update_hyper_params"
)
"""The attributes of a definition that the class in its place has too."""

STAYING = frozenset(
    (
        "custom",
        "dynamic",
        "filter",
        "reflection",
        "whole",
        *(f"definition.{name}" for name in WORKING),
        *(f"optimizer.{name}" for name in words("optimizer_def state")),
        *(f"optimizer.{name}" for name in words("replicate unreplicate")),
    )
)
"""The kinds of uses that stay as they are, but for the names of fields, or have no counterpart."""

CALLED = words(
    "definition.restore_state definition.state_dict optimizer.apply_gradient optimizer.replace"
)
"""The kinds of uses of methods that have a counterpart where they are called."""

IN_PARTS = ("state.", "traversal.")
"""The beginnings of the kinds of uses of states and traversals, which stay as they are."""


def is_decided(use: Use) -> bool:
    """Whether FO706 decides on a use of optimizers that keep their interface, and no other rule."""
    match use.kind:
        case "whole" | "reflection":
            # getattr(definition, "create"), which the class in its place has not
            return use.name != "create" and {obj.kind for obj in use.objects} == {
                "definition"
            }
        # class Sign(optim.Momentum)
        case "base":
            return bool(interface_of(use.name))
        case "module":
            return lookup_of(use) is not None
        # def init_state(self, params) -> OptimizerState
        case "annotation":
            is_private = use.name.startswith("_")
            return use.name in ANNOTATED or (
                is_private and bool(interface_of(use.name))
            )
    return (
        use.kind in STAYING
        or (use.kind in CALLED and use.call is not None)
        or use.kind.startswith(IN_PARTS)
        or _names_class(use)
        or _is_traversal(use)
    )


def _is_traversal(use: Use) -> bool:
    return use.kind == "definition" and use.name == "ModelParamTraversal"


def _names_class(use: Use) -> bool:
    return use.kind in OF_CLASSES and bool(interface_of(use.name))


@rule(
    "FO706",
    "a definition keeps its interface",
    before="optimizer_def = Lookahead(optim.Adam(1e-3))\n",
    after="optimizer_def = Lookahead(Adam(1e-3))\n",
)
def with_interface(use: Use, context: Context) -> Edit | Keep | Refusal:
    """A program may work with definitions themselves: wrap one in another, call the step of one
    parameter, replace its hyperparameters, or read and make states by hand. An optax transformation
    has none of that. If an optimizer cannot be migrated otherwise, its definition keeps its
    interface: `optim.Adam(1e-3)` becomes `Adam(1e-3)`, a class that is added to the project with
    the same constructor, methods, hyperparameters and states. It also has `init` and `update`, so
    it is an optax transformation too. All code that works with the definition stays as it is, and
    the optimizer still becomes a `TrainState`, whose `opt_state` is the old state.

    A step with its own hyperparameters becomes a call of a small helper that passes them to the
    definition.
    """
    if use.kind == "base":
        return custom(use, context)
    if use.kind == "module":
        return _by_name(use, context)
    if _is_traversal(use):
        return named(use, "{ModelParamTraversal}") if use.legacy_import else Keep()
    if isinstance(use.node, ast.Call) and has_interface(use.name):
        # Python refuses the arguments; all others go to the constructor of the class
        refusal = optimizers()[use.name].refuse(use.node)
        if refusal is not None and refusal.code == ARGUMENTS:
            return refusal
    if _names_class(use) or use.kind == "annotation":
        supports = interface_of(use.name)
        return named(use, f"{{support:{supports[-1].name}}}", supports)
    return _of_object(use, context)


def _of_object(use: Use, context: Context) -> Edit | Keep | Refusal:
    """What becomes of an attribute or a method of an optimizer, or of its definition."""
    refusal = _refuse(use)
    if refusal is not None:
        return refusal
    if use.call is None or use.kind in STAYING or use.kind.startswith(IN_PARTS):
        field = FIELDS.get(use.name) if use.kind.startswith("optimizer.") else None
        if field is None:
            return Keep()
        return Replace(use.span, f"{{owner}}.{field}", (use.owner_hole,))
    if use.kind == "optimizer.replace":
        return _replaced(use, use.call)
    if use.name in STORED:
        return _stored(use, use.call)
    return _step(use, use.call, context)


def _refuse(use: Use) -> Refusal | None:
    """Why an attribute has no counterpart, if it has none."""
    if use.name in ("replicate", "unreplicate"):
        return reasons.deprecated_method(
            f"`{use.name}` makes another definition of one that keeps its interface.",
            "Use `jax_utils.replicate`, and `jax.lax.pmean` on the gradients before each step.",
        )
    # optimizer.state[0]
    if use.kind == "optimizer.state" and isinstance(use.parent, ast.Subscript):
        return reasons.state(
            "One of several states is taken here.",
            "Read the state of the group that is meant.",
        )
    if any(
        isinstance(other, LegacyObject) and other.kind == "optimizer"
        for other in use.others
    ):
        return reasons.conflict(
            f"What has `.{use.name}` here may be an optimizer or its definition.",
            "Use different names for the two.",
        )
    return None


def _by_name(use: Use, context: Context) -> Edit | Refusal:
    """A class that is looked up by its name, among those that the project names."""
    lookup = lookup_of(use)
    names = sorted(name for name in context.facts.named_classes if interface_of(name))
    if lookup is None or not names:
        return reasons.run_time_class(
            "A class is looked up by a name that is not in view.", "Name it."
        )
    return in_table(lookup, use, by_name(names))


def _replaced(use: Use, call: ast.Call) -> Edit | Refusal:
    """`optimizer.replace(…)`, with fields under the names that a train state has for them."""
    words = [FIELDS.get(word.arg or "") for word in call.keywords]
    if call.args or None in words:
        return reasons.unpacked_arguments(
            "The arguments of `replace` are unpacked, or none of its fields.",
            "Name them.",
        )
    arguments = tuple(Argument(word, index=index) for index, word in enumerate(words))
    return RewriteCall(
        use.unit.span(call), "{owner}.replace", arguments, (use.owner_hole,)
    )


def _stored(use: Use, call: ast.Call) -> Edit | Refusal:
    """The state dict of parameters and a state, or both restored from one."""
    given = arguments_of(STORED[use.name], call)
    if given is None:
        return reasons.arguments(
            f"`{use.name}` is not given what it takes.", "Correct the call."
        )
    holes = tuple((name, use.unit.span(value)) for name, value in given.items())
    # definition.state_dict(target, state)
    if use.name == "state_dict":
        template = (
            '{serialization}.to_state_dict({"target": {target}, "state": {state}})'
        )
        return Replace(use.unit.span(call), template, holes)
    # definition.restore_state(opt_target, opt_state, state_dict)
    template = (
        f"{{support:{RESTORED.name}}}({{opt_target}}, {{opt_state}}, {{state_dict}})"
    )
    return Replace(use.unit.span(call), template, holes, (RESTORED,))


def _step(use: Use, call: ast.Call, context: Context) -> Edit | Refusal:
    """A step; one with hyperparameters of its own gives them to a helper, in the same order."""
    found = bind(STEP, call)
    if isinstance(found, Wrong):
        return reasons.arguments(
            f"Python refuses this call: {found.why}.", "Correct the call."
        )
    given = [*call.args, *call.keywords]
    # optimizer.apply_gradient(grads)
    if len(given) == 1 and _are_gradients(given[0]):
        arguments: tuple[Argument, ...] = (Argument("grads", index=0),)
        function = "{owner}.apply_gradients"
        return RewriteCall(use.unit.span(call), function, arguments, (use.owner_hole,))
    if (refusal := refuse_unseen(use, context)) is not None:
        return refusal
    # optimizer.apply_gradient(grads, learning_rate=rate, beta1=0.8)
    same = (Argument(None, index=index) for index in range(len(given)))
    arguments = (Argument(None, template="{owner}"), *same)
    function = f"{{support:{APPLY_GRADIENTS_WITH.name}}}"
    supports = (APPLY_GRADIENTS_WITH,)
    return RewriteCall(
        use.unit.span(call), function, arguments, (use.owner_hole,), supports
    )


def _are_gradients(argument: ast.AST) -> bool:
    """Whether the only argument of a step is the gradients, and nothing that is unpacked."""
    if isinstance(argument, ast.keyword):
        return argument.arg == "grads"
    return not isinstance(argument, ast.Starred)
