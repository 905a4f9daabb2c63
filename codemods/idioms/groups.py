"""The optimizers that step together, and what they are made by."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Idiom, Results
from codemods.idioms.order import Edits
from codemods.inference.objects import LegacyObject
from codemods.model import Message
from codemods.optimizers import optimizers
from codemods.vocabulary import words

RESTORING = words("restore_checkpoint from_bytes msgpack_restore from_state_dict orbax")
"""Words in a file that reads checkpoints."""


class Change(Protocol):
    """What an idiom does for a group: edits elsewhere, and nodes that are removed."""

    edits: Edits
    removed: set[ast.AST]


T = TypeVar("T", bound=Change)


class Outcomes(Idiom, Generic[T]):
    """An idiom that has an outcome for each group that it was tried for, or why it does nothing."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        self.found: dict[LegacyObject, T | Message] = {}
        self.edits = Edits()
        self._concerned: dict[ast.AST, list[LegacyObject]] = defaultdict(list)

    def attempt(
        self, members: list[LegacyObject], outcome: Callable[[], T | None]
    ) -> None:
        """Note what comes of a group. Changes of several groups at one place are one change."""
        # on a copy, as a group that does not go with the others leaves nothing behind
        edits = Edits(self.edits)
        try:
            found = outcome()
            for node, (unit, edit) in found.edits.items() if found else ():
                edits.put(node, unit, edit)
        except Unproven as why:
            self.found.update(dict.fromkeys(members, why.message))
            return
        if found is None:
            return
        self.edits = edits
        optimizers = [obj for obj in members if obj.kind == "optimizer"]
        for node in found.edits:
            self._concerned[node] += optimizers[:1]
        self.found.update(dict.fromkeys(members, found))

    def edits_of(self, objects: Iterable[LegacyObject]) -> Edits:
        """What changes for some objects, with what changes at the same places for others."""
        found = self.of(objects)
        if found is None:
            return Edits()
        return Edits({node: self.edits[node] for node in found.edits})

    def of(self, objects: Iterable[LegacyObject]) -> T | None:
        """What the idiom does for some objects that meet at a use; None if it does nothing."""
        found = self._of(objects)
        return None if isinstance(found, Message) else found

    def reason(self, objects: Iterable[LegacyObject]) -> Message | None:
        """Why the idiom does nothing for them; None if it does something, or was not tried."""
        found = self._of(objects)
        return found if isinstance(found, Message) else None

    def removed(self, objects: Iterable[LegacyObject]) -> set[ast.AST]:
        """The nodes that are removed for them."""
        found = self.of(objects)
        return set() if found is None else found.removed

    def _of(self, objects: Iterable[LegacyObject]) -> T | Message | None:
        tried = (obj for obj in objects if obj in self.found)
        return next((self.found[obj] for obj in tried), None)

    @property
    def changes(self) -> list[tuple[Edits, tuple[LegacyObject, ...]]]:
        return [
            (Edits({node: change}), tuple(self._concerned[node]))
            for node, change in self.edits.items()
        ]


def constructors(
    members: list[LegacyObject], stepping: Stepping
) -> dict[ast.Call, LegacyObject]:
    """The calls that make the definitions of a group."""
    made = {obj.node: obj for obj in members if obj.kind == "definition"}
    stepped = (obj for obj in members if obj.kind == "optimizer")
    definitions = stepping.facts.legacy.definitions
    if not made or not all(map(definitions, stepped)):
        raise Unproven("the place that makes the optimizer is not in view")
    known = optimizers()
    called = {node: obj for node, obj in made.items() if isinstance(node, ast.Call)}
    # optim.Adam(1e-3), and not MyAdam(1e-3)
    calls = {node: obj for node, obj in called.items() if obj.made_by in known}
    are_plain = calls.keys() <= stepping.constructors
    if len(calls) < len(made) or not are_plain:
        raise Unproven("the optimizer is not made by a plain constructor")
    return calls


def refuse_templates(members: list[LegacyObject], stepping: Stepping) -> None:
    """Refuse a group if its checkpoints may come from another optimizer, or be restored into one.

    The state of that would be another than that of the group.
    """
    names = {obj.made_by for obj in members if obj.kind == "definition"}
    stepped = {obj for use in stepping.all_steps for obj in use.objects}
    for obj in stepping.facts.groups:
        if obj.kind != "optimizer" or obj.evidence != "proven":
            continue
        if obj in stepped or obj in members:
            continue
        definitions = stepping.facts.legacy.definitions(obj)
        made = {definition.made_by for definition in definitions}
        if made.isdisjoint(names):
            continue
        # optimizer = restore_checkpoint(folder, optim.Adam().create(params)), as for evaluation
        if any(word in obj.unit.code for word in RESTORING):
            line = getattr(obj.node, "lineno", 1)
            raise Unproven(
                "{} restores checkpoints into such an optimizer that takes no step",
                obj.unit.location(line),
            )
    for pair in stepping.exchanging:
        others = [obj for obj in pair if obj not in members]
        if len(others) == 1:
            line = getattr(others[0].node, "lineno", 1)
            raise Unproven(
                "checkpoints of the optimizer at {} may be the same",
                others[0].unit.location(line),
            )


def refuse_kept(places: Iterable[Use | LegacyObject], stepping: Stepping) -> None:
    """Refuse an idiom at uses or objects of which one keeps the interface of its definition."""
    if any(map(stepping.keeps_interface, places)):
        raise Unproven("its definition keeps its interface")
