"""States of which each array is that of one of two optimizers: a step that is skipped."""

from __future__ import annotations

import ast

from codemods.analysis.origins import is_path
from codemods.analysis.queries import only_value
from codemods.analysis.uses import Use
from codemods.inference.objects import External, Function, Partial
from codemods.rewriting.edits import Argument, Holes
from codemods.rules.context import Context
from codemods.rules.param_states import may_stand_twice
from codemods.vocabulary import MAP_TREES, SELECT

LONGEST = 100
"""The longest text of a choice that is written twice, for the step and for the state."""


def chosen_states(node: ast.AST | None, context: Context) -> list[ast.Attribute]:
    """The two states in `select(new.state, old.state)`; none if that may be anything else."""
    if not isinstance(node, ast.Call) or node.keywords:
        return []
    states = [node.args[index] for index in _chosen(node, context)]
    found = [
        state
        for state in states
        if isinstance(state, ast.Attribute)
        and state.attr == "state"
        and is_path(state.value)
    ]
    owners = [{*context.facts.legacy_objects(one.value, "optimizer")} for one in found]
    others = (one for one in node.args if one not in states)
    is_twice = len(ast.unparse(node)) <= LONGEST and all(
        isinstance(one, ast.Lambda) or may_stand_twice(one, context) for one in others
    )
    is_of_one = len(owners) == 2 and owners[0] == owners[1] != set()
    return found if is_twice and is_of_one else []


def in_choice(use: Use, context: Context) -> bool:
    """Whether `optimizer.state` is one of those in `optimizer.replace(state=select(…))`."""
    call = use.parent
    word = None if call is None else use.unit.parents.get(call)
    if not isinstance(word, ast.keyword) or word.arg != "state":
        return False
    return use.node in chosen_states(call, context)


def choosing(value: ast.expr, use: Use) -> tuple[tuple[Argument, ...], Holes]:
    """The arguments for `step` and `opt_state` that choose as a call chooses a state."""
    assert isinstance(value, ast.Call)
    holes = [("choose", use.unit.span(value.func))]
    texts: list[str] = []
    for index, argument in enumerate(value.args):
        is_state = isinstance(argument, ast.Attribute) and argument.attr == "state"
        text = f"{{chosen{index}}}"
        node = argument.value if isinstance(argument, ast.Attribute) else argument
        holes.append((f"chosen{index}", use.unit.span(node if is_state else argument)))
        texts.append(f"{text}.FIELD" if is_state else text)
    template = f"{{choose}}({', '.join(texts)})"
    step, opt_state = (
        Argument(name, template=template.replace("FIELD", name))
        for name in ("step", "opt_state")
    )
    return (step, opt_state), tuple(holes)


def _chosen(call: ast.Call, context: Context) -> list[int]:
    """The indices of the arguments that are two trees, of which a call chooses each array."""
    names = {*context.facts.externals(call.func)}
    # jax.tree_map(functools.partial(jnp.where, is_finite), new.state, old.state)
    if names and names <= MAP_TREES:
        is_chosen = len(call.args) == 3 and _chooses(call.args[0], context)
        return [1, 2] if is_chosen else []
    match tuple(context.facts.objects(call.func)):
        case (Function() as function,):
            body, names_given = only_value(function), _parameters(function)
        case _:
            return []
    match body:
        case ast.Call(args=[chooses, ast.Name(id=one), ast.Name(id=other)]) if (
            one != other
            and len(names_given) == len(call.args)
            and {one, other} <= {*names_given}
            and not MAP_TREES.isdisjoint(context.facts.externals(body.func))
            and _chooses(chooses, context)
        ):
            return [names_given.index(one), names_given.index(other)]
    return []


def _chooses(node: ast.expr, context: Context) -> bool:
    """Whether a function of two numbers gives one of them, by a condition of its own."""
    match tuple(context.facts.objects(node)):
        case (
            Partial(call=ast.Call(args=[_, _], keywords=[]), function=External(name)),
        ):
            return name in SELECT
        case (Function() as function,):
            body, names = only_value(function), _parameters(function)
        case _:
            return False
    match body:
        case ast.Call(
            args=[condition, ast.Name(id=one), ast.Name(id=other)], keywords=[]
        ) if len(names) == 2 and {one, other} == {*names}:
            reads = (part for part in ast.walk(condition) if isinstance(part, ast.Name))
            return (
                not SELECT.isdisjoint(context.facts.externals(body.func))
                and all(part.id not in names for part in reads)
                and context.facts.dataflow.has_no_effect(condition)
            )
    return False


def _parameters(function: Function) -> list[str]:
    """The parameters of a function that takes arguments by position alone."""
    declared = function.node.args
    several = (declared.vararg, declared.kwarg, *declared.kwonlyargs)
    if any(several) or declared.defaults:
        return []
    return [one.arg for one in (*declared.posonlyargs, *declared.args)]
