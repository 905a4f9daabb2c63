"""Calls that restore an optimizer, and would not load what was stored before the migration."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from codemods.analysis.naming import last_word
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.functional import Functional
from codemods.inference.binding import arguments_of, values_of
from codemods.inference.objects import Container, Instance, LegacyObject, Place
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
        found: list[Use] = []
        for unit, call in self.facts.flow.reading.calls:
            if call in known or RESTORE.isdisjoint(self.facts.externals(call.func)):
                continue
            # checkpoints.restore_checkpoint(folder, State(optimizer, rng))
            optimizers = tuple(self._optimizers_in(call))
            if optimizers:
                name = ast.unparse(call.func)
                found.append(Use("restored", name, unit, call, optimizers))
        return found

    def uses(self) -> list[Use]:
        """The calls that load old checkpoints too, and restore no optimizer but in a dataclass."""
        return self._of_dataclasses if self.stepping.options.old_checkpoints else []

    def edit(self, use: Use) -> RewriteCall | None:
        """The call with what loads old checkpoints around it; None if it stays as it is."""
        call = use.node
        if not self.stepping.options.old_checkpoints:
            return None
        if not isinstance(call, ast.Call) or self._reason(use):
            return None
        # restore_old_or_new(restore_checkpoint, folder, optimizer)
        number = len(values_of(call))
        kept = (Argument(None, index=index) for index in range(number))
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
        is_asked = self.stepping.options.old_checkpoints
        if is_asked and not reason:
            return ""
        why = f" (`{OPTION}` leaves this call: {reason})" if is_asked else ""
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
        call, not_plain = use.node, "it is no plain `restore_checkpoint`"
        if not isinstance(call, ast.Call):
            yield not_plain
            return
        # restore = flax.serialization.from_bytes, in one branch
        if {*self.facts.externals(call.func)} != RESTORE:
            yield not_plain
            return
        if use.unit in self.stepping.plain or self._has_other_imports(use.unit):
            yield "a name that this needs is taken"
        optimizers = self._optimizers_in(call)
        for obj in optimizers:
            yield from self._reasons_of(obj)
        whole = replace(use, objects=tuple(optimizers))
        values = values_of(call)
        if any(may_have_copies(value, whole, self.stepping) for value in values):
            yield "the optimizer may have a copy for each device"

    def _reasons_of(self, optimizer: LegacyObject) -> Iterator[str]:
        """Why an optimizer cannot be made of an old one, if it cannot."""
        options = self.stepping.options
        is_functional = options.style == "functional" and not options.partial
        if is_functional and not self.functional.reason([optimizer]):
            yield "the optimizer is in parts"
        if self.stepping.keeps_interface(optimizer):
            yield "its definition keeps the interface that it had"
        made_by = self._made_by(optimizer)
        if not made_by:
            yield "the place that makes the optimizer is not in view"
        others = {definition.made_by for definition in made_by} - {*LOADED}
        if others:
            named = sorted(name for name in others if isinstance(name, str))
            what = named[0] if named else "an optimizer of another class"
            yield f"it may restore {what}"
        # definition.create(params, focus=traversal)
        if isinstance(optimizer.node, ast.Call):
            given = arguments_of(CREATE, optimizer.node) or {}
            if "focus" in given:
                yield "the optimizer has a focus"

    def _has_other_imports(self, unit: Unit) -> bool:
        """Whether a file calls something else as what the helpers import."""
        imported = Counter(
            item.name
            for item in self.facts.imported(unit)
            if IMPORTED.get(item.name) == item.target
        )
        bound = unit.names_bound
        return any(bound[name] > imported[name] for name in IMPORTED)

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
    here: list[Use] = []
    for found in stepping.facts.uses:
        # optimizer = optimizer.replicate()
        if found.kind != "optimizer.replicate":
            continue
        is_ours = not {*found.objects}.isdisjoint(use.objects)
        if is_ours and stepping.facts.scope(found.owner) is scope:
            here.append(found)
    if not here:
        return True
    may_follow = stepping.facts.dataflow.may_follow
    return any(may_follow(node, found.node) for found in here)
