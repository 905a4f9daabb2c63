"""Where a dataclass is made: `State(step=0, optimizer=definition.create(params), …)`."""

from __future__ import annotations

import ast

from codemods.analysis.initial_params import apply_function
from codemods.analysis.origins import names_within, statement_of
from codemods.idioms import Unproven
from codemods.idioms.own_states.state import STEP, OwnState
from codemods.inference.binding import arguments_of, taking, values_of
from codemods.model import Location
from codemods.optimizers.methods import CREATE
from codemods.rewriting.edits import Argument, Replace, RewriteCall
from codemods.sources.modules import Span, Unit


def make(draft: OwnState, unit: Unit, call: ast.Call) -> None:
    """`State(step=0, optimizer=definition.create(params), …)` becomes `State.create(…)`."""
    where = unit.location(call.lineno)
    fields = draft.facts.flow.fields_in_order(draft.cls)
    constructor = taking(**dict.fromkeys(fields))
    given = arguments_of(constructor, call)
    if given is None:
        raise Unproven("its fields are unpacked at {}", where)
    if draft.name not in given:
        raise Unproven("it has no optimizer at {}", where)
    optimizer = given[draft.name]
    makers = _makers(draft, optimizer, where)
    params = _params(makers, where)
    holes: list[tuple[str, Span]] = []
    transformation = _transformation(draft, optimizer, makers, unit, holes)
    apply_fn = apply_function(makers[0], params, unit, draft.facts)
    holes.append(("callee", unit.span(call.func)))
    holes.append(("params", unit.span(params)))
    # State.create(apply_fn=model.apply, params=params, tx=tx, …)
    arguments = [
        Argument("apply_fn", template=apply_fn),
        Argument("params", template="{params}"),
        Argument("tx", template=transformation),
    ]
    values = values_of(call)
    # the optimizer has become `params` and `tx`, and the step begins at 0
    for name, node in given.items():
        if name not in (draft.name, STEP):
            index = values.index(node)
            arguments.append(Argument(name, index=index))
    edit = RewriteCall(
        unit.span(call), "{callee}.create", tuple(arguments), tuple(holes)
    )
    draft.edits.put(call, unit, edit)
    for maker in makers:
        use = draft.created.pop(maker)
        draft.outcomes[use.node] = edit


def _makers(draft: OwnState, value: ast.expr, where: Location) -> list[ast.Call]:
    """The calls of `create` that may have given a value."""
    found: list[ast.expr | None] = [value]
    if isinstance(value, ast.Name):
        found = draft.origins.values_of(value)
        if draft.origins.loads(draft.origins.variable(value)) != [value]:
            raise Unproven("its optimizer is used by itself before {}", where)
    every_call = (one for one in found if isinstance(one, ast.Call))
    calls = [one for one in every_call if one in draft.created]
    # optimizer = restored or definition.create(params)
    if not calls or len(calls) != len(found):
        raise Unproven("its optimizer is not made plainly before {}", where)
    return calls


def _transformation(
    draft: OwnState,
    value: ast.expr,
    makers: list[ast.Call],
    unit: Unit,
    holes: list[tuple[str, Span]],
) -> str:
    """The transformation that the state gets. Edits the statements that made the optimizer."""
    functions = [maker.func for maker in makers]
    definitions = [one.value for one in functions if isinstance(one, ast.Attribute)]
    only = definitions[0]
    # State(optimizer=definition.create(params))
    if not isinstance(value, ast.Name):
        holes.append(("tx", unit.span(only)))
        return "{tx}"
    variable = draft.origins.variable(value)
    assert variable is not None
    every_store = draft.origins.stores(variable)
    stores = [one for one in every_store if isinstance(one, ast.Name)]
    # del optimizer
    is_deleted = any(isinstance(store.ctx, ast.Del) for store in stores)
    statement = statement_of(unit, makers[0])
    is_only_way = len(makers) == 1 and not is_deleted
    # a block does not become empty
    is_removable = is_only_way and len(unit.block_of(statement)) > 1
    # optimizer = definition.create(params), which is not needed any more
    if is_removable and isinstance(only, ast.Name):
        draft.edits.take_away(statement, unit)
        return only.id
    # optimizer = optim.Adam().create(params), which becomes tx = optax.adam()
    is_taken = "tx" in names_within(variable.scope.node)
    name = value.id if is_taken else "tx"
    for maker, definition in zip(makers, definitions, strict=True):
        holes_of_maker = (("tx", unit.span(definition)),)
        edit = Replace(unit.span(maker), "{tx}", holes_of_maker)
        draft.edits[maker] = (unit, edit)
    if name != value.id:
        for store in stores:
            draft.edits[store] = (unit, Replace(unit.span(store), name))
    return name


def _params(makers: list[ast.Call], where: Location) -> ast.expr:
    """The parameters that optimizers are made for."""
    targets: list[ast.expr] = []
    for maker in makers:
        given = arguments_of(CREATE, maker) or {}
        targets += given.values()
    texts = {ast.unparse(target) for target in targets}
    if len(texts) != 1:
        raise Unproven(
            "its optimizers are made for different parameters before {}", where
        )
    return targets[0]
