"""The other style of Flax's guide: an optimizer as params and optimizer state in two variables.

A train state takes the place of the optimizer object where it stands. In this style the object
falls into parts: in variables, parameters and arguments, in tuples that are returned, and in
carries of loops. The transformation goes to the functions that take a step. Whatever has no
counterpart in parts leaves the whole group of optimizers a train state.
"""

from __future__ import annotations

from functools import partial

from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.functional.group import Group, Holders, holders
from codemods.functional.names import Names
from codemods.functional.writing import Draft
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.idioms.groups import Outcomes, refuse_kept
from codemods.idioms.order import Edits
from codemods.idioms.own_states import OwnStates
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Prose
from codemods.rewriting.edits import Edit, Keep


class Functional(Outcomes[Draft]):
    """With `--style functional`, an optimizer takes the functional style of Flax's guide: its
    parameters and its optimizer state become separate variables, in parameters, arguments, return
    values, and the carries of loops. Functions that take a step get the transformation as a
    parameter, which is static under `jax.jit`, or from an enclosing scope.

    An optimizer stays a train state if it goes anywhere else, such as into a field of a class, a
    checkpoint, `jax.pmap` or a partial application, or if something reads its number of steps,
    annotates it, or sets its learning rate at a step. A note says why.
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
        is_wanted = stepping.options.style == "functional"
        if not is_wanted or stepping.options.partial:
            return
        names, held = Names(self.origins), holders(self.facts)
        for members in self.facts.members.values():
            if all(obj.kind != "optimizer" for obj in members):
                continue
            # a refused group gives its names back
            trial = Names(self.origins, names.given)
            self.attempt(members, partial(self._draft, members, trial, held))
            if self.of(members) is not None:
                names = trial

    def _draft(self, members: list[LegacyObject], names: Names, held: Holders) -> Draft:
        """All changes for a group."""
        states = self.results[OwnStates].states
        if any({*members} & {*state.objects} for state in states):
            raise Unproven("the dataclass around it is a train state")
        group = Group(self.stepping, self.results, held, members)
        before = Edits()
        for other in self.results.edits_of(members):
            for node, (unit, edit) in other.items():
                before.put(node, unit, edit)
        draft = Draft(group, names, Edits(before))
        draft.write()
        refuse_kept(group.uses, self.stepping)
        for node in before:
            if draft.edits[node] == before[node]:
                del draft.edits[node]
        return draft

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        draft = self.of(use.objects)
        return general if draft is None else draft.outcomes.get(use.node, general)

    def note(self, use: Use) -> Prose:
        why = self.reason(use.objects) if use.kind == "definition.create" else None
        if why is None:
            return ""
        return message("This optimizer stays in one piece, as a train state: {}.", why)


IDIOM = Functional
