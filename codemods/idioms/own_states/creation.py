"""Where a dataclass with an optimizer is made: `State(step=0, optimizer=definition.create(params), …)`."""

from __future__ import annotations

import ast

from codemods.analysis.model_apply import apply_function
from codemods.analysis.origins import block_of, names_within, statement_of
from codemods.flow.binding import arguments_of, taking, values_of
from codemods.idioms import Unproven
from codemods.idioms.own_states.draft import STEP, Draft
from codemods.optimizers.methods import CREATE
from codemods.rewriting.edits import Argument, Replace, RewriteCall
from codemods.sources.modules import Span, Unit


class Creation:
    """Turns calls of the class into calls of its `create`."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def make(self, unit: Unit, call: ast.Call) -> None:
        """`State(step=0, optimizer=definition.create(params), …)` becomes `State.create(…)`."""
        where = unit.place(call.lineno)
        given = arguments_of(
            taking(**dict.fromkeys(self.draft.facts.flow.fields_in_order(self.draft.cls))), call
        )
        if given is None:
            raise Unproven(f"its fields are unpacked at {where}")
        if self.draft.name not in given:
            raise Unproven(f"it has no optimizer at {where}")
        makers = self._makers(given[self.draft.name], where)
        targets = [
            target for maker in makers for target in (arguments_of(CREATE, maker) or {}).values()
        ]
        if len({ast.unparse(target) for target in targets}) != 1:
            raise Unproven(f"its optimizers are made for different parameters before {where}")
        holes: list[tuple[str, Span]] = []
        transformation = self._transformation(given[self.draft.name], makers, unit, holes)
        value = targets[0]
        apply_fn = apply_function(makers[0], value, unit, self.draft.facts)
        holes += [("callee", unit.span(call.func)), ("params", unit.span(value))]
        others = {name: node for name, node in given.items() if name not in (self.draft.name, STEP)}
        kept = [Argument(name, index=values_of(call).index(node)) for name, node in others.items()]
        made = {"apply_fn": apply_fn, "params": "{params}", "tx": transformation}
        arguments = (*(Argument(name, template=text) for name, text in made.items()), *kept)
        edit = RewriteCall(unit.span(call), "{callee}.create", arguments, tuple(holes))
        self.draft.result.edits.put(call, unit, edit)
        self.draft.result.outcomes.update(
            dict.fromkeys((self.draft.created.pop(maker).node for maker in makers), edit)
        )

    def _makers(self, value: ast.expr, where: str) -> list[ast.Call]:
        """The calls of `create` that may have given a value."""
        found: list[ast.expr | None] = [value]
        if isinstance(value, ast.Name):
            found = self.draft.origins.values_of(value)
            if self.draft.origins.loads_of(value, value) != [value]:
                raise Unproven(f"its optimizer is used by itself before {where}")
        calls = [one for one in found if isinstance(one, ast.Call) and one in self.draft.created]
        if not calls or len(calls) != len(found):
            raise Unproven(f"its optimizer is not made plainly before {where}")
        return calls

    def _transformation(
        self, value: ast.expr, makers: list[ast.Call], unit: Unit, holes: list[tuple[str, Span]]
    ) -> str:
        """What the state is given as its transformation, and the edits of the statements that made the optimizer."""
        definitions = [
            maker.func.value for maker in makers if isinstance(maker.func, ast.Attribute)
        ]
        if not isinstance(value, ast.Name):
            holes.append(("tx", unit.span(definitions[0])))
            return "{tx}"
        statements = [statement_of(unit, maker) for maker in makers]
        only = definitions[0]
        variable = self.draft.origins.variable(value)
        assert variable is not None
        stores = [
            store for store in self.draft.origins.stores(variable) if isinstance(store, ast.Name)
        ]
        deleted = [store for store in stores if isinstance(store.ctx, ast.Del)]
        alone = len(makers) == 1 and not deleted and len(block_of(unit, statements[0])) > 1
        if alone and isinstance(only, ast.Name):
            self.draft.result.edits.take_away(statements[0], unit)
            return only.id
        name = value.id if "tx" in names_within(variable.scope.node) else "tx"
        for maker, definition in zip(makers, definitions, strict=True):
            self.draft.result.edits[maker] = (
                unit,
                Replace(unit.span(maker), "{tx}", (("tx", unit.span(definition)),)),
            )
        for store in stores if name != value.id else ():
            self.draft.result.edits[store] = (unit, Replace(unit.span(store), name))
        return name
