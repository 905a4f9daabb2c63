"""What an optimizer keeps for each parameter, where that is walked through as a whole."""

from __future__ import annotations

import ast
from typing import TypeGuard

from codemods.analysis.leaves import in_any_order
from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.uses import Use
from codemods.idioms.schedules import Schedules
from codemods.inference.objects import LegacyObject
from codemods.model import Refusal
from codemods.optimizers.base import LegacyOptimizer, helper, is_plain
from codemods.rewriting.edits import Argument, Edit, Replace, RewriteCall
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.sources.modules import Unit
from codemods.vocabulary import LIST_LEAVES, MAP_TREES

PARAM_STATES = helper('''def param_states(state):
    """What the optimizer keeps for each parameter: its moments alone."""
    return optax.tree_utils.tree_map_params(
        state.tx,
        lambda leaf: leaf,
        state.opt_state,
        transform_non_params=lambda _: None,
    )
''')


MAP_PARAM_STATES = helper('''def map_param_states(function, state, *others):
    """The `opt_state` with a function applied to what is kept for each parameter."""
    is_kept = optax.tree_utils.tree_map_params(
        state.tx, lambda _: True, state.opt_state, transform_non_params=lambda _: False
    )
    return jax.tree_util.tree_map(
        lambda kept, *leaves: function(*leaves) if kept else leaves[0],
        is_kept,
        state.opt_state,
        *(other.opt_state for other in others),
    )
''')

SHORT = 40
"""The longest text of a call that a person writes twice."""

ValueAndOwner = tuple[ast.expr, ast.expr]
"""What a field of a state is replaced by, and the optimizer to which the state belongs."""


@rule(
    "FO211",
    "param_states is the part of opt_state that belongs to parameters",
    "state.param_states",
    before="size = sum(x.size for x in jax.tree_util.tree_leaves(optimizer.state.param_states))\n",
    after="size = sum(x.size for x in jax.tree_util.tree_leaves(param_states(optimizer)))\n",
)
def param_states(use: Use, context: Context) -> Edit | Refusal:
    """The same arrays are in `opt_state`, but moment by moment instead of parameter by parameter,
    with counts and injected hyperparameters among them. So two kinds of code have a counterpart: a
    function of each array, with `optax.tree_utils.tree_map_params`, whose result replaces the
    state; and a loop over all arrays whose order does not matter. For other code, such as reading
    the moments of one parameter, the definition keeps its interface (FO706), and so the old state.
    """
    assert isinstance(use.node, ast.expr)
    owner = _owner_of_state(use.node, "param_states", context)
    if owner is not None and _keeps_the_same(owner, context):
        for of_all in (_in_map, _in_leaves, _replaced):
            whole = of_all(use, context)
            if whole is not None:
                return whole
    return state_is_used()


def state_is_used() -> Refusal:
    """Why a state stays, any part of which may be read."""
    return reasons.state(
        "The optimizer's state is used directly here.",
        "Read `.opt_state` instead; its layout is that of the optax transformation.",
    )


def _keeps_the_same(optimizer: ast.expr, context: Context) -> bool:
    """Whether all optimizers at a place keep the same arrays for each parameter in optax."""
    for obj in context.facts.legacy_objects(optimizer, "optimizer"):
        definitions = context.facts.legacy.definitions(obj)
        if not definitions or not all(_keeps_fields(made) for made in definitions):
            return False
    return True


def _keeps_fields(definition: LegacyObject) -> bool:
    """Whether there is an array in optax for each field of the legacy parameter state."""
    # its parts are definitions of their own
    if definition.made_by == "MultiOptimizer":
        return True
    found = legacy_optimizer(definition)
    return found is not None and bool(found.rule)


def _in_map(use: Use, context: Context) -> Edit | None:
    """States as trees of `tree_map`; where they are the first tree, the call becomes another."""
    states = _states(use)
    call = use.unit.parents.get(states)
    if not (_maps_states(call, context) and _goes_back(call, use.unit, context)):
        return None
    owner = ("owner", use.unit.span(_owner(states)))
    span = use.unit.span(call)
    # the second tree of tree_map(average, first.state.param_states, second.state.param_states)
    if states is not call.args[1]:
        return Replace(use.unit.span(states), "{owner}", (owner,))
    function = Argument(None, index=0)
    further = range(2, len(call.args))
    others = tuple(Argument(None, index=index) for index in further)
    # tree_map(average, first.state.param_states, second.state.param_states)
    if others:
        arguments = (function, Argument(None, template="{owner}"), *others)
        name = f"{{support:{MAP_PARAM_STATES.name}}}"
        return RewriteCall(span, name, arguments, (owner,), (MAP_PARAM_STATES,))
    # tree_map(halve, optimizer.state.param_states)
    transformation = Argument(None, template="{owner}.tx")
    arguments = (transformation, function, Argument(None, template="{owner}.opt_state"))
    return RewriteCall(span, "{optax}.tree_utils.tree_map_params", arguments, (owner,))


def _maps_states(call: ast.AST | None, context: Context) -> TypeGuard[ast.Call]:
    """Whether this is `tree_map` over such states alone, of optimizers that migrate together."""
    if not isinstance(call, ast.Call) or call.keywords:
        return False
    if MAP_TREES.isdisjoint(context.facts.externals(call.func)):
        return False
    objects: list[LegacyObject] = []
    for tree in call.args[1:]:
        # a path, as it comes to stand twice: make_optimizer().state.param_states
        owner = _owner_of_state(_without_params(tree), "param_states", context)
        if owner is None or not is_plain(owner):
            return False
        objects += context.facts.legacy_objects(owner, "optimizer")
    groups = {context.facts.groups.get(obj) for obj in objects}
    return len(groups) == 1


def _goes_back(call: ast.Call, unit: Unit, context: Context) -> bool:
    """Whether the result is only used to replace the states, at once or under a name."""
    match unit.parents.get(call):
        # averaged = tree_map(average, optimizer.state.param_states)
        case ast.Assign(targets=[ast.Name() as name]):
            loads = context.origins.loads(context.origins.meant(name, call))
            return all(_is_put_back(found, unit, context) for found in loads)
    return _is_put_back(call, unit, context)


def _is_mapped(value: ast.expr, owner: ast.expr, unit: Unit, context: Context) -> bool:
    """Whether a value is mapped from states of an optimizer, only to replace these."""
    calls = _mapped(value, owner, context)
    return bool(calls) and all(_goes_back(call, unit, context) for call in calls)


def _mapped(value: ast.expr, owner: ast.expr, context: Context) -> list[ast.Call]:
    """The calls of `tree_map` that make a value, if all map states, first those of an optimizer.

    The count of steps in `opt_state` comes with the first states. What callers give a parameter of
    a function has the legacy layout.
    """
    # states = tree_map(…), then optimizer.state.replace(param_states=states)
    found: list[ast.expr | None] = [value]
    if isinstance(value, ast.Name):
        found = context.origins.values_of(value)
    calls = [call for call in found if _maps_states(call, context)]
    dumped = ast.dump(owner)
    of_owner = [call for call in calls if ast.dump(_owner(call.args[1])) == dumped]
    return of_owner if len(of_owner) == len(found) else []


def _is_put_back(value: ast.expr, unit: Unit, context: Context) -> bool:
    """Whether a value replaces the states of an optimizer, or the `params` within these."""
    word = unit.parents.get(value)
    call = unit.parents.get(word) if isinstance(word, ast.keyword) else None
    found = _new_field(call, "param_states", unit, context)
    found = found or _new_model(call, unit, context)
    return found is not None and bool(_mapped(*found, context))


def is_new_state(node: ast.AST | None, unit: Unit, context: Context) -> bool:
    """Whether this is a state with mapped `param_states`, and replaces that of its optimizer."""
    found = _new_field(node, "param_states", unit, context)
    return found is not None and _is_mapped(*found, unit, context)


def new_by_definition(
    node: ast.AST | None, unit: Unit, context: Context
) -> tuple[ast.expr, ast.expr] | None:
    """Take apart `definition.init_state(params)` within its `optimizer.replace(state=…)`.

    Returns the definition, which has to be the optimizer's own, and the parameters.
    """
    word = unit.parents.get(node) if node is not None else None
    replaced = unit.parents.get(word) if isinstance(word, ast.keyword) else None
    match node, word, replaced:
        case (
            ast.Call(
                func=ast.Attribute(value=definition, attr="init_state"),
                args=args,
                keywords=words,
            ),
            ast.keyword(arg="state"),
            ast.Call(func=ast.Attribute(value=optimizer, attr="replace")),
        ) if [word.arg for word in words] == ["params"] * (1 - len(args)):
            made = context.facts.legacy_objects(definition, "definition")
            own = [
                one
                for obj in context.facts.legacy_objects(optimizer, "optimizer")
                for one in context.facts.legacy.definitions(obj)
            ]
            [params] = [*args, *(word.value for word in words)]
            return (definition, params) if made and {*made} == {*own} else None
    return None


def new_step(node: ast.AST | None, unit: Unit, context: Context) -> ast.expr | None:
    """The step in `optimizer.replace(state=optimizer.state.replace(step=value))`, if simple."""
    found = _new_field(node, "step", unit, context)
    if found is None:
        return None
    value, owner = found
    counts = counts_in_state(owner, context)
    if not is_plain(owner) or counts is None:
        return None
    if not counts:
        return value
    # it comes to stand twice: in `step=` and in the count within `opt_state`
    is_alone = not context.stepping.param_names.may_be("count")
    return value if is_alone and _may_stand_twice(value, context) else None


def _may_stand_twice(value: ast.expr, context: Context) -> bool:
    """Whether an expression may be evaluated twice, and is short: `jnp.zeros((), jnp.int32)`."""
    is_short = len(ast.unparse(value)) <= SHORT
    return is_plain(value) or (is_short and context.facts.dataflow.has_no_effect(value))


def _new_field(
    node: ast.AST | None,
    name: str,
    unit: Unit,
    context: Context,
) -> ValueAndOwner | None:
    """Take apart `optimizer.state.replace(NAME=value)` within its `optimizer.replace(state=…)`."""
    if not isinstance(node, ast.Call):
        return None
    word = unit.parents.get(node)
    if not isinstance(word, ast.keyword) or word.arg != "state":
        return None
    value = _only_keyword(node, name)
    owner = _owner_of_state(node.func, "replace", context)
    if value is None or owner is None:
        return None
    match unit.parents.get(word):
        # other.replace(state=optimizer.state.replace(step=0)) is of two optimizers
        case ast.Call(func=ast.Attribute(value=other)):
            return (value, owner) if ast.dump(owner) == ast.dump(other) else None
    return None


def counts_in_state(optimizer: ast.expr, context: Context) -> bool | None:
    """Whether all transformations at a place count steps in their state; None if only some do."""
    objects = context.facts.legacy_objects(optimizer, "optimizer")
    scheduled = context.idioms[Schedules].of(objects)
    if scheduled is not None and scheduled.counts:
        return True
    made: list[LegacyOptimizer | None] = []
    for obj in objects:
        # of an optimizer without known definitions, nothing is known
        definitions = context.facts.legacy.definitions(obj) or [obj]
        made += map(legacy_optimizer, definitions)
    counts: set[bool] = set()
    for legacy in made:
        if legacy is None:
            return None
        if not legacy.is_composite:
            counts.add(legacy.counts)
    return counts.pop() if len(counts) == 1 else None


def _new_model(
    node: ast.AST | None,
    unit: Unit,
    context: Context,
) -> ValueAndOwner | None:
    """Take apart the statement `optimizer.state.param_states.replace(params=value)`.

    There `param_states` is a model of the old API; the new state that is made is thrown away.
    """
    if not isinstance(node, ast.Call):
        return None
    if not isinstance(unit.parents.get(node), ast.Expr):
        return None
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "replace":
        return None
    value = _only_keyword(node, "params")
    owner = _owner_of_state(node.func.value, "param_states", context)
    if value is None or owner is None:
        return None
    return value, owner


def _replaced(use: Use, context: Context) -> Edit | None:
    """`optimizer.state.param_states.replace(params=…)`, thrown away as before."""
    # the node is the attribute `param_states`, its parent `.replace`, and that one's the call
    call = use.unit.parents.get(use.unit.parents[use.node])
    found = _new_model(call, use.unit, context)
    if not isinstance(call, ast.Call) or found is None:
        return None
    if not _is_mapped(*found, use.unit, context):
        return None
    owner = ("owner", use.unit.span(_owner(use.node)))
    arguments = (Argument("opt_state", index=0),)
    return RewriteCall(use.unit.span(call), "{owner}.replace", arguments, (owner,))


def _in_leaves(use: Use, context: Context) -> Edit | None:
    """The leaves, where their order does not matter."""
    states = _states(use)
    call = use.unit.parents.get(states)
    # tree_leaves(optimizer.state.param_states)
    if not isinstance(call, ast.Call) or call.args != [states] or call.keywords:
        return None
    if LIST_LEAVES.isdisjoint(context.facts.externals(call.func)):
        return None
    # sum(x.size for x in …), and not next(iter(…))
    if not in_any_order(call, context.facts, counts=False):
        return None
    owner = ("owner", use.unit.span(_owner(states)))
    template = f"{{support:{PARAM_STATES.name}}}({{owner}})"
    return Replace(use.unit.span(states), template, (owner,), (PARAM_STATES,))


def _states(use: Use) -> ast.expr:
    """The expression of all states: `param_states`, or `param_states.params` of the old API."""
    assert isinstance(use.node, ast.expr)
    parent = use.parent
    if isinstance(parent, ast.Attribute) and parent.attr == "params":
        return parent
    return use.node


def _without_params(node: ast.expr) -> ast.expr:
    """`optimizer.state.param_states`, if this is that or its `params`."""
    match node:
        case ast.Attribute(value=states, attr="params"):
            return states
    return node


def _owner(states: ast.expr | ast.stmt) -> ast.expr:
    """The optimizer in `optimizer.state.param_states`, or in `….param_states.params`."""
    node = _without_params(states) if isinstance(states, ast.expr) else None
    assert isinstance(node, ast.Attribute)
    assert isinstance(node.value, ast.Attribute)
    return node.value.value


def _owner_of_state(node: ast.expr, name: str, context: Context) -> ast.expr | None:
    """The optimizer in `optimizer.state.NAME`."""
    match node:
        case ast.Attribute(
            attr=attr, value=ast.Attribute(attr="state", value=owner)
        ) if attr == name:
            return owner if context.facts.legacy_objects(owner, "optimizer") else None
    return None


def _only_keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value in `replace(NAME=value)`."""
    match call:
        case ast.Call(args=[], keywords=[ast.keyword(arg=arg, value=value)]) if (
            arg == name
        ):
            return value
    return None
