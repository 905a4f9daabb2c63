"""Weight decay for some parameters and none for the others: in optax, one optimizer with a mask."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.origins import block_of, statement_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Idiom, Results
from codemods.idioms.order import Edits, may_wait
from codemods.idioms.predicates import Predicates
from codemods.idioms.schedules import Schedules
from codemods.inference.binding import arguments_of, values_of
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.optimizers.base import RATE, given
from codemods.optimizers.methods import TRAVERSAL
from codemods.rewriting.edits import ConvertDefinition, Edit, Keep, TakePart
from codemods.sources.modules import Span, Unit

DECAY = "weight_decay"
Arguments = Mapping[str, ast.expr]
LOOKING = (
    "state.param_states",
    "state.replace",
    "definition.hyper_params",
    "optimizer.state_dict",
)
"""The uses that look into the state of an optimizer."""


@dataclass(frozen=True)
class PartitionGroup:
    """A part of a MultiOptimizer: the constructors of its traversal and definition.

    `chosen_by` and `stepped_by` are the expressions that stand for them in the call.
    """

    traversal: ast.Call
    definition: ast.Call
    chosen_by: ast.expr
    stepped_by: ast.expr

    @property
    def predicate(self) -> ast.expr:
        return values_of(self.traversal)[0]


@dataclass
class Mask:
    """What becomes of a MultiOptimizer that is one optimizer with a mask.

    `objects` are what it is made of, `definition` is the constructor that stays and gets the mask,
    `stands_for` the expression for it in the call, `predicate` the one that chooses the parameters
    that decay. `opposite` has the source texts of that predicate and of its negation.
    """

    objects: tuple[LegacyObject, ...]
    definition: ast.Call
    stands_for: ast.expr
    predicate: ast.expr
    opposite: tuple[str, str]
    edits: Edits = field(default_factory=Edits)

    def predicate_in(self, unit: Unit) -> Span | str:
        """The predicate's name, or its span if it has none."""
        if isinstance(self.predicate, ast.Name):
            return self.predicate.id
        return unit.span(self.predicate)


class Masks(Idiom):
    """Two optimizers that differ only in their weight decay, which one of them lacks, become one
    with a mask, because everything else is computed for each parameter separately.

    This requires that one predicate is the negation of the other, as their expressions show. They
    may compare the path, results of its methods, and the shape and type of the value, because optax
    applies a mask to parameters and to gradients. The words that they compare must not be an
    iterator that the first predicate exhausts, and no code may read the state of the two groups.
    Otherwise the two stay a partition.
    """

    code = "FO304"
    summary = "decay for some parameters is a mask"
    kind = "mask"
    before = """\
kernels = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)
others = optim.ModelParamTraversal(lambda path, _: 'kernel' not in path)
decay = optim.Adam(1e-3, weight_decay=1e-4)
no_decay = optim.Adam(1e-3, weight_decay=0)
optimizer_def = optim.MultiOptimizer((kernels, decay), (others, no_decay))
"""
    after = """\
kernels = lambda path, _: 'kernel' in path
decay = optax.adamw(1e-3, weight_decay=1e-4, mask=mask_by_path(kernels))
optimizer_def = decay
"""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        self.schedules = results[Schedules]
        # by the calls of MultiOptimizer that become an optimizer with a mask
        self.found: dict[ast.AST, Mask] = {}
        # and why calls stay of which that was expected
        self.reasons: dict[ast.AST, Message] = {}
        if not self.is_wanted:
            return
        for use in self.facts.uses:
            if use.kind != "definition" or use.name != "MultiOptimizer":
                continue
            if use.unit in stepping.plain or not isinstance(use.node, ast.Call):
                continue
            try:
                mask = self._mask(use, use.node)
            except Unproven as why:
                self.reasons[use.node] = why.message
                continue
            if mask is not None:
                self.found[use.node] = mask

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        if not isinstance(general, ConvertDefinition):
            return general
        # MultiOptimizer((kernels, decay_def), (others, no_decay_def)) is decay_def with a mask
        whole = self.found.get(use.node)
        if whole is not None:
            return TakePart(use.span, use.unit.span(whole.stands_for), whole.opposite)
        mask = self.of_definition(use.node)
        # optim.Adam(1e-3, weight_decay=1e-4), of the parameters that decay
        if mask is not None:
            return replace(general, mask=mask.predicate_in(use.unit))
        return general

    def note(self, use: Use) -> Prose:
        why = self.reasons.get(use.node) if use.kind == "definition" else None
        if why is None:
            return ""
        return message(
            "Its groups differ in weight decay alone, and stay groups: {}.", why
        )

    def of_definition(self, node: ast.AST) -> Mask | None:
        """The mask that a constructor gets."""
        masks = self.found.values()
        return next((mask for mask in masks if mask.definition is node), None)

    def within(self, members: Iterable[LegacyObject]) -> list[Mask]:
        """The masks of a group."""
        calls = {obj.node for obj in members}
        return [mask for call, mask in self.found.items() if call in calls]

    def edits_of(self, objects: Iterable[LegacyObject]) -> Edits:
        found = Edits()
        for mask in self.within(objects):
            found.update(mask.edits)
        return found

    @property
    def changes(self) -> list[tuple[Edits, tuple[LegacyObject, ...]]]:
        return [(mask.edits, mask.objects) for mask in self.found.values()]

    def _mask(self, use: Use, call: ast.Call) -> Mask | None:
        """The mask for a call; None if it does not look like a matter of decay."""
        groups = [self._group(argument) for argument in call.args]
        first, second = groups if len(groups) == 2 else (None, None)
        if first is None or second is None:
            return None
        decaying = self._decaying(first, second, use.unit)
        if decaying is None:
            return None
        other = second if decaying is first else first
        Predicates(self.origins).refuse_others(first.predicate, second.predicate)
        self._refuse_other_uses(use)
        opposite = (ast.unparse(decaying.predicate), ast.unparse(other.predicate))
        mask = Mask(
            use.objects,
            decaying.definition,
            decaying.stepped_by,
            decaying.chosen_by,
            opposite,
        )
        for group in (decaying, other):
            for part in (group.chosen_by, group.stepped_by):
                # kernels, and decay_def, in ((kernels, decay_def), …)
                if isinstance(part, ast.Name):
                    self._refuse_shared(part)
        self._clear_up(use, call, mask, decaying, other)
        return mask

    def _clear_up(
        self,
        use: Use,
        call: ast.Call,
        mask: Mask,
        decaying: PartitionGroup,
        other: PartitionGroup,
    ) -> None:
        """Take away what the call has no use for any more, and let the predicate be known to it."""
        leftover = [other.chosen_by, other.stepped_by]
        unit, definition = use.unit, decaying.definition
        if isinstance(decaying.stepped_by, ast.Name):
            # optimizer_def = optax.adamw(…), without the name `decay_def`
            if not may_wait(definition, unit, statement_of(unit, call), self.origins):
                raise Unproven("what its optimizer is made of changes in between")
            leftover.append(decaying.stepped_by)
            mask.stands_for = definition
        for part in leftover:
            if isinstance(part, ast.Name):
                self._take_away(part, mask)
        if isinstance(other.predicate, ast.Name):
            self._take_function_away(other.predicate, mask)

    def _group(self, argument: ast.expr) -> PartitionGroup | None:
        """The part of a MultiOptimizer that an argument gives, if that is a pair written there."""
        # group = (kernels, decay_def)
        if self.origins.expanded(argument) is not argument:
            return None
        match argument:
            # (ModelParamTraversal(lambda path, _: …), Adam(…))
            case (
                ast.Tuple(elts=[chosen_by, stepped_by])
                | ast.List(elts=[chosen_by, stepped_by])
            ):
                traversal = self.origins.expanded(chosen_by)
                definition = self.origins.expanded(stepped_by)
            case _:
                return None
        if not self._is_made(traversal, "traversal"):
            return None
        if not self._is_made(definition, "definition"):
            return None
        if arguments_of(TRAVERSAL, traversal) is None:
            return None
        if definition not in self.stepping.constructors:
            return None
        return PartitionGroup(traversal, definition, chosen_by, stepped_by)

    def _is_made(self, node: ast.expr, kind: str) -> TypeGuard[ast.Call]:
        """Whether an expression is the call that makes something."""
        if not isinstance(node, ast.Call):
            return False
        return any(obj.node is node for obj in self.facts.legacy_objects(node, kind))

    def _decaying(
        self,
        first: PartitionGroup,
        second: PartitionGroup,
        unit: Unit,
    ) -> PartitionGroup | None:
        """The group that decays, of two that are otherwise the same."""
        definitions = [
            *self.facts.legacy_objects(first.definition),
            *self.facts.legacy_objects(second.definition),
        ]
        # optimizer.apply_gradient(grads, weight_decay=decay) sets that of both
        if not self.stepping.decay_is_set.isdisjoint(definitions):
            return None
        kinds = {one.made_by: legacy_optimizer(one) for one in definitions}
        # optim.Adam and optim.LAMB
        kind = kinds.popitem()[1] if len(kinds) == 1 else None
        if kind is None or not kind.masks_decay:
            return None
        signature = kind.parameters
        found = [given(group.definition, signature) for group in (first, second)]
        one, other = [
            arguments if isinstance(arguments, dict) else {} for arguments in found
        ]
        # a schedule takes the place of both rates
        if self.schedules.of(self.facts.legacy_objects(first.definition)):
            one.pop(RATE, None)
            other.pop(RATE, None)
        decays = [arguments.pop(DECAY, None) for arguments in (one, other)]
        if _texts(one) != _texts(other):
            return None
        if not self._have_one_value(
            first.definition, second.definition, one, other, unit
        ):
            return None
        match [_is_zero(decay) for decay in decays]:
            case [False, True]:
                return first
            case [True, False]:
                return second
        return None

    def _have_one_value(
        self,
        first: ast.Call,
        second: ast.Call,
        one: Arguments,
        other: Arguments,
        unit: Unit,
    ) -> bool:
        """Whether arguments of two calls that read alike are the same when the calls are made."""
        dataflow = self.facts.dataflow
        if statement_of(unit, first) is statement_of(unit, second):
            return all(dataflow.has_no_effect(value) for value in one.values())
        before = dataflow.is_before(first, second)
        earlier, start, end = one, first, second
        if not before:
            earlier, start, end = other, second, first
        # they may be in branches, none before the other
        if not dataflow.is_before(start, end):
            return False
        return dataflow.stays(earlier.values(), start, end)

    # What may stand in the way

    def _refuse_other_uses(self, use: Use) -> None:
        """Refuse uses of the state: that of one optimizer has another layout than that of two."""
        group = self.facts.groups[use.objects[0]] if use.objects else None
        for other in self.facts.uses:
            # optimizer.state.param_states
            if other.kind not in LOOKING:
                continue
            if any(self.facts.groups[obj] is group for obj in other.objects):
                raise Unproven(
                    "the state of its two groups is used at {}", other.location
                )

    def _refuse_shared(self, name: ast.Name) -> None:
        """A variable that goes into the call may be read nowhere else."""
        variable = self.origins.variable(name)
        if variable is None or len(self.origins.loads(variable)) != 1:
            raise Unproven(f"`{name.id}` is used elsewhere, too")

    def _take_away(self, name: ast.Name, mask: Mask) -> None:
        """Take away the statement that sets a variable that nothing needs any more."""
        variable = self.origins.variable(name)
        setting = self.origins.setting(variable)
        if variable is None or setting is None:
            return
        if len(block_of(variable.unit, setting)) > 1:
            mask.edits.take_away(setting, variable.unit)

    def _take_function_away(self, name: ast.Name, mask: Mask) -> None:
        """Take away a function within a function that was the predicate of a group alone."""
        variable = self.origins.variable(name)
        if variable is None or variable.scope.parent is None:
            return
        if self.origins.loads(variable) != [name]:
            return
        setting = self.origins.setting(variable)
        if isinstance(setting, ast.FunctionDef):
            self._take_away(name, mask)


def _texts(arguments: Arguments) -> dict[str, str]:
    """The source texts of arguments."""
    return {name: ast.unparse(value) for name, value in arguments.items()}


def _is_zero(decay: ast.expr | None) -> bool:
    """Whether a weight decay is not given, or given as 0."""
    if decay is None:
        return True
    return isinstance(decay, ast.Constant) and decay.value == 0


IDIOM = Masks
