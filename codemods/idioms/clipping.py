"""Gradients that are clipped just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

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
from codemods.rewriting.edits import Replace
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

    `function` is the transformation of optax, `limit` its argument. `guard` is the condition of the
    statement, if it has one. The gradients come in under the name `before` and leave under another,
    which may be the same.
    """

    statement: ast.stmt
    function: str
    limit: ast.expr
    guard: ast.expr | None
    before: ast.Name


@dataclass
class Clipping:
    """What becomes of the clipping of a group.

    `links` has the first link of each transformation, by its constructor, `edits` what changes
    elsewhere, and `gone` the nodes that are removed.
    """

    links: dict[ast.AST, str]
    edits: Edits
    gone: set[ast.AST]


class Clippings(Outcomes[Clipping]):
    """The clippings of a project that join a chain, by the objects of their groups.

    For a clipping that does not, it has the reason.
    """

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
        """What becomes of the clipping of a group, or why it stays; None if it does not clip."""
        finder = Clips(self.stepping)
        try:
            found = [finder.at(use) for use in steps]
            clips = [clip for clip in found if clip is not None]
            if not clips:
                return None
            if len(clips) < len(steps):
                raise Unproven("not all steps clip")
            return self._join(members, steps, clips)
        except Unproven as why:
            return str(why)

    def _join(self, members: list[Thing], steps: list[Use], clips: list[Clip]) -> Clipping:
        """Make the clipping the first link of the chain, and take it out of the steps."""
        origins = self.stepping.origins
        outermost = _outermost(members, self.stepping, self.masks)
        refuse_templates(members, self.stepping)
        self._refuse_looks(members)
        values = Values(origins)
        link = common_value([_link(clip, values) for clip in clips])
        values.refuse_changes(link, outermost, members)
        passing = Passing(origins, link, "limit of the clipping")
        links: dict[ast.AST, str] = {call: passing.beside(call) for call in outermost}
        read = {origins.variable(clip.before) for clip in clips}
        needed = passing.needed | {variable for variable in read if variable is not None}
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

    def _refuse_looks(self, members: list[Thing]) -> None:
        """The state of a chain is not laid out as that of its last link alone."""
        looks = (use for use in self.stepping.facts.uses if use.kind in LOOKING)
        if any(not {*members}.isdisjoint(use.things) for use in looks):
            raise Unproven("the state of the optimizer is used")

    def edits_beside(self, members: Iterable[Thing]) -> Edits:
        """What schedules and masks change for a group."""
        found = self.schedules.edits_of(members)
        for mask in self.masks.within(members):
            found.update(mask.edits)
        return found

    @staticmethod
    def _bequeath(constructors: list[ast.AST], edits: Edits, members: list[Thing]) -> None:
        """Let the comments on the clipping go to the chain, if that is made in the same file."""
        heirs = {
            thing.unit: statement_of(thing.unit, thing.node)
            for thing in members
            if thing.node in constructors
        }
        for node, (unit, edit) in edits.items():
            if unit in heirs:
                edits[node] = (unit, edit.with_heir(unit.span(heirs[unit])))

    def _take_out(self, use: Use, clip: Clip, leftovers: Leftovers) -> None:
        """Take the statement away, and let the step have the gradients that it clipped."""
        unit = use.unit
        leftovers.take_away(clip.statement, unit)
        given = self.stepping.gradients(use)
        assert given is not None
        # `clipped = clip(grads)`: the step gets `grads`
        if clip.before.id != ast.unparse(given):
            if not self.stepping.facts.dataflow.stays([clip.before], clip.before, use.node):
                raise Unproven("what is clipped is another tree when the step is taken")
            leftovers.edits[given] = (unit, Replace(unit.span(given), clip.before.id))


def _outermost(members: list[Thing], stepping: Stepping, masks: Masks) -> list[ast.Call]:
    """The constructors of a group that are no part of another.

    One with a mask stands for the MultiOptimizer that it replaces.

    Raises:
      Unproven: if one of the group's definitions is not made by a constructor in view.
    """
    made = constructors(members, stepping)
    parts: set[Thing] = set()
    for thing in made.values():
        inner = stepping.facts.legacy.definitions(thing)
        parts.update(part for part in inner if part != thing)
    whole = [call for call, thing in made.items() if thing not in parts]
    return [masks.found[call].definition if call in masks.found else call for call in whole]


def _link(clip: Clip, values: Values) -> Value:
    """The link of the chain as a value."""
    link: ast.expr = ast.Call(ast.parse(clip.function, mode="eval").body, [clip.limit], [])
    # if limit > 0: grads = clip_grads(grads, limit)
    if clip.guard is not None:
        nothing = ast.parse("optax.identity()", mode="eval").body
        link = ast.IfExp(clip.guard, link, nothing)
    return values.of(link, longest=LONGEST)


class Clips:
    """Finds what a step's gradients go through last."""

    def __init__(self, stepping: Stepping) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.origins = stepping.origins

    def at(self, use: Use) -> Clip | None:
        """How the gradients of a step are clipped; None if they are not, or not last.

        Raises:
          Unproven: if optax has no such clipping, or something else depends on it.
        """
        given = self.stepping.gradients(use)
        variable = self.origins.variable(given)
        if not isinstance(given, ast.Name) or variable is None or self.stepping.axes(use.things):
            return None
        clip = self._last_clip(use, given, variable)
        if clip is None:
            return None
        self._refuse_other_readers(variable, clip, given)
        self._refuse_changes(use.unit, clip, given)
        if isinstance(clip.statement, ast.If):
            self._refuse_more(clip.statement, variable)
            if not self.facts.dataflow.is_quiet(clip.statement.test):
                raise Unproven("its condition may do more than to tell whether to clip")
        return clip

    def _last_clip(self, use: Use, given: ast.Name, variable: Variable) -> Clip | None:
        """How the statement clips that sets the gradients last, or that a branch has for that."""
        parents = use.unit.parents
        block = block_of(use.unit, statement_of(use.unit, use.node))
        stores = self.origins.reaching(given, variable) or ()
        settings = [(store, statement_of(use.unit, store)) for store in stores]
        guarded = [pair for pair in settings if isinstance(parents.get(pair[1]), ast.If)]
        match guarded or settings:
            # grads = clip_grads(grads, limit)
            case [(ast.Name(), ast.Assign(targets=[ast.Name()], value=ast.Call() as call) as last)]:
                return self._clip(last, call, parents.get(last), block)
        return None

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
            # clip_grads(grads, limit)
            case [ast.Name() as tree, limit] if name in CLIP_GRADIENTS:
                return GLOBAL, self._given(limit, given), tree
            # jax.tree_map(lambda g: jnp.clip(g, -limit, limit), grads)
            case [ast.Lambda() as function, ast.Name() as tree] if name in MAP_TREES:
                if not call.keywords:
                    return self._of_map(function, tree, given)
        made = self.facts.functions(call.func)
        return self._of_helper(made[0], call) if len(made) == 1 else None

    def _of_helper(self, helper: Function, call: ast.Call) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of the project clips that does nothing else with the gradients it gets."""
        value = self._only_result(helper.node)
        given = _arguments(helper, call)
        if not isinstance(value, ast.Call) or given is None:
            return None
        found = self._of_call(value, given)
        if found is None:
            return None
        function, limit, tree = found
        before = self._given(tree, given)
        is_known = isinstance(limit, ast.Constant) or limit in given.values()
        # a tree that is no parameter is not what the call gives
        if before is tree or not isinstance(before, ast.Name) or not is_known:
            return None
        return function, limit, before

    def _only_result(self, helper: FunctionNode) -> ast.expr | None:
        """What a function returns that does nothing but set variables of its own."""
        if not isinstance(helper, ast.FunctionDef) or helper.decorator_list:
            return None
        *before, last = helper.body
        if not all(map(self._only_sets, before)):
            return None
        if not isinstance(last, ast.Return) or last.value is None:
            return None
        return self.origins.expanded(last.value)

    def _only_sets(self, statement: ast.stmt) -> bool:
        """Whether a statement only sets or deletes variables, or is a docstring."""
        match statement:
            case ast.Assign(targets=[ast.Name() | ast.Tuple()], value=value):
                return self.facts.dataflow.is_quiet(value)
            case ast.Expr(value=ast.Constant()) | ast.Delete():
                return True
        return False

    def _given(self, node: ast.expr, given: Mapping[str, ast.expr]) -> ast.expr:
        """What a call gives for a parameter that is never set anew; any other expression itself."""
        variable = self.origins.variable(node)
        if variable is None or self.origins.parameter(variable) is None:
            return node
        return given.get(variable.name, node)

    def _of_map(
        self, function: ast.Lambda, tree: ast.Name, given: Mapping[str, ast.expr]
    ) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of each leaf clips it, if it has a form that means what optax does."""
        if len(function.args.args) != 1:
            return None
        leaf = Leaf(self.origins, function.args.args[0].arg, function.body, tree)
        doubtful: list[str] = []
        for kind, forms in ((GLOBAL, BY_NORM), (EACH, BY_VALUE)):
            for form, is_proven in forms.items():
                for found in leaf.limits(form):
                    limit = self._given(found, given)
                    if is_proven(limit):
                        return kind, limit, tree
                    text = ast.unparse(limit)
                    doubtful.append(f"`{text}` may be a limit for which this form is not `{kind}`")
        if doubtful:
            raise Unproven(doubtful[0])
        if leaf.has_norm():
            raise Unproven("it is not done for all norms as `optax.clip_by_global_norm` does it")
        return None

    def _refuse_more(self, branch: ast.If, clipped: Variable) -> None:
        """A branch that is removed as a whole may have no other effect."""
        inside = {*ast.walk(branch)}
        for name in _set_in(branch):
            if not isinstance(name, ast.Name):
                raise Unproven("the branch that clips does more than that")
            variable = Variable(clipped.scope, name.id)
            if variable == clipped:
                continue
            if any(load not in inside for load in self.origins.loads(variable)):
                raise Unproven("the branch that clips does more than that")

    def _refuse_other_readers(self, variable: Variable, clip: Clip, given: ast.expr) -> None:
        """Nothing but the step may read the clipped gradients."""
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
        """The step gets the tree as it was before: nothing may set or use it in the meantime."""
        inside = {*ast.walk(clip.statement)}
        meantime = self.facts.dataflow.between(clip.before, given)
        if meantime is None:
            raise Unproven("what is clipped is not seen where the step is taken")
        for node in meantime:
            if isinstance(node, ast.Name) and node.id == clip.before.id and node not in inside:
                raise Unproven(f"what is clipped is used at {unit.place(node.lineno)} again")


def _set_in(branch: ast.If) -> Iterator[ast.expr | None]:
    """What the statements of a branch assign to; None for a statement of another kind."""
    for statement in branch.body:
        if not isinstance(statement, ast.Assign):
            yield None
            continue
        for target in statement.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _arguments(helper: Function, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call gives for each parameter of a function, defaults included."""
    if isinstance(helper.node, ast.Lambda):
        return None
    found = bind(signature_of(helper.node.args), call)
    if not isinstance(found, Bound) or found.unpacked or found.rest or found.others:
        return None
    return found.complete
