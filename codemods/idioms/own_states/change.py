"""Where a dataclass with an optimizer changes: `state.replace(optimizer=stepped, …)`."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.own_states.state import STEP, OwnState
from codemods.model import Location
from codemods.optimizers.base import RATE
from codemods.rewriting.edits import Argument, Edit, RewriteCall
from codemods.sources.modules import Unit


def replaced(draft: OwnState, call: ast.Call) -> ast.expr | None:
    """The state in `state.replace(…)`, if a call is that."""
    match call:
        case ast.Call(func=ast.Attribute(attr="replace", value=base)):
            return base if draft.is_one(base) else None
    return None


def replace(draft: OwnState, unit: Unit, call: ast.Call, base: ast.expr) -> None:
    """`state.replace(optimizer=stepped, …)` becomes `state.apply_gradients(grads=…, …)`."""
    where = unit.location(call.lineno)
    # state.replace(step=state.step + 1, optimizer=stepped)
    words = enumerate(call.keywords, len(call.args))
    given = {str(word.arg): index for index, word in words}
    if call.args or any(word.arg is None for word in call.keywords):
        raise Unproven("its fields are unpacked at {}", where)
    if draft.name not in given:
        return  # nor is a step given that counts: `Counters` asks for both
    word = call.keywords[given[draft.name]]
    value = draft.origins.expanded(word.value)
    use = draft.stepped.pop(value, None)
    if use is None or not isinstance(value, ast.Call):
        raise Unproven("its optimizer comes from elsewhere at {}", where)
    if isinstance(word.value, ast.Name):
        _drop_result(draft, word.value, unit, where)
    if not _is_of(draft, value, base, call):
        raise Unproven("its optimizer comes from another state at {}", where)
    dropped = draft.dropped
    kept = tuple(
        Argument(name, index=index)
        for name, index in given.items()
        if name not in dropped
    )
    # step=state.step + 1, which the train state does itself
    if STEP in dropped and STEP in given:
        draft.dead_code.clear(call.keywords[given[STEP]].value)
    edit = _stepping(draft, unit, call, base, value, use, kept)
    draft.edits.put(call, unit, edit)
    draft.outcomes[use.node] = edit


def _is_of(draft: OwnState, step: ast.Call, base: ast.expr, call: ast.Call) -> bool:
    """Whether a step is one of the optimizer of a state, which is the same at a later call."""
    function = step.func
    if not isinstance(function, ast.Attribute):
        return False
    holder = draft.holder(function.value)
    path = draft.origins.path(base)
    if holder is None or path is None:
        return False
    # state.replace(optimizer=other.optimizer.apply_gradient(grads))
    if path != draft.origins.path(holder.value):
        return False
    is_kept = draft.facts.dataflow.is_kept
    return is_kept(holder.value, call) and is_kept(base, call)


def _drop_result(draft: OwnState, name: ast.Name, unit: Unit, where: Location) -> None:
    """Remove `new_optimizer = …`, which only the new state reads."""
    variable = draft.origins.variable(name)
    setting = draft.origins.setting(variable)
    used_by_itself = Unproven("its new optimizer is used by itself before {}", where)
    if variable is None or setting is None:
        raise used_by_itself
    if draft.origins.loads(variable) != [name]:
        raise used_by_itself
    draft.edits.take_away(setting, unit)


def _stepping(
    draft: OwnState,
    unit: Unit,
    call: ast.Call,
    base: ast.expr,
    value: ast.Call,
    use: Use,
    kept: tuple[Argument, ...],
) -> Edit:
    """The edit of a call of `replace` with a step of the optimizer."""
    where = unit.location(value.lineno)
    holes = [("base", unit.span(base))]
    # state.replace(optimizer=state.optimizer.apply_gradient(grads))
    gradients = _gradients(draft, use, value, call)
    if gradients is None:
        raise Unproven(
            "the gradients at {} would be others where the state changes", where
        )
    if draft.overrides.keeps_rate(use):
        raise Unproven("the constructor's learning rate is set again at {}", where)
    holes.append(("grads", unit.span(gradients)))
    function, prelude = "{base}.apply_gradients", ""
    override = draft.overrides.of(use)
    if override is not None:
        _refuse_override(draft, override, gradients, value, call)
        holes.append(("rate", unit.span(override.value)))
        function, prelude = _with_rate(draft, call, unit)
    grads = Argument("grads", template="{grads}")
    return RewriteCall(
        unit.span(call), function, (grads, *kept), tuple(holes), prelude=prelude
    )


def _gradients(
    draft: OwnState, use: Use, value: ast.Call, call: ast.Call
) -> ast.expr | None:
    """The gradients of a step, if they may be read at a later call."""
    gradients = draft.stepping.gradients(use)
    if gradients is None or draft.stepping.axes(use.objects):
        return None
    return gradients if _may_wait(draft, [gradients], value, call) else None


def _refuse_override(
    draft: OwnState,
    override: ast.keyword,
    gradients: ast.expr,
    value: ast.Call,
    call: ast.Call,
) -> None:
    """Refuse a learning rate that cannot be set in the state."""
    where = draft.facts.scope(call).unit.location(value.lineno)
    if override.arg != RATE or not _may_wait(
        draft, [override.value, gradients], value, call
    ):
        raise Unproven(
            "the learning rate at {} would be another where the state changes",
            where,
        )
    if draft.stepping.param_names.may_be_rate:
        raise Unproven(
            "the learning rate that is set at {} may be called as a parameter is",
            where,
        )


def _with_rate(draft: OwnState, call: ast.Call, unit: Unit) -> tuple[str, str]:
    """The templates of the function and of the statement ahead, for a step that sets a rate."""
    state = "{optax}.tree_utils.tree_set({base}.opt_state, learning_rate={rate})"
    scope = draft.facts.scope(call)
    is_local = isinstance(scope.node, ast.FunctionDef)
    is_free = is_local and scope.binding("opt_state") is None
    prelude = ""
    # state = state.replace(…): the new optimizer state gets a line of its own
    if isinstance(unit.parents.get(call), ast.Assign) and is_free:
        prelude, state = f"opt_state = {state}", "opt_state"
    return f"{{base}}.replace(opt_state={state}).apply_gradients", prelude


def _may_wait(
    draft: OwnState,
    nodes: list[ast.expr],
    first: ast.Call,
    second: ast.Call,
) -> bool:
    """Whether expressions of a call may be evaluated first among the arguments of another.

    The other call is later, or around it. The expressions are evaluated in their order.
    """
    dataflow = draft.facts.dataflow
    others = [word.value for word in second.keywords if word.value is not first]
    # stepped = state.optimizer.apply_gradient(grads), and then state.replace(…)
    if first not in set(ast.walk(second)):
        return dataflow.stays(nodes, first, second)
    # state.replace(optimizer=state.optimizer.apply_gradient(grads), batch_stats=…)
    moved, *behind = nodes
    if not all(dataflow.may_swap(moved, other) for other in (*others, *behind)):
        where = draft.facts.scope(first).unit.location(first.lineno)
        raise Unproven("the order of what {} computes matters", where)
    return True
