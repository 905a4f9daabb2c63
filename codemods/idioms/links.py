"""What happens to gradients just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from codemods.analysis.origins import Variable, statement_of
from codemods.analysis.stepping import STEPS, Stepping
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.idioms.dead_code import DeadCode
from codemods.idioms.groups import (
    Outcomes,
    constructors,
    refuse_kept,
    refuse_templates,
)
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.values import Value, Values
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Prose
from codemods.rewriting.edits import ConvertDefinition, Edit, Keep, Replace
from codemods.sources.modules import Unit

LOOKING = ("state.param_states", "state.replace")
"""The uses that look into the state of an optimizer, or give it another."""

LONGEST = 120
"""A link of more characters is not written elsewhere."""


@dataclass(frozen=True)
class Link:
    """A transformation of optax for a call that gives gradients: `function(argument)`.

    `before` is the variable with the gradients that go into the call.
    """

    function: str
    argument: ast.expr
    before: ast.Name


@dataclass(frozen=True)
class Taken:
    """A statement that becomes a link; `guard` is its condition, if it has one."""

    statement: ast.stmt
    link: Link
    guard: ast.expr | None

    def value(self, values: Values) -> Value:
        """The link of the chain as a value."""
        function = ast.parse(self.link.function, mode="eval").body
        link: ast.expr = ast.Call(function, [self.link.argument], [])
        # if limit > 0: grads = clip_grads(grads, limit)
        if self.guard is not None:
            nothing = ast.parse("optax.identity()", mode="eval").body
            link = ast.IfExp(self.guard, link, nothing)
        return values.of(link, longest=LONGEST)


@dataclass
class Linked:
    """What becomes of what a group does to its gradients.

    `links` has the first link of each transformation, by its constructor, `edits` what changes
    elsewhere, and `removed` the nodes that are removed.
    """

    links: dict[ast.AST, str]
    edits: Edits
    removed: set[ast.AST]


class Links(Outcomes[Linked]):
    """What a program does to gradients just before steps, by the objects of groups.

    Such an idiom knows calls of one kind, and says in which link each results. All else is here:
    that the group takes its steps at one place, that nothing else has the gradients that it gives,
    that its argument gets to the place that makes the optimizer, and what is removed and passed on.
    A statement may stand behind a condition.
    """

    does: str
    """What the calls do, in the present tense for many: `clip`."""

    done: str
    """What the gradients are that they give: `clipped`."""

    argument: str
    """What the argument of the link is: `limit of the clipping`."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        if not self.is_wanted:
            return
        for members, steps in stepping.stepped_groups:
            earlier = (idiom for idiom in results if isinstance(idiom, Links))
            # a chain gets one such link
            if any(idiom.of(members) for idiom in earlier):
                continue
            self.attempt(members, partial(self._outcome, members, steps))

    @abstractmethod
    def link(self, call: ast.Call) -> Link | None:
        """The link that does what a call does; None if it does something else.

        Raises:
          Unproven: if it looks like that, and may be something else.
        """

    def may_go(self, value: ast.expr) -> bool:
        """Whether a value that nothing needs any more may be removed though it calls functions."""
        del value
        return False

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        linked = self.of(use.objects)
        if not isinstance(general, ConvertDefinition) or linked is None:
            return general
        return replace(general, link=linked.links.get(use.node, general.link))

    def note(self, use: Use) -> Prose:
        why = self.reason(use.objects) if use.kind in STEPS else None
        if why is None or not self._may_be_before(use):
            return ""
        return message(
            "The gradients are {} before this step, and not by a link of the chain: {}.",
            self.done,
            why,
        )

    # The steps of a group

    def _may_be_before(self, use: Use) -> bool:
        """Whether there is such a call before a step, or what looks like one."""
        try:
            return self._before(use) is not None
        except Unproven:
            return True

    def _outcome(self, members: list[LegacyObject], steps: list[Use]) -> Linked | None:
        """What becomes of a group; None if there is no such call."""
        found = [self._before(use) for use in steps]
        taken = next((one for one in found if one is not None), None)
        if taken is None:
            return None
        if len(steps) > 1:
            raise Unproven("the optimizer takes steps at several places")
        return self._join(members, steps[0], taken)

    def _join(
        self,
        members: list[LegacyObject],
        step: Use,
        taken: Taken,
    ) -> Linked:
        """Make the call the first link of the chain, and take it out of the step."""
        outermost = self._outermost(members)
        refuse_templates(members, self.stepping)
        self._refuse_looks(members)
        values = Values(self.origins)
        link = taken.value(values)
        values.refuse_changes(link, outermost, members)
        passing = Passing(self.origins, link, self.argument)
        links: dict[ast.AST, str] = {call: passing.beside(call) for call in outermost}
        # the gradients of before, which the step gets now
        needed = {*passing.needed}
        variable = self.origins.variable(taken.link.before)
        if variable is not None:
            needed.add(variable)
        removed = self.results.removed(members)
        dead_code = DeadCode(self.origins, passing.edits, needed, removed, self.may_go)
        self._take_out(step, taken, dead_code)
        refuse_kept((step, *members), self.stepping)
        # an edit of one place includes what other idioms do to it
        beside = Edits()
        for edits in self.results.edits_of(members):
            beside.update(edits)
        for node, (unit, edit) in beside.items():
            if node in dead_code.edits:
                dead_code.edits.put(node, unit, edit)
        return Linked(links, dead_code.edits, dead_code.removed)

    def _outermost(self, members: list[LegacyObject]) -> list[ast.Call]:
        """The constructors of a group that are no part of another."""
        made = constructors(members, self.stepping)
        parts: set[LegacyObject] = set()
        for obj in made.values():
            inner = self.facts.legacy.definitions(obj)
            parts.update(part for part in inner if part != obj)
        return [call for call, obj in made.items() if obj not in parts]

    def _refuse_looks(self, members: list[LegacyObject]) -> None:
        """The state of a chain is not laid out as that of its last link alone."""
        own = {*members}
        looks = (use for use in self.facts.uses if use.kind in LOOKING)
        # optimizer.state.param_states
        if any(not own.isdisjoint(use.objects) for use in looks):
            raise Unproven("the state of the optimizer is used")

    def _take_out(self, use: Use, taken: Taken, dead_code: DeadCode) -> None:
        """Take the statement away, and let the step have the gradients that went into it."""
        unit, before = use.unit, taken.link.before
        dead_code.take_away(taken.statement, unit)
        given = self.stepping.gradients(use)
        assert given is not None
        # `clipped = clip(grads)`: the step gets `grads`
        if before.id != ast.unparse(given):
            if not self.facts.dataflow.stays([before], before, use.node):
                raise Unproven(
                    f"what is {self.done} is another tree when the step is taken"
                )
            dead_code.edits[given] = (unit, Replace(unit.span(given), before.id))

    # What the gradients of a step go through last

    def _before(self, use: Use) -> Taken | None:
        """The statement that gives the gradients of a step; None if it does something else.

        Raises:
          Unproven: if no link of optax does the same, or something else depends on it.
        """
        given = self.stepping.gradients(use)
        variable = self.origins.variable(given)
        # optimizer.apply_gradient(grads)
        if not isinstance(given, ast.Name) or variable is None:
            return None
        if self.stepping.axes(use.objects):
            return None
        taken = self._last(use, given, variable)
        if taken is None:
            return None
        self._refuse_other_readers(variable, taken, given)
        self._refuse_changes(use.unit, taken, given)
        if isinstance(taken.statement, ast.If):
            self._refuse_more(taken.statement, variable)
            if not self.facts.dataflow.has_no_effect(taken.statement.test):
                raise Unproven(
                    f"its condition may do more than to tell whether to {self.does}"
                )
        return taken

    def _last(self, use: Use, given: ast.Name, variable: Variable) -> Taken | None:
        """The statement that sets the gradients last, or that a branch has for that."""
        parents = use.unit.parents
        block = use.unit.block_of(statement_of(use.unit, use.node))
        stores = self.origins.reaching(given, variable) or ()
        settings = [(store, statement_of(use.unit, store)) for store in stores]
        # if limit > 0: grads = clip_grads(grads, limit)
        guarded = [
            pair for pair in settings if isinstance(parents.get(pair[1]), ast.If)
        ]
        match guarded or settings:
            # grads = clip_grads(grads, limit)
            case [
                (
                    ast.Name(),
                    ast.Assign(targets=[ast.Name()], value=ast.Call() as call) as last,
                )
            ]:
                guard = parents.get(last)
                # with an `else`, it is more than a condition of the call
                if not isinstance(guard, ast.If) or guard.orelse:
                    guard = None
                if guard not in block:
                    guard = None
                link = self.link(call) if guard or last in block else None
                if link is not None:
                    test = None if guard is None else guard.test
                    return Taken(guard or last, link, test)
        return None

    def _refuse_more(self, branch: ast.If, given: Variable) -> None:
        """A branch that is removed as a whole may have no other effect."""
        inside = {*ast.walk(branch)}
        for name in _set_in(branch):
            if not isinstance(name, ast.Name):
                raise Unproven(f"the branch that {self.does}s does more than that")
            variable = Variable(given.scope, name.id)
            if variable == given:
                continue
            # norm = global_norm(grads), which is read elsewhere
            if any(load not in inside for load in self.origins.loads(variable)):
                raise Unproven(f"the branch that {self.does}s does more than that")

    def _refuse_other_readers(
        self,
        variable: Variable,
        taken: Taken,
        given: ast.expr,
    ) -> None:
        """Nothing but the step may read the gradients that the statement gives."""
        inside = {*ast.walk(taken.statement)}
        set_here = inside.intersection(self.origins.stores(variable))
        for load in self.origins.loads(variable):
            if load is given or load in inside:
                continue
            found = self.origins.reaching(load, variable)
            # log(norm(grads)), behind the clipping
            if found is None or not set_here.isdisjoint(found):
                where = variable.unit.location(load.lineno)
                raise Unproven("the {} gradients are read at {}, too", self.done, where)

    def _refuse_changes(self, unit: Unit, taken: Taken, given: ast.expr) -> None:
        """The step gets the tree as it was before: nothing may set or use it in the meantime."""
        before = taken.link.before
        inside = {*ast.walk(taken.statement)}
        meantime = self.facts.dataflow.between(before, given)
        if meantime is None:
            raise Unproven(f"what is {self.done} is not seen where the step is taken")
        for node in meantime:
            if not isinstance(node, ast.Name) or node in inside:
                continue
            if node.id == before.id:
                where = unit.location(node.lineno)
                raise Unproven("what is {} is used at {} again", self.done, where)


def _set_in(branch: ast.If) -> Iterator[ast.expr | None]:
    """What the statements of a branch assign to; None for a statement of another kind."""
    for statement in branch.body:
        if not isinstance(statement, ast.Assign):
            yield None
            continue
        for target in statement.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
