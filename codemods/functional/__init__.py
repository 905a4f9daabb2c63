"""The other style of Flax's guide: an optimizer as params and optimizer state in two variables.

A train state takes the place of the optimizer object where it stands. In this style the object
falls into parts: in variables, parameters and arguments, in tuples that are returned, and in
carries of loops. The transformation goes to the functions that take a step. Whatever has no
counterpart in parts leaves the whole group of optimizers a train state.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.functional.group import Group, Index
from codemods.functional.interfaces import Interfaces
from codemods.functional.names import Names
from codemods.functional.writing import Draft
from codemods.idioms import Unproven
from codemods.idioms.base import Idiom, Results
from codemods.idioms.groups import refuse_plain
from codemods.idioms.order import Edits
from codemods.idioms.own_states import OwnStates
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.rewriting.edits import Edit, Keep


class Functional(Idiom):
    """With `--style functional`, an optimizer takes the functional style of Flax's guide: its
    parameters and its optimizer state become separate variables, in parameters, arguments, return
    values, and the carries of loops. The number of steps is a third variable if something reads it.
    Functions that take a step get the transformation as a parameter, which is static under
    `jax.jit`, or from an enclosing scope.

    This requires that every place that an optimizer goes to is in view and is one of these. An
    optimizer stays a train state if it is kept in a field of a class, wrapped by `jax.pmap`, or
    passed to a function that is out of view; a note says why.
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
        self.edits = Edits()
        self._outcomes: dict[ast.AST, Edit | None] = {}
        self._left: dict[LegacyObject, Message] = {}
        self._concerned: dict[ast.AST, list[LegacyObject]] = defaultdict(list)
        if stepping.options.style == "functional" and not stepping.options.partial:
            self._try_all()

    def _try_all(self) -> None:
        """Take apart each group of optimizers that can be."""
        names, index = Names(self.origins), Index(self.facts)
        groups = [
            members
            for members in self.facts.members.values()
            if any(obj.kind == "optimizer" for obj in members)
        ]
        stored = self._stored(groups)
        for members in groups:
            # a refused group gives its names back
            trial = names.copy()
            try:
                if len(stored) > 1 and members in stored:
                    raise Unproven("checkpoints hold other optimizers, too")
                draft = self._draft(members, trial, index)
            except Unproven as why:
                self._left.update(dict.fromkeys(members, why.message))
                continue
            names = trial
            for node, change in draft.edits.items():
                if draft.before.get(node) != change:
                    self._concerned[node] += draft.group.optimizers
            self.edits = draft.edits
            self._outcomes |= draft.outcomes

    def _stored(self, groups: list[list[LegacyObject]]) -> list[list[LegacyObject]]:
        """The groups that are stored or restored: one may restore what another has stored."""
        stored: set[LegacyObject] = set()
        for use in self.facts.uses:
            if use.kind in ("stored", "restored"):
                stored.update(use.objects)
        return [members for members in groups if not stored.isdisjoint(members)]

    def _draft(self, members: list[LegacyObject], names: Names, index: Index) -> Draft:
        """All changes for a group, with those of the groups before it.

        Raises:
          Unproven: if it has to stay in one piece.
        """
        states = self.results[OwnStates].states
        if any({*members} & {*state.objects} for state in states):
            raise Unproven("the dataclass around it is a train state")
        edits = Edits(self.edits)
        for other in self.results.edits_of(members):
            for node, (unit, edit) in other.items():
                # an edit of a helper that several groups share is already there
                if edits.get(node) != (unit, edit):
                    edits.put(node, unit, edit)
        group = Group(self.stepping, self.results, index, members)
        draft = Draft(group, Interfaces(group), names, edits)
        draft.write()
        new = {
            node: change
            for node, change in draft.edits.items()
            if node not in self.edits
        }
        refuse_plain(Edits(new), group.uses, self.stepping)
        return draft

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        if use.node not in self._outcomes:
            return general
        return self._outcomes[use.node] or Keep()

    def note(self, use: Use) -> Prose:
        why = self.reason(use.objects) if use.kind == "definition.create" else None
        if why is None:
            return ""
        return message("This optimizer stays in one piece, as a train state: {}.", why)

    def reason(self, objects: Iterable[LegacyObject]) -> Message | None:
        """Why some optimizers stay train states; None if they do not."""
        return next(filter(None, map(self._left.get, objects)), None)

    @property
    def changes(self) -> list[tuple[Edits, tuple[LegacyObject, ...]]]:
        return [
            (Edits({node: self.edits[node]}), tuple(objects))
            for node, objects in self._concerned.items()
        ]


IDIOM = Functional
