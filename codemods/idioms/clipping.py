"""Gradients that are clipped just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from codemods.analysis.origins import FunctionNode, Variable, block_of, statement_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.flow.binding import Bound, bind, signature_of
from codemods.flow.objects import Function, Thing
from codemods.idioms import Unproven
from codemods.idioms.forms import BY_NORM, BY_VALUE, Leaf
from codemods.idioms.groups import Outcomes, constructors, refuse_plain, refuse_templates
from codemods.idioms.leftovers import Leftovers
from codemods.idioms.masks import Masks
from codemods.idioms.norms import Norms
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.schedules import Schedules
from codemods.idioms.values import Value, Values, common_value
from codemods.rewriting.edits import Replace, ReplaceStatement
from codemods.sources.modules import Unit
from codemods.vocabulary import CLIP_GRADIENTS, MAP_TREES

CODE = "FO502"
GLOBAL, EACH = "optax.clip_by_global_norm", "optax.clip"

LOOKING = ("state.param_states", "state.replace", "definition.apply_gradient")
"""The uses that look into the state of an optimizer, or give it another."""

LONGEST = 120
"""A link of more characters is not written elsewhere."""


@dataclass(frozen=True)
class Clip:
    """A statement that clips gradients, and how.

    `function` is the transformation of optax, `limit` its argument. `guard` is what the statement is subject to, if it is to
    anything. The gradients come in under one name and leave under another, which may be the same.
    """

    statement: ast.stmt
    function: str
    limit: ast.expr
    guard: ast.expr | None
    before: ast.Name


@dataclass
class Clipping:
    """The first link of some transformations, by their constructors, what changes elsewhere, and the nodes that go."""

    links: dict[ast.AST, str]
    edits: Edits
    gone: set[ast.AST]


class Clippings(Outcomes[Clipping]):
    """The clippings of a project that join a chain, by the things of their groups; for those that do not, the reason."""

    kind = "clipping"

    def __init__(self, stepping: Stepping, schedules: Schedules, masks: Masks) -> None:
        super().__init__()
        self.stepping = stepping
        self.schedules = schedules
        self.masks = masks
        if stepping.options.partial or not stepping.options.selects(CODE):
            return
        for members, steps in stepping.stepped_groups:
            outcome = self._outcome(members, steps)
            if outcome is not None:
                self.add(members, outcome)

    def _outcome(self, members: list[Thing], steps: list[Use]) -> Clipping | str | None:
        finder = Clips(self.stepping)
        try:
            found = [clip for use in steps if (clip := finder.at(use)) is not None]
            if found and len(found) < len(steps):
                raise Unproven("not all steps clip")
            return self._join(members, steps, found) if found else None
        except Unproven as why:
            return str(why)

    def _join(self, members: list[Thing], steps: list[Use], clips: list[Clip]) -> Clipping:
        facts, origins = self.stepping.facts, self.stepping.origins
        outermost = _outermost(members, self.stepping, self.masks)
        refuse_templates(members, self.stepping)
        looks = (use for use in facts.uses if use.kind in LOOKING)
        if any(not {*members}.isdisjoint(use.things) for use in looks):
            raise Unproven("the state of the optimizer is used")
        values = Values(origins)
        link = common_value([_link(clip, values) for clip in clips])
        values.refuse_changes(link, outermost, members)
        passing = Passing(origins, link, "limit of the clipping")
        links: dict[ast.AST, str] = {call: passing.beside(call) for call in outermost}
        needed = passing.needed | {
            read for clip in clips if (read := origins.variable(clip.before)) is not None
        }
        norms = Norms(origins)
        gone = self.schedules.gone(members)
        leftovers = Leftovers(origins, passing.edits, needed, gone, norms.tree_of)
        for use, clip in zip(steps, clips, strict=True):
            self._take_out(use, clip, leftovers)
        self._bequeath(list(links), leftovers.edits, members)
        refuse_plain(leftovers.edits, (*steps, *members), self.stepping)
        for node, (unit, edit) in self.edits_beside(members).items():
            if node in leftovers.edits:
                leftovers.edits.put(node, unit, edit)
        return Clipping(links, leftovers.edits, leftovers.gone)

    def edits_beside(self, members: Iterable[Thing]) -> Edits:
        """What schedules and masks change for the sake of a group."""
        found = self.schedules.edits_of(members)
        for mask in self.masks.within(members):
            found.update(mask.edits)
        return found

    @staticmethod
    def _bequeath(constructors: list[ast.AST], edits: Edits, members: list[Thing]) -> None:
        """Let what was said of the clipping be said of the chain, if that is made in the same file."""
        heirs = {
            thing.unit: statement_of(thing.unit, thing.node)
            for thing in members
            if thing.node in constructors
        }
        for node, (unit, edit) in edits.items():
            if isinstance(edit, ReplaceStatement) and not edit.templates and unit in heirs:
                edits[node] = (unit, replace(edit, heir=unit.span(heirs[unit])))

    def _take_out(self, use: Use, clip: Clip, leftovers: Leftovers) -> None:
        """Take the statement away, and let the step have the gradients that it clipped."""
        unit = use.unit
        leftovers.take_away(clip.statement, unit)
        given = self.stepping.gradients(use)
        assert given is not None
        if clip.before.id != ast.unparse(given):
            if not self.stepping.facts.dataflow.stays([clip.before], clip.before, use.node):
                raise Unproven("what is clipped is another tree when the step is taken")
            leftovers.edits[given] = (unit, Replace(unit.span(given), clip.before.id))


def _outermost(members: list[Thing], stepping: Stepping, masks: Masks) -> list[ast.Call]:
    """The constructors of a group that are no part of another. One with a mask stands for the groups that it was.

    Raises:
      Unproven: if one of the group's definitions is not made by a constructor in view.
    """
    made = constructors(members, stepping)
    parts = {
        inner
        for thing in made.values()
        for inner in stepping.facts.legacy.definitions(thing)
        if inner != thing
    }
    whole = [call for call, thing in made.items() if thing not in parts]
    return [masks.found[call].definition if call in masks.found else call for call in whole]


def _link(clip: Clip, values: Values) -> Value:
    """The link of the chain as a value."""
    call = ast.Call(ast.parse(clip.function, mode="eval").body, [clip.limit], [])
    nothing = ast.parse("optax.identity()", mode="eval").body
    return values.of(
        call if clip.guard is None else ast.IfExp(clip.guard, call, nothing), longest=LONGEST
    )


class Clips:
    """Finds what a step's gradients go through last."""

    def __init__(self, stepping: Stepping) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.origins = stepping.origins

    def at(self, use: Use) -> Clip | None:
        """How the gradients of a step are clipped; None if they are not, or not last.

        Raises:
          Unproven: if they are clipped in a way that optax has not, or that something else is to know of.
        """
        given = self.stepping.gradients(use)
        variable = self.origins.variable(given)
        if not isinstance(given, ast.Name) or variable is None or self.stepping.axes(use.things):
            return None
        block = block_of(use.unit, statement_of(use.unit, use.node))
        settings = [
            (store, statement_of(use.unit, store))
            for store in self.origins.reaching(given, variable) or ()
        ]
        guarded = [
            (store, one) for store, one in settings if isinstance(use.unit.parents.get(one), ast.If)
        ]
        match guarded or settings:
            case [(ast.Name(), ast.Assign(targets=[ast.Name()], value=ast.Call() as call) as last)]:
                clip = self._clip(last, call, use.unit.parents.get(last), block)
            case _:
                return None
        if clip is not None:
            self._refuse_other_readers(variable, clip, given)
            self._refuse_changes(use.unit, clip, given)
        if clip is not None and isinstance(clip.statement, ast.If):
            self._refuse_more(clip.statement, variable)
            if not self.facts.dataflow.is_quiet(clip.statement.test):
                raise Unproven("its condition may do more than to tell whether to clip")
        return clip

    def _clip(
        self, statement: ast.stmt, call: ast.Call, guard: ast.AST | None, block: list[ast.stmt]
    ) -> Clip | None:
        """How a statement clips, if it or the branch that it is in is one of a block."""
        is_guarded = isinstance(guard, ast.If) and guard in block and not guard.orelse
        found = self._of_call(call, {}) if is_guarded or statement in block else None
        if found is None:
            return None
        function, limit, before = found
        if isinstance(guard, ast.If) and is_guarded:
            return Clip(guard, function, limit, guard.test, before)
        return Clip(statement, function, limit, None, before)

    def _of_call(
        self, call: ast.Call, given: Mapping[str, ast.expr]
    ) -> tuple[str, ast.expr, ast.Name] | None:
        """How a call clips a tree; within a function, `given` is what its parameters are."""
        name = self.facts.full_name(call.func)
        match call.args:
            case [ast.Name() as tree, limit] if name in CLIP_GRADIENTS:
                return GLOBAL, self._given(limit, given), tree
            case [ast.Lambda() as function, ast.Name() as tree] if (
                name in MAP_TREES and not call.keywords
            ):
                return self._of_map(function, tree, given)
        made = self.facts.functions(call.func)
        return self._of_helper(made[0], call) if len(made) == 1 else None

    def _of_helper(self, helper: Function, call: ast.Call) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of the project clips, if it gives back gradients that it clips itself, and does nothing else."""
        value = self._only_result(helper.node)
        given = _arguments(helper, call)
        found = (
            self._of_call(value, given)
            if isinstance(value, ast.Call) and given is not None
            else None
        )
        if found is None or given is None:
            return None
        function, limit, tree = found
        before = self._given(tree, given)
        known = isinstance(limit, ast.Constant) or limit in given.values()
        return (
            (function, limit, before)
            if before is not tree and isinstance(before, ast.Name) and known
            else None
        )

    def _only_result(self, helper: FunctionNode) -> ast.expr | None:
        """What a function returns that does nothing but set variables of its own."""
        if not isinstance(helper, ast.FunctionDef) or helper.decorator_list:
            return None
        *before, last = helper.body
        for statement in before:
            match statement:
                case ast.Assign(targets=[ast.Name() | ast.Tuple()], value=value) if (
                    self.facts.dataflow.is_quiet(value)
                ):
                    continue
                case ast.Expr(value=ast.Constant()) | ast.Delete():
                    continue
            return None
        return (
            self.origins.expanded(last.value)
            if isinstance(last, ast.Return) and last.value is not None
            else None
        )

    def _given(self, node: ast.expr, given: Mapping[str, ast.expr]) -> ast.expr:
        """What a parameter of a function stands for, unless the function sets it anew; any other expression itself."""
        variable = self.origins.variable(node)
        if variable is None or self.origins.parameter(variable) is None:
            return node
        return given.get(variable.name, node)

    def _of_map(
        self, function: ast.Lambda, tree: ast.Name, given: Mapping[str, ast.expr]
    ) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of each leaf clips it, if it has one of the forms that optax's is, too."""
        if len(function.args.args) != 1:
            return None
        leaf = Leaf(self.origins, function.args.args[0].arg, function.body, tree)
        doubtful: list[str] = []
        for kind, forms in ((GLOBAL, BY_NORM), (EACH, BY_VALUE)):
            for form, is_proven in forms.items():
                for limit in (self._given(found, given) for found in leaf.limits(form)):
                    if is_proven(limit):
                        return kind, limit, tree
                    doubtful.append(
                        f"`{ast.unparse(limit)}` may be a limit for which this form is not `{kind}`"
                    )
        if doubtful or leaf.has_norm():
            raise Unproven(
                [*doubtful, "it is not done for all norms as `optax.clip_by_global_norm` does it"][
                    0
                ]
            )
        return None

    def _refuse_more(self, branch: ast.If, clipped: Variable) -> None:
        """A branch that goes as a whole may do nothing else."""
        inside = {*ast.walk(branch)}
        for statement in branch.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [None]
            names = [
                one
                for target in targets
                for one in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            for name in names:
                variable = Variable(clipped.scope, name.id) if isinstance(name, ast.Name) else None
                if variable is None or (
                    variable != clipped
                    and any(load not in inside for load in self.origins.loads(variable))
                ):
                    raise Unproven("the branch that clips does more than that")

    def _refuse_other_readers(self, variable: Variable, clip: Clip, given: ast.expr) -> None:
        inside = {*ast.walk(clip.statement)}
        clipped = inside.intersection(self.origins.stores(variable))
        for load in self.origins.loads(variable):
            if load is given or load in inside:
                continue
            found = self.origins.reaching(load, variable)
            if found is None or not clipped.isdisjoint(found):
                raise Unproven(
                    f"the clipped gradients are read at {variable.unit.place(load.lineno)}, too"
                )

    def _refuse_changes(self, unit: Unit, clip: Clip, given: ast.expr) -> None:
        """The step is to get what was clipped: nothing may set it, or come by it, in the meantime."""
        inside = {*ast.walk(clip.statement)}
        meantime = self.facts.dataflow.between(clip.before, given)
        if meantime is None:
            raise Unproven("what is clipped is not seen where the step is taken")
        for node in meantime:
            if isinstance(node, ast.Name) and node.id == clip.before.id and node not in inside:
                raise Unproven(f"what is clipped is used at {unit.place(node.lineno)} again")


def _arguments(helper: Function, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call gives for each parameter of a function, defaults included."""
    if isinstance(helper.node, ast.Lambda):
        return None
    found = bind(signature_of(helper.node.args), call)
    known = isinstance(found, Bound) and not (found.unpacked or found.rest or found.others)
    return found.complete if isinstance(found, Bound) and known else None
