"""Calls that restore an optimizer, and would not load what was stored before the migration."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from codemods.analysis.evidence import last_word
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.dataflow.bindings import bound_anywhere
from codemods.flow.binding import arguments_of, values_of
from codemods.flow.objects import Container, Instance, LegacyObject, Place
from codemods.functional import Functional
from codemods.messages import message
from codemods.model import Prose
from codemods.optimizers.methods import CREATE
from codemods.optimizers.older_checkpoints import (
    IMPORTED,
    LOADED,
    RESTORE_OLD_OR_NEW,
    restoring,
)
from codemods.rewriting.edits import Argument, RewriteCall
from codemods.sources.modules import Unit
from codemods.vocabulary import RESTORE

BY_HAND = (
    "`optim2optax checkpoint convert` writes it anew, and "
    "`optim2optax.checkpoints.loading.load_legacy_checkpoint(path, state)` loads it"
)
"""What can be done where the program does not load it."""

OPTION = "--old-checkpoints"


class OlderCheckpoints:
    """The calls that can load checkpoints from before the migration; for the others, the reason."""

    def __init__(self, stepping: Stepping, functional: Functional) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.functional = functional

    @cached_property
    def restored(self) -> list[Use]:
        """The calls that restore optimizers, or dataclasses that have one."""
        known = [use for use in self.facts.uses if use.kind == "restored"]
        return [*known, *self._of_dataclasses]

    @cached_property
    def _of_dataclasses(self) -> list[Use]:
        known = {use.node for use in self.facts.uses if use.kind == "restored"}
        found = (
            (unit, call, tuple(self._optimizers_in(call)))
            for unit, call in self.facts.flow.reading.calls
            if call not in known
            and RESTORE.intersection(self.facts.externals(call.func))
        )
        return [
            Use("restored", ast.unparse(call.func), unit, call, optimizers)
            for unit, call, optimizers in found
            if optimizers
        ]

    def uses(self) -> list[Use]:
        """The calls that load old checkpoints too, and restore no optimizer but in a dataclass."""
        return self._of_dataclasses if self.stepping.options.old_checkpoints else []

    def edit(self, use: Use) -> RewriteCall | None:
        """The call with what loads old checkpoints around it; None if it stays as it is."""
        call = use.node
        if not (self.stepping.options.old_checkpoints and isinstance(call, ast.Call)):
            return None
        if self._reason(use):
            return None
        kept = (Argument(None, index=index) for index in range(len(values_of(call))))
        return RewriteCall(
            use.unit.span(call),
            f"{{support:{RESTORE_OLD_OR_NEW.name}}}",
            (Argument(None, template="{function}"), *kept),
            (("function", use.unit.span(call.func)),),
            restoring(self._names),
        )

    def note(self, use: Use) -> Prose:
        """What loads an old checkpoint here, as a sentence; empty if the call does so itself."""
        reason = self._reason(use)
        if self.stepping.options.old_checkpoints and not reason:
            return ""
        is_left = self.stepping.options.old_checkpoints
        why = f" (`{OPTION}` leaves this call: {reason})" if is_left else ""
        by_itself = "" if reason else f"; with `{OPTION}`, the program loads it itself"
        return message(
            "It is restored at {}, where a checkpoint from before the migration does not load{}: "
            "{}{}.",
            use.location,
            why,
            BY_HAND,
            by_itself,
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """The optimizers whose old checkpoints are loaded: all calls have the same helpers."""
        uses = [use for use in self.restored if not self._reason(use)]
        objects = (obj for use in uses for obj in self._optimizers_in(use.node))
        made = (definition for obj in objects for definition in self._made_by(obj))
        return frozenset(one.made_by for one in made if isinstance(one.made_by, str))

    def _reason(self, use: Use) -> str:
        """Why a call can load no old checkpoints; empty if it can."""
        return next(self._reasons(use), "")

    def _reasons(self, use: Use) -> Iterator[str]:
        call = use.node
        if not (
            isinstance(call, ast.Call) and {*self.facts.externals(call.func)} == RESTORE
        ):
            yield "it is no plain `restore_checkpoint`"
            return
        if use.unit in self.stepping.plain or self._has_other_imports(use.unit):
            yield "a name that this needs is taken"
        optimizers = self._optimizers_in(call)
        for obj in optimizers:
            yield from self._reasons_of(obj)
        whole = replace(use, objects=tuple(optimizers))
        if any(
            may_have_copies(value, whole, self.stepping) for value in values_of(call)
        ):
            yield "the optimizer may have a copy for each device"

    def _reasons_of(self, optimizer: LegacyObject) -> Iterator[str]:
        """Why an optimizer cannot be made of an old one, if it cannot."""
        options = self.stepping.options
        if options.style == "functional" and not (
            options.partial or self.functional.reason([optimizer])
        ):
            yield "the optimizer is in parts"
        if self.stepping.keeps_interface(optimizer):
            yield "its definition keeps the interface that it had"
        made_by = self._made_by(optimizer)
        if not made_by:
            yield "the place that makes the optimizer is not in view"
        others = {definition.made_by for definition in made_by} - {*LOADED}
        if others:
            named = sorted(name for name in others if isinstance(name, str))
            yield f"it may restore {named[0] if named else 'an optimizer of another class'}"
        if isinstance(optimizer.node, ast.Call) and "focus" in (
            arguments_of(CREATE, optimizer.node) or {}
        ):
            yield "the optimizer has a focus"

    def _has_other_imports(self, unit: Unit) -> bool:
        """Whether a file calls something else as what the helpers import."""
        imported = Counter(
            item.name
            for item in self.facts.imported(unit)
            if IMPORTED.get(item.name) == item.target
        )
        return any(bound_anywhere(unit)[name] > imported[name] for name in IMPORTED)

    def _made_by(self, optimizer: LegacyObject) -> list[LegacyObject]:
        return [*self.facts.legacy.definitions(optimizer)]

    def _optimizers_in(self, call: ast.AST) -> list[LegacyObject]:
        """The optimizers that a call restores, by themselves, in containers or in dataclasses."""
        assert isinstance(call, ast.Call)
        flow = self.facts.flow
        pending: list[Place] = [flow.places[argument] for argument in values_of(call)]
        seen: dict[Place, None] = dict.fromkeys(pending)
        found: dict[LegacyObject, None] = {}
        while pending:
            for item in flow.solver.at(pending.pop()):
                inner: list[Place] = []
                match item:
                    case LegacyObject(kind="optimizer"):
                        found[item] = None
                    case Container():
                        inner = [("elements", item)]
                    case Instance(cls=cls):
                        inner = [
                            flow.field(cls, name) for name in flow.fields_in_order(cls)
                        ]
                pending += [place for place in inner if place not in seen]
                seen |= dict.fromkeys(inner)
        return [*found]


def may_have_copies(node: ast.expr, use: Use, stepping: Stepping) -> bool:
    """Whether an optimizer that comes here may have been replicated by its own method."""
    if not stepping.axes(use.objects):
        return False
    # save_checkpoint(directory, jax_utils.unreplicate(optimizer), step)
    if isinstance(node, ast.Call) and last_word(node.func) == "unreplicate":
        return False
    # where it is replicated in the same function, what comes before that has no copies
    scope = stepping.facts.scope(node)
    replicated = (
        found for found in stepping.facts.uses if found.kind == "optimizer.replicate"
    )
    ours = (
        found for found in replicated if not {*found.objects}.isdisjoint(use.objects)
    )
    here = [found for found in ours if stepping.facts.scope(found.owner) is scope]
    return not here or any(
        stepping.facts.dataflow.may_follow(node, found.node) for found in here
    )
