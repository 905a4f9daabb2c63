"""Optimizers of the user's own: subclasses of `OptimizerDef`."""

from __future__ import annotations

import ast
from inspect import Signature

from codemods.dataflow.binding import arguments_of, signature_of, taking, values_of
from codemods.edits import ConvertCustom, Edit, Replace
from codemods.flow.objects import Class
from codemods.legacy import MULTI_OPTIMIZER
from codemods.model import Refusal
from codemods.optimizers import optimizers
from codemods.optimizers.base import RATE, Support
from codemods.optimizers.views import DERIVABLE, OPTIMIZER_STATE, param_state
from codemods.rules import reasons, rule
from codemods.rules.context import Context, legacy_bases
from codemods.rules.definitions import refuse_traversals
from codemods.rules.types import made_by_hand, named
from codemods.uses import Use

PARAM_METHOD = "apply_param_gradient"
"""The method whose `state` is that of one parameter, a class of the user's own."""

STORED = ("create", "state_dict", "restore_state")
"""Methods of which a train state has its own."""

PARAM_RULE_STATE = Support(
    name="ParamRuleState",
    source='''class ParamRuleState(NamedTuple):
    """The number of steps taken, and the state of each parameter."""

    step: jax.Array
    param_states: optax.Params
''',
    imports=("from typing import NamedTuple", "import jax", "import optax"),
)
PARAM_RULE = Support(
    name="ParamRule",
    source='''class ParamRule:
    """An optimizer written as a rule that makes the new value of a parameter.

    A subclass has `init_param_state` and `apply_param_gradient`; `transformation` is what
    optax calls a gradient transformation, whose updates are the new values less the old.
    """

    def __init__(self, hyper_params):
        self.hyper_params = hyper_params

    def init_param_state(self, param):
        raise NotImplementedError

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        raise NotImplementedError

    def init_state(self, params):
        param_states = jax.tree_util.tree_map(self.init_param_state, params)
        return ParamRuleState(jnp.zeros([], jnp.int32), param_states)

    def apply_gradient(self, hyper_params, params, state, grads):
        params, treedef = jax.tree_util.tree_flatten(params)
        parts = params, treedef.flatten_up_to(state.param_states), treedef.flatten_up_to(grads)
        new = [self.apply_param_gradient(state.step, hyper_params, *part) for part in zip(*parts)]
        new_params = treedef.unflatten([param for param, _ in new])
        new_states = treedef.unflatten([param_state for _, param_state in new])
        return new_params, ParamRuleState(state.step + 1, new_states)

    def transformation(self):
        def update(updates, state, params=None):
            new, state = self.apply_gradient(self.hyper_params, params, state, updates)
            return jax.tree_util.tree_map(lambda n, p: n - p, new, params), state

        return optax.GradientTransformation(self.init_state, update)
''',
    imports=("import jax", "import jax.numpy as jnp", "import optax"),
)


@rule(
    "FO701",
    "a custom OptimizerDef keeps its rule",
    "base",
    before="class Sign(optim.OptimizerDef): ...\n",
    after="class Sign(ParamRule): ...\n",
)
def custom(use: Use, context: Context) -> Edit | Refusal:
    """A class that derives from `OptimizerDef` keeps its methods, and with them the same arithmetic. Its base becomes a small
    class that is added to the file, `ParamRule`, with the methods it inherited and one that makes a gradient transformation of
    them, which is called where the optimizer is made.

    One that derives from another optimizer, and has its own arithmetic, gets a base with the constructor and the state of that.
    One that asks its base for a step, or has a `create` or `state_dict` of its own, is left, with a reason.
    """
    owner = use.parent
    assert isinstance(owner, ast.ClassDef)
    methods = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    derives = use.name == "OptimizerDef" or (use.name in DERIVABLE and "apply_param_gradient" in methods)
    if not derives or len(owner.bases) != 1 or not methods.isdisjoint(STORED) or any(map(_asks_base, ast.walk(owner))):
        return has_no_base(f"derives from `{use.name or 'flax.optim'}` in a way that has no counterpart")
    whole = (node for node in owner.body if not (isinstance(node, ast.FunctionDef) and node.name == PARAM_METHOD))
    if any(_exchanges_state(inner) for node in whole for inner in ast.walk(node)):
        return reasons.custom_definition(
            "This class exchanges a part of its state by `replace`.", "Make a new state instead."
        )
    supports = (PARAM_RULE_STATE, PARAM_RULE) + (rule_of(use.name) if use.name in DERIVABLE else ())
    return Replace(use.span, f"{{support:{supports[-1].name}}}", supports=supports)


def has_no_base(what: str) -> Refusal:
    """Why a class of the user's own stays that does something."""
    return reasons.custom_definition(
        f"This class {what}.",
        "Write it as an `optax.GradientTransformation`: `init` makes the state, `update` turns gradients into updates.",
    )


def rule_of(optimizer: str) -> tuple[Support, ...]:
    """The base of a class that derived from an optimizer and has an arithmetic of its own, behind what it needs.

    It has the constructor and the state of that optimizer.
    """
    found = optimizers()[optimizer]
    kept = param_state(optimizer)
    names = [parameter.name for parameter in found.parameters]
    fields = "\n".join(f"    {name}: jax.Array" for name in names)
    hyper_params = Support(
        f"{optimizer}HyperParams",
        f'@struct.dataclass\nclass {optimizer}HyperParams:\n    """The hyperparameters of {optimizer}."""\n\n{fields}\n',
        ("from flax import struct", "import jax"),
    )
    defaults = ", ".join(f"{parameter.name}={parameter.default}" for parameter in found.parameters)
    zeros = ", ".join("jnp.zeros_like(param)" for _ in found.state)
    source = f'''class {optimizer}Rule({PARAM_RULE.name}):
    """A rule with the hyperparameters of {optimizer}, and with what that keeps for a parameter."""

    def __init__(self, {defaults}):
        super().__init__({hyper_params.name}({", ".join(names)}))

    def init_param_state(self, param):
        return {kept.name}({zeros})
'''
    return kept, hyper_params, Support(f"{optimizer}Rule", source, ("import jax.numpy as jnp",))


def _asks_base(node: ast.AST) -> bool:
    """Whether a part of a class asks its base for a step."""
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
            return name in ("apply_param_gradient", "apply_gradient", *STORED)
    return False


def _exchanges_state(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="replace", value=ast.Name(id="state" | "opt_state" | "optimizer_state")):
            return True
    return False


@rule("FO702", "the transformation of a custom optimizer", "custom")
def made(use: Use, context: Context) -> Edit | Refusal:
    """Where an optimizer of the user's own class is made, its `transformation()` is taken. If steps set its learning rate, that
    becomes an injected hyperparameter, and the class is made anew with it at each step. One that derives from `MultiOptimizer`
    has the rates of its parts.
    """
    assert isinstance(use.node, ast.Call)
    classes = [item for item in context.facts.objects(use.node.func) if isinstance(item, Class)]
    if any(context.facts.derives_from(item, MULTI_OPTIMIZER) for item in classes):
        return refuse_traversals(use.node, context) or ConvertCustom(use.span)
    if not any(thing in context.injected for thing in use.things):
        return ConvertCustom(use.span)
    signatures = [_signature(item) for item in classes]
    given = [arguments_of(signature, use.node) for signature in signatures if RATE in signature.parameters]
    rates = [None if found is None else found.get(RATE) for found in given]
    if len(given) != len(signatures) or None in given or len({*rates}) != 1:
        return reasons.overrides(
            f"A step sets the learning rate, and what makes this optimizer does not plainly take a `{RATE}`.",
            "Inject it with `optax.inject_hyperparams` by hand.",
        )
    rate = rates[0]
    return ConvertCustom(use.span, True, None if rate is None else values_of(use.node).index(rate))


def _signature(cls: Class) -> Signature:
    """What a class's own constructor takes, but for the instance."""
    functions = (node for node in cls.node.body if isinstance(node, ast.FunctionDef))
    return next((signature_of(one.args, 1) for one in functions if one.name == "__init__"), taking())


@rule("FO703", "the state of a custom optimizer", "definition:OptimizerState", "annotation:OptimizerState")
def state(use: Use, context: Context) -> Edit | Refusal:
    """The `OptimizerState` that an optimizer of the user's own makes becomes a `ParamRuleState` with the same fields; one that
    a function makes of an optimizer's state becomes a class of the file (FO213).
    """
    viewed = bool(context.viewed) and not legacy_bases(use, context.facts)
    if use.kind == "annotation" and not viewed:
        return named(use, "{optax}.OptState")
    if not viewed and not use.things:
        return made_by_hand(use)
    support = OPTIMIZER_STATE if viewed else PARAM_RULE_STATE
    return named(use, f"{{support:{support.name}}}", (support,))
