"""The other style of Flax's guide: an optimizer as params and optimizer state in two variables.

A train state takes the place of the optimizer object where it stands. In this style the object
falls into parts, in variables, parameters, arguments, tuples that are returned and carries of
loops; the transformation goes to the functions that take a step. Whatever has no counterpart in
parts, such as a field of a dataclass, leaves the whole group of optimizers a train state.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codemods.analysis.facts import unify
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.functional.draft import Draft
from codemods.functional.emitting import write
from codemods.functional.group import Beside, Group, Index
from codemods.functional.interfaces import Interfaces
from codemods.functional.part_types import tuple_of_parts
from codemods.functional.parts import Names
from codemods.idioms import Unproven
from codemods.idioms.base import Idiom, Results
from codemods.idioms.groups import refuse_plain
from codemods.idioms.order import Edits
from codemods.idioms.own_states import OwnStates
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.rewriting.edits import Edit, Keep, Replace

KNOWN = (
    *(
        "definition",
        "custom",
        "class",
        "value",
        "dynamic",
        "base",
        "import",
        "module",
        "definition.create",
    ),
    *(
        "optimizer.target",
        "optimizer.apply_gradient",
        "optimizer.replace",
        "optimizer.state",
        "state.step",
    ),
    *("annotation", "stored", "restored", "filter"),
)
"""The uses that have a counterpart in parts, or are not uses of an optimizer."""

AT_RUN_TIME = tuple(
    f"builtins.{name}" for name in ("dir", "eval", "exec", "globals", "locals", "vars")
)
"""What finds variables by names that are known only at run time."""


@dataclass
class FunctionalOutcomes:
    """What came of all groups.

    `uses` has what becomes of uses, None if that is done elsewhere, `edits` all edits, `concerned`
    the optimizers that each edit is for, and `left` why some optimizers stay train states.
    """

    uses: dict[ast.AST, Edit | None] = field(default_factory=dict)
    left: dict[LegacyObject, Message] = field(default_factory=dict)
    edits: Edits = field(default_factory=Edits)
    concerned: dict[ast.AST, list[LegacyObject]] = field(
        default_factory=lambda: defaultdict(list)
    )
    rewritten: set[ast.AST] = field(default_factory=set)
    beside: set[tuple[ast.AST, Edit]] = field(default_factory=set)

    def take(self, draft: Draft) -> None:
        """Add what a group changes to what others do."""
        for node, change in draft.edits.items():
            if draft.before.get(node) != change:
                self.concerned[node] += draft.group.optimizers
        self.edits = draft.edits
        for beside in draft.group.beside.edits(draft.group.members):
            self.beside.update((node, edit) for node, (_, edit) in beside.items())
        self.rewritten |= draft.rewritten.keys()
        self.uses |= draft.outcomes


class Functional(Idiom):
    """With `--style functional`, an optimizer becomes what Flax's guide calls the functional style:
    its parameters and its optimizer state are variables of their own, in parameters, arguments,
    what functions return, and the carries of loops. The number of steps is a third variable where
    something asks for it. Functions that take a step get the transformation as a parameter, which
    is static under `jax.jit`, or find it around them.

    This holds where every place that an optimizer goes to is in view and has a counterpart: an
    optimizer that is kept in a field of a class, or handed to a function that is not in view, stays
    a train state, and a note says why. So does one in a file that finds variables by names that
    only the run tells, as `locals()` and `eval` do.
    """

    code = "FO215"
    summary = "an optimizer is parameters and optimizer state, in the functional style"
    kind = "functional"
    before = """\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    grads = jax.grad(loss_fn)(optimizer.target, batch)
    return optimizer.apply_gradient(grads)
"""
    after = """\
tx = optax.adam(1e-3)
opt_state = tx.init(params)

def train_step(params, opt_state, batch, tx):
    grads = jax.grad(loss_fn)(params, batch)
    updates, opt_state = tx.update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    return params, opt_state
"""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        self.groups = FunctionalOutcomes()
        if stepping.options.style != "functional" or stepping.options.partial:
            return
        attempts = _Attempts(Beside(stepping, results))
        self.groups = attempts.outcomes({})
        refused = self._refused_together(attempts.stored)
        if refused:
            self.groups = attempts.outcomes(refused)

    def _refused_together(
        self, stored: Mapping[LegacyObject, LegacyObject]
    ) -> dict[LegacyObject, Message]:
        """The optimizers that stay train states because of checkpoints, and why.

        An optimizer restores what another one of its family has stored: they change together.
        """
        left: dict[LegacyObject, Message] = {}
        for obj, family in stored.items():
            if self.reason([obj]):
                where = obj.unit.location(getattr(obj.node, "lineno", 1))
                why = "so does the one made at {}, which is stored in checkpoints, too"
                left.setdefault(family, message(why, where))
        return {
            obj: self.reason([obj]) or left[family]
            for obj, family in stored.items()
            if family in left
        }

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        if use.node not in self.groups.uses:
            return general
        return self.groups.uses[use.node] or Keep()

    def note(self, use: Use) -> Prose:
        why = self.reason(use.objects) if use.kind == "definition.create" else None
        if why is None:
            return ""
        return message("This optimizer stays in one piece, as a train state: {}.", why)

    def reason(self, objects: Iterable[LegacyObject]) -> Message | None:
        """Why some optimizers stay train states; None if they do not."""
        return next(filter(None, map(self.groups.left.get, objects)), None)

    @property
    def changes(self) -> list[tuple[Edits, tuple[LegacyObject, ...]]]:
        return [
            (Edits({node: self.groups.edits[node]}), tuple(objects))
            for node, objects in self.groups.concerned.items()
        ]


class _Attempts:
    """The proofs for all groups of a project."""

    def __init__(self, beside: Beside) -> None:
        self.beside = beside
        self.own_states = beside.results[OwnStates]
        self.facts = beside.stepping.facts
        self.index = Index(self.facts)
        self.groups = [
            members
            for members in self.facts.members.values()
            if any(obj.kind == "optimizer" for obj in members)
        ]
        self.stored = self._families()
        self.counted = self._counted()

    def _counted(self) -> set[LegacyObject]:
        """The families of which the number of steps is read."""
        removed: set[ast.AST] = set()
        for members in self.groups:
            removed |= self.beside.removed(members)
        found: set[LegacyObject] = set()
        for use in self.facts.uses:
            if use.kind == "state.step" and use.node not in removed:
                found.update(
                    self.stored[obj] for obj in use.objects if obj in self.stored
                )
        return found

    def _families(self) -> dict[LegacyObject, LegacyObject]:
        """A representative for each optimizer that is stored or restored.

        Optimizers of the same kind have the same: one may restore what another has stored.
        """
        stored: set[LegacyObject] = set()
        for use in self.facts.uses:
            if use.kind in ("stored", "restored"):
                stored.update(use.objects)
        groups = [members for members in self.groups if not stored.isdisjoint(members)]
        alike: dict[object, list[LegacyObject]] = defaultdict(list)
        for members in groups:
            for obj in members:
                if obj.kind == "definition":
                    alike[obj.made_by].append(obj)
        return unify([*groups, *alike.values()])

    def outcomes(self, refused: Mapping[LegacyObject, Message]) -> FunctionalOutcomes:
        """What comes of each group; some are refused for a reason that is known."""
        names, outcomes = Names(self.beside.stepping.origins), FunctionalOutcomes()
        for members in self.groups:
            # a refused group gives its names back
            trial = names.copy()
            try:
                if members[0] in refused:
                    raise Unproven("{}", refused[members[0]])
                outcomes.take(self._written(members, trial, outcomes))
                names = trial
            except Unproven as why:
                outcomes.left.update(dict.fromkeys(members, why.message))
        return outcomes

    def _written(
        self,
        members: list[LegacyObject],
        names: Names,
        others: FunctionalOutcomes,
    ) -> Draft:
        """All changes for a group, beside those of others."""
        if any({*members} & {*state.objects} for state in self.own_states.states):
            raise Unproven("the dataclass around it is a train state")
        is_counted = self.stored.get(members[0]) in self.counted
        group = Group(self.beside, self.index, members, is_counted)
        _check_uses(group)
        edits = Edits(others.edits)
        for beside in self.beside.edits(members):
            for node, (unit, edit) in beside.items():
                # an edit of a helper that several groups share is already there
                if (node, edit) not in others.beside:
                    edits.put(node, unit, edit)
        draft = Draft(group, Interfaces(group), names, edits, others.rewritten)
        write(draft)
        for use in group.uses:
            if use.kind == "annotation":
                draft.outcomes[use.node] = _annotation(use, draft)
        new = {
            node: change
            for node, change in draft.edits.items()
            if node not in others.edits
        }
        refuse_plain(Edits(new), group.uses, self.beside.stepping)
        return draft


def _check_uses(group: Group) -> None:
    """Refuse uses of a group that have no counterpart in parts."""
    facts = group.facts
    for use in group.uses:
        if use.kind not in KNOWN:
            raise Unproven("`.{}` is used at {}", use.name, use.location)
        if use.kind == "definition.create" and use.call is None:
            raise Unproven("`create` is passed on at {}", use.location)
        if group.beside.stepping.axes(use.objects):
            raise Unproven("its own method replicated it")
    units = {use.unit for use in group.uses}
    for unit, call in facts.flow.reading.calls:
        if unit in units and facts.full_name(call.func) in AT_RUN_TIME:
            raise Unproven(
                "its variables may be found by name at {}", unit.location(call.lineno)
            )
    if not all(facts.legacy.definitions(obj) for obj in group.optimizers):
        raise Unproven("the place that makes it is not in view")


def _annotation(use: Use, draft: Draft) -> Edit | None:
    """What becomes of the class in an annotation: the types of the parts.

    None if these are written together with what is annotated.
    """
    if use.node in draft.edits:
        return draft.edits.pop(use.node)[1]
    if use.node in draft.replaced:
        return None
    # optimizer: "optim.Optimizer"
    if isinstance(use.node, ast.Constant):
        raise Unproven("a quoted annotation says what it is at {}", use.location)
    return Replace(use.span, tuple_of_parts(draft.group))


IDIOM = Functional
