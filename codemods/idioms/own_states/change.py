"""Where a dataclass with an optimizer changes: `state.replace(optimizer=stepped, …)`."""

from __future__ import annotations

import ast

from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.own_states.draft import STEP, Draft
from codemods.optimizers.base import RATE
from codemods.rewriting.edits import Argument, Edit, RewriteCall
from codemods.sources.modules import Unit


class Change:
    """Turns calls of `replace` that put a new optimizer in place into steps of the state itself."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def replaced(self, call: ast.Call) -> ast.expr | None:
        match call:
            case ast.Call(func=ast.Attribute(attr="replace", value=base)) if self.draft.is_one(
                base
            ):
                return base
        return None

    def replace(self, unit: Unit, call: ast.Call, base: ast.expr) -> None:
        """`state.replace(optimizer=stepped, …)` becomes `state.apply_gradients(grads=…, …)`."""
        where = unit.place(call.lineno)
        given = {str(word.arg): index for index, word in enumerate(call.keywords, len(call.args))}
        if call.args or any(word.arg is None for word in call.keywords):
            raise Unproven(f"its fields are unpacked at {where}")
        if self.draft.name not in given:
            return  # nor is a step given that counts: `Counters` asks for both
        word = call.keywords[given[self.draft.name]]
        value = self.draft.origins.expanded(word.value)
        use = self.draft.stepped.pop(value, None)
        if use is None or not isinstance(value, ast.Call):
            raise Unproven(f"its optimizer comes from elsewhere at {where}")
        if isinstance(word.value, ast.Name):
            self._drop_result(word.value, unit, where)
        origins = self.draft.origins
        holder = (
            self.draft.holder(value.func.value) if isinstance(value.func, ast.Attribute) else None
        )
        path, other = origins.path(base), origins.path(holder.value) if holder is not None else None
        held = [*origins.chain(holder.value), *origins.chain(base)] if holder is not None else []
        stays = self.draft.facts.dataflow.stays
        if path is None or path != other or not all(stays([one], one, call) for one in held):
            raise Unproven(f"its optimizer comes from another state at {where}")
        dropped = self.draft.dropped
        kept = tuple(
            Argument(name, index=index) for name, index in given.items() if name not in dropped
        )
        if STEP in dropped and STEP in given:
            self.draft.leftovers.clear(call.keywords[given[STEP]].value)
        edit = self._stepping(unit, call, base, value, use, kept)
        self.draft.result.edits.put(call, unit, edit)
        self.draft.result.outcomes[use.node] = edit

    def _drop_result(self, name: ast.Name, unit: Unit, where: str) -> None:
        """Take `new_optimizer = …` away, which only the new state was to have."""
        variable = self.draft.origins.variable(name)
        setting = self.draft.origins.setting(variable)
        if variable is None or setting is None or self.draft.origins.loads(variable) != [name]:
            raise Unproven(f"its new optimizer is used by itself before {where}")
        self.draft.result.edits.take_away(setting, unit)

    def _stepping(
        self,
        unit: Unit,
        call: ast.Call,
        base: ast.expr,
        value: ast.Call,
        use: Use,
        kept: tuple[Argument, ...],
    ) -> Edit:
        where = unit.place(value.lineno)
        holes = [("base", unit.span(base))]
        if use.kind == "optimizer.replace":
            if [word.arg for word in value.keywords] != ["target"] or value.args:
                raise Unproven(f"its optimizer's state is exchanged at {where}")
            if not self._may_wait([value.keywords[0].value], value, call):
                raise Unproven(f"the parameters at {where} would be others where the state changes")
            holes.append(("params", unit.span(value.keywords[0].value)))
            params = Argument("params", template="{params}")
            return RewriteCall(unit.span(call), "{base}.replace", (params, *kept), tuple(holes))
        gradients = self.draft.stepping.gradients(use)
        if (
            gradients is None
            or self.draft.stepping.axes(use.things)
            or not self._may_wait([gradients], value, call)
        ):
            raise Unproven(f"the gradients at {where} would be others where the state changes")
        if self.draft.overrides.keeps_rate(use):
            raise Unproven(f"the constructor's learning rate is set again at {where}")
        holes.append(("grads", unit.span(gradients)))
        function, prelude = "{base}.apply_gradients", ""
        override = self.draft.overrides.of(use)
        if override is not None:
            if override.arg != RATE or not self._may_wait([override.value, gradients], value, call):
                raise Unproven(
                    f"the learning rate at {where} would be another where the state changes"
                )
            if self.draft.overrides.param_names.may_be_rate:
                raise Unproven(
                    f"the learning rate that is set at {where} may be called as a parameter is"
                )
            holes.append(("rate", unit.span(override.value)))
            state = "{optax}.tree_utils.tree_set({base}.opt_state, learning_rate={rate})"
            scope = self.draft.facts.scope(call)
            is_free = scope.binding("opt_state") is None and isinstance(scope.node, ast.FunctionDef)
            if isinstance(unit.parents.get(call), ast.Assign) and is_free:
                prelude, state = f"opt_state = {state}", "opt_state"
            function = f"{{base}}.replace(opt_state={state}).apply_gradients"
        grads = Argument("grads", template="{grads}")
        return RewriteCall(unit.span(call), function, (grads, *kept), tuple(holes), prelude=prelude)

    def _may_wait(self, nodes: list[ast.expr], first: ast.Call, second: ast.Call) -> bool:
        """Whether expressions may be evaluated, in this order, ahead of all else that a later call, or one around it, is given.

        Raises:
          Unproven: if what is given beside them is in the way.
        """
        dataflow = self.draft.facts.dataflow
        others = [word.value for word in second.keywords if word.value is not first]
        if first not in set(ast.walk(second)):
            return dataflow.stays(nodes, first, second)
        moved, *behind = nodes
        if not all(dataflow.may_swap(moved, other) for other in (*others, *behind)):
            where = self.draft.facts.scope(first).unit.place(first.lineno)
            raise Unproven(f"the order of what {where} computes matters")
        return True
