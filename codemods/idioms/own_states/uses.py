"""The uses of an optimizer within a dataclass, which the dataclass is to answer to itself."""

from __future__ import annotations

import ast

from codemods.analysis.evidence import CONFIG_LIKE, last_word
from codemods.analysis.origins import block_of
from codemods.analysis.uses import Use, owner_of_state
from codemods.flow.binding import arguments_of
from codemods.flow.objects import Instance, Module, Thing
from codemods.idioms import Unproven
from codemods.idioms.own_states.draft import Draft
from codemods.optimizers.methods import CREATE
from codemods.rewriting.edits import Replace

INNER = (
    "optimizer.target",
    "optimizer.apply_gradient",
    "state.step",
    "optimizer.state",
    "optimizer.replace",
)
"""The uses of an optimizer that a state of its own answers to itself."""


class InnerUses:
    """Decides on each use, by where it gets the optimizer from."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def classify(self) -> None:
        """Decide on each use of the optimizer, by where it gets it from."""
        group = {*self.draft.things}
        self._refuse_unknown(group)
        known: set[ast.AST] = set()
        for use in self.draft.facts.uses:
            if use.kind == "definition.create":
                self._note_created(use, group)
            if not group & {*use.things} and not self._is_state_of(use, group):
                continue
            if use.kind not in (*INNER, "annotation"):
                raise Unproven(f"its optimizer is used by itself at {use.where}")
            if use.kind != "annotation":
                known.add(self._decide(use))
        for unit, node in self.draft.facts.flow.reading.attributes:
            if (
                node.attr == self.draft.name
                and isinstance(node.ctx, ast.Load)
                and self.draft.is_one(node.value)
            ):
                parent = unit.parents.get(node)
                alias = isinstance(parent, ast.Assign) and parent.value is node
                if node not in known and not alias:
                    raise Unproven(f"its optimizer is handed on at {unit.place(node.lineno)}")

    def _refuse_unknown(self, group: set[Thing]) -> None:
        """Whoever says the field's name has to be known to speak of such a state, or of something else."""
        together = {
            self.draft.facts.groups[thing] for thing in group if thing in self.draft.facts.groups
        }
        for thing, whole in self.draft.facts.groups.items():
            if thing.kind == "optimizer" and whole in together and thing not in group:
                where = thing.unit.place(getattr(thing.node, "lineno", 1))
                raise Unproven(f"what its optimizer meets at {where} is no part of it")
        for unit, node in self.draft.facts.flow.reading.attributes:
            if (
                node.attr == self.draft.name
                and isinstance(node.ctx, ast.Load)
                and not self._is_told(node.value)
            ):
                raise Unproven(
                    f"nothing tells of which class the object is at {unit.place(node.lineno)}"
                )
        for unit, call in self.draft.facts.flow.reading.calls:
            match call.func:
                case ast.Attribute(attr="replace", value=value) if not self._is_told(value):
                    if any(word.arg == self.draft.name for word in call.keywords):
                        raise Unproven(
                            f"nothing tells of which class the object is at {unit.place(call.lineno)}"
                        )

    def _is_told(self, node: ast.expr) -> bool:
        """Whether it is known what an object is; one that is called like a configuration holds words and numbers."""
        known = any(
            isinstance(item, Instance | Module | Thing) for item in self.draft.facts.objects(node)
        )
        return (
            known
            or bool(self.draft.facts.full_name(node))
            or CONFIG_LIKE.search(last_word(node)) is not None
        )

    def _is_state_of(self, use: Use, group: set[Thing]) -> bool:
        """Whether a use of a state is one of an optimizer's in question."""
        owner = owner_of_state(use.owner) if use.kind == "state.step" else None
        return owner is not None and not group.isdisjoint(
            self.draft.facts.things(owner, "optimizer")
        )

    def _decide(self, use: Use) -> ast.AST:
        """Note what becomes of a use; the expression for the optimizer that it is about."""
        receiver = (owner_of_state(use.owner) if use.kind == "state.step" else None) or use.owner
        holder = self.draft.holder(receiver)
        is_plain = (
            use.kind in ("optimizer.target", "state.step", "optimizer.state")
            or use.call is not None
        )
        stays = self.draft.facts.dataflow.stays
        if (
            holder is None
            or not is_plain
            or not (holder is receiver or stays([holder], holder, receiver))
        ):
            raise Unproven(f"its optimizer is used by itself at {use.where}")
        field = {"optimizer.target": "params", "state.step": "step"}.get(use.kind)
        base = (("base", use.unit.span(holder.value)),)
        self.draft.result.outcomes[use.node] = (
            Replace(use.span, f"{{base}}.{field}", base) if field else None
        )
        if use.kind != "optimizer.state" and field is None and use.call is not None:
            self.draft.stepped[use.call] = use
        if isinstance(receiver, ast.Name):
            self._drop_alias(receiver)
        return holder

    def _drop_alias(self, name: ast.Name) -> None:
        """Take `optimizer = state.optimizer` away."""
        variable = self.draft.origins.variable(name)
        setting = self.draft.origins.setting(variable)
        if variable is None or setting is None or len(block_of(variable.unit, setting)) < 2:
            raise Unproven("a variable for its optimizer cannot be taken away")
        for load in self.draft.origins.loads(variable):
            if not isinstance(variable.unit.parents.get(load), ast.Attribute):
                raise Unproven(f"its optimizer is handed on at {variable.unit.place(load.lineno)}")
        self.draft.result.edits.take_away(setting, variable.unit)

    def _note_created(self, use: Use, group: set[Thing]) -> None:
        call = use.call
        whole = use.parent
        if not isinstance(whole, ast.expr) or not group & {
            *self.draft.facts.things(whole, "optimizer")
        }:
            return
        if call is None or (arguments_of(CREATE, call) or {}).keys() != {"target"}:
            raise Unproven(f"its optimizer is not made plainly at {use.where}")
        parameters = self.draft.parameters
        if any(parameters.need_any(thing) for thing in self.draft.facts.things(call, "optimizer")):
            raise Unproven("its parameters are an array or a dataclass")
        self.draft.created[call] = use
