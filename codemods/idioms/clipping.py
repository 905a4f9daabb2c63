"""Gradients that are clipped just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codemods.edits import Replace, ReplaceStatement
from codemods.facts import Facts
from codemods.flow.objects import Function, Thing
from codemods.idioms import Unproven
from codemods.idioms.arithmetic import Unevaluable, evaluate
from codemods.idioms.groups import Outcomes, outermost, refuse_templates
from codemods.idioms.leftovers import Leftovers
from codemods.idioms.norms import MAP, Norms
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.values import Value, Values, common_value
from codemods.optimizers.base import is_unpacked
from codemods.origins import Origins, Variable, block_of, statement_of
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.rules.context import Context

CODE = "FO502"
CLIP_GRADS = ("jax.experimental.optimizers.clip_grads", "jax.example_libraries.optimizers.clip_grads")
GLOBAL, BY_VALUE = "optax.clip_by_global_norm", "optax.clip"

LIMITS = (0.25, 1.0, 7.0)
NORMS = (0.0, 1e-30, 1e-3, 0.2, 1.0, 7.0, 1e3, 1e30, math.inf, math.nan)
ELEMENTS = (0.0, 1e-3, -0.2, 0.3, -1.0, 1.5, -7.0, 9.0, -1e3, math.inf, -math.inf, math.nan)
FACTORS = (-2.0, -1.0, 0.5, 0.99999, 1.0, 1.00001, 2.0)
"""Norms and elements near the limit, relative to it."""

LONGEST = 120
"""A link of more characters is not written elsewhere."""

PRECISION = 1e-12
"""By how much, relative to it, an element may differ from the one that optax computes."""


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

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        if context.options.partial or not context.options.selects(CODE):
            return
        for members, steps in context.stepped_groups:
            outcome = self._outcome(members, steps)
            if outcome is not None:
                self.add(members, outcome)

    def _outcome(self, members: list[Thing], steps: list[Use]) -> Clipping | str | None:
        finder = Clips(self.context)
        try:
            clips = [finder.at(use) for use in steps]
        except Unproven as why:
            return str(why)
        found = [clip for clip in clips if clip is not None]
        if not found:
            return None
        try:
            if len(found) < len(steps):
                raise Unproven("not all steps clip")
            return self._join(members, steps, found)
        except Unproven as why:
            return str(why)

    def _join(self, members: list[Thing], steps: list[Use], clips: list[Clip]) -> Clipping:
        context, facts, origins = self.context, self.context.facts, self.context.origins
        constructors = outermost(members, context)
        refuse_templates(members, context)
        for use in facts.uses:
            if use.kind in ("state.param_states", "state.replace", "definition.apply_gradient") and {*use.things} & {
                *members
            }:
                raise Unproven("the state of the optimizer is used")
        values = Values(facts, origins)
        link = common_value([_link(clip, values) for clip in clips])
        values.refuse_changes(link, constructors, [use.node for use in steps])
        passing = Passing(facts, origins, link, "limit of the clipping")
        links: dict[ast.AST, str] = {call: passing.beside(call) for call in constructors}
        leftovers = Leftovers(facts, origins, passing.edits, passing.needed, context.schedules.gone(members))
        for use, clip in zip(steps, clips, strict=True):
            self._take_out(use, clip, leftovers)
        self._bequeath(list(links), leftovers.edits, members)
        units = (
            {unit for unit, _ in leftovers.edits.values()} | {use.unit for use in steps} | {one.unit for one in members}
        )
        if not units.isdisjoint(context.plain):
            raise Unproven("the file could not be rewritten in this form")
        for node, (unit, edit) in context.edits_beside(members).items():
            if node in leftovers.edits:
                leftovers.edits.put(node, unit, edit)
        return Clipping(links, leftovers.edits, leftovers.gone)

    @staticmethod
    def _bequeath(constructors: list[ast.AST], edits: Edits, members: list[Thing]) -> None:
        """Let what was said of the clipping be said of the chain, if that is made in the same file."""
        heirs = {thing.unit: statement_of(thing.unit, thing.node) for thing in members if thing.node in constructors}
        for node, (unit, edit) in edits.items():
            if isinstance(edit, ReplaceStatement) and not edit.templates and unit in heirs:
                edits[node] = (unit, replace(edit, heir=unit.span(heirs[unit])))

    def _take_out(self, use: Use, clip: Clip, leftovers: Leftovers) -> None:
        """Take the statement away, and let the step have the gradients that it clipped."""
        unit = use.unit
        leftovers.take_away(clip.statement, unit)
        given = self.context.gradients(use)
        assert given is not None
        if clip.before.id != ast.unparse(given):
            leftovers.edits[given] = (unit, Replace(unit.span(given), clip.before.id))


def _link(clip: Clip, values: Values) -> Value:
    """The link of the chain as a value."""
    callee = ast.parse(clip.function, mode="eval").body
    call = ast.Call(callee, [clip.limit], [])
    if clip.guard is None:
        node: ast.expr = call
    else:
        nothing = ast.parse("optax.identity()", mode="eval").body
        node = ast.IfExp(clip.guard, call, nothing)
    return values.of(node, longest=LONGEST)


class Clips:
    """Finds what a step's gradients go through last."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.facts = context.facts
        self.origins = context.origins
        self.norms = Norms(self.facts, self.origins)

    def at(self, use: Use) -> Clip | None:
        """How the gradients of a step are clipped; None if they are not, or not last.

        Raises:
          Unproven: if they are clipped in a way that optax has not, or that something else is to know of.
        """
        given = self.context.gradients(use)
        variable = self.origins.variable(given) if isinstance(given, ast.Name) else None
        if given is None or variable is None or self.context.axes(use.things):
            return None
        step = statement_of(use.unit, use.node)
        block = block_of(use.unit, step)
        stores = [statement_of(use.unit, store) for store in self.origins.stores(variable)]
        before = [store for store in stores if store.lineno < step.lineno]
        if not before:
            return None
        last = max(before, key=lambda store: store.lineno)
        guard = use.unit.parents.get(last)
        if isinstance(guard, ast.If) and guard in block and not guard.orelse:
            clip = self._clip(last, guard)
        elif last in block:
            clip = self._clip(last, None)
        else:
            return None
        if clip is not None:
            self._refuse_other_readers(variable, clip, given)
        if clip is not None and isinstance(clip.statement, ast.If):
            self._refuse_more(clip.statement, variable)
        return clip

    def _clip(self, statement: ast.stmt, guard: ast.If | None) -> Clip | None:
        match statement:
            case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
                found = self._of_call(call)
            case _:
                return None
        if found is None:
            return None
        function, limit, before = found
        whole: ast.stmt = statement if guard is None else guard
        return Clip(whole, function, limit, guard.test if guard is not None else None, before)

    def _of_call(self, call: ast.Call) -> tuple[str, ast.expr, ast.Name] | None:
        name = self.facts.full_name(call.func)
        match call.args:
            case [ast.Name() as tree, limit] if name in CLIP_GRADS:
                return GLOBAL, limit, tree
            case [ast.Lambda() as function, ast.Name() as tree] if name in MAP:
                return self._of_map(function, tree)
        made = [item for item in self.facts.objects(call.func) if isinstance(item, Function)]
        return self._of_helper(made[0], call) if len(made) == 1 else None

    def _of_helper(self, helper: Function, call: ast.Call) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of the project clips, if it gives back gradients that it clips itself."""
        returned = self.origins.returned(helper)
        value = self.origins.expanded(returned[0]) if len(returned) == 1 else None
        found = self._of_call(value) if isinstance(value, ast.Call) else None
        given = self._arguments(helper, call)
        if found is None or given is None:
            return None
        function, limit, tree = found
        before = given.get(tree.id)
        limit = given.get(limit.id, limit) if isinstance(limit, ast.Name) else limit
        known = isinstance(limit, ast.Constant) or limit in given.values()
        return (function, limit, before) if isinstance(before, ast.Name) and known else None

    @staticmethod
    def _arguments(helper: Function, call: ast.Call) -> dict[str, ast.expr] | None:
        """What a call gives for each parameter of a function, defaults included."""
        signature = helper.node.args
        if isinstance(helper.node, ast.Lambda) or signature.vararg or signature.kwarg or is_unpacked(call):
            return None
        names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        given = dict(zip(reversed(names), reversed(signature.defaults), strict=False))
        given |= dict(zip(names, call.args, strict=False))
        given |= {str(word.arg): word.value for word in call.keywords}
        return given

    def _of_map(self, function: ast.Lambda, tree: ast.Name) -> tuple[str, ast.expr, ast.Name] | None:
        """How a function of each leaf clips it, by what it does to numbers of all kinds."""
        if len(function.args.args) != 1:
            return None
        leaf = function.args.args[0].arg
        map_ = _Map(self.facts, self.origins, self.norms, leaf, function.body, tree)
        try:
            map_.value(0.5, 1.0, 2.0)
            limits = list(map_.opaque.values()) or self._constants(function.body)
            for limit in limits if len(map_.opaque) < 2 else ():
                given = (float(str(limit.value)),) if isinstance(limit, ast.Constant) else LIMITS
                if all(map_.is_clipped(one) for one in given):
                    return (GLOBAL if map_.has_norm else BY_VALUE), limit, tree
        except Unevaluable:
            return None
        if map_.has_norm:
            raise Unproven("it is not done for all norms as `optax.clip_by_global_norm` does it")
        return None

    def _constants(self, body: ast.expr) -> list[ast.expr]:
        """The one number among those of an expression that may be a limit."""
        numbers: dict[float, ast.expr] = {}
        pending = [body]
        while pending:
            node = pending.pop()
            further = self.origins.expanded(node)
            if further is not node and self.norms.tree_of(node) is None:
                pending.append(further)
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                numbers.setdefault(float(node.value), node)
            if self.norms.tree_of(node) is None:
                pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return [node for number, node in numbers.items() if number > 0]

    def _refuse_more(self, branch: ast.If, clipped: Variable) -> None:
        """A branch that goes as a whole may do nothing else."""
        inside = {*ast.walk(branch)}
        for statement in branch.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [None]
            names = [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
            for name in names:
                variable = Variable(clipped.scope, name.id) if isinstance(name, ast.Name) else None
                if variable is None or (
                    variable != clipped and any(load not in inside for load in self.origins.loads(variable))
                ):
                    raise Unproven("the branch that clips does more than that")

    def _refuse_other_readers(self, variable: Variable, clip: Clip, given: ast.expr) -> None:
        first = min(store.lineno for store in self.origins.stores(variable) if isinstance(store, ast.Name | ast.arg))
        for load in self.origins.loads(variable):
            after = load.lineno > (clip.statement.end_lineno or 0)
            if (after or load.lineno < first) and load is not given:
                raise Unproven(f"the clipped gradients are read at {variable.unit.place(load.lineno)}, too")


class _Map:
    """A function of a leaf, its tree's norm and one unknown number, by its body."""

    def __init__(self, facts: Facts, origins: Origins, norms: Norms, leaf: str, body: ast.expr, tree: ast.Name) -> None:
        self.facts = facts
        self.origins = origins
        self.norms = norms
        self.leaf = leaf
        self.body = body
        self.tree = tree
        self.opaque: dict[str, ast.expr] = {}
        self.has_norm = False

    def is_clipped(self, limit: float) -> bool:
        """Whether this is how optax clips to a limit, for elements and norms of all kinds."""
        expected = _by_global_norm if self.has_norm else _by_value
        return all(
            _same(self.value(element, norm, limit), expected(element, norm, limit))
            for norm in (*NORMS, *(limit * factor for factor in FACTORS))
            for element in (*ELEMENTS, *(limit * factor for factor in FACTORS))
            if not abs(element) > norm
        )

    def value(self, element: float, norm: float, limit: float) -> float:
        """What an element becomes.

        Raises:
          Unevaluable: if that depends on more.
        """

        def known(node: ast.expr) -> float | None:
            if isinstance(node, ast.Name) and node.id == self.leaf:
                return element
            if (of := self.norms.tree_of(node)) is not None:
                if not self._is_tree(of):
                    raise Unevaluable
                self.has_norm = True
                return norm
            if isinstance(node, ast.Name) and (further := self.origins.expanded(node)) is not node:
                return evaluate(further, known, self.facts)
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not self.facts.full_name(node):
                self.opaque[ast.unparse(node)] = node
                return limit
            return None

        return evaluate(self.body, known, self.facts)

    def _is_tree(self, node: ast.expr) -> bool:
        """Whether this is the tree that is mapped, as it is then."""
        if not isinstance(node, ast.Name):
            return False
        variable = self.origins.variable(node)
        return (
            variable is not None
            and variable == self.origins.variable(self.tree)
            and self.origins.unchanged(variable, node, self.tree)
        )


def _by_global_norm(element: float, norm: float, limit: float) -> float:
    """What `optax.clip_by_global_norm` does to an element."""
    if norm < limit:
        return element
    return math.nan if not norm else element / norm * limit


def _by_value(element: float, norm: float, limit: float) -> float:
    """What `optax.clip` does to an element."""
    del norm
    return math.nan if math.isnan(element) else max(-limit, min(limit, element))


def _same(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or abs(left - right) <= PRECISION * max(abs(left), abs(right))
