"""What a rule may ask beside its own use: all uses of the project, and what becomes of them."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from functools import cached_property
from itertools import chain, count, islice

from codemods.analysis.bound import taken_by_classes
from codemods.analysis.complexity import ComplexNumbers
from codemods.analysis.exposure import exposed_classes
from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling
from codemods.analysis.legacy import LegacyName, Unnamed, legacy_name
from codemods.analysis.param_names import ParamNames
from codemods.analysis.shapes import Parameters
from codemods.analysis.snapshots import Snapshots
from codemods.analysis.stepping import STEPS, Stepping
from codemods.analysis.steps import Steps
from codemods.analysis.taken_for import uses_taken_for_others
from codemods.analysis.uses import Use, class_around
from codemods.flow.binding import values_of
from codemods.flow.objects import External, Object, Thing
from codemods.functional import Functional
from codemods.idioms.clipping import Clippings
from codemods.idioms.kept import Kept
from codemods.idioms.masks import Masks
from codemods.idioms.overrides import Overrides
from codemods.idioms.own_states import OwnStates
from codemods.idioms.schedules import Schedules
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.optimizers.base import Support
from codemods.optimizers.views import OPTIMIZER_STATE, is_viewable, param_state
from codemods.rules.older_checkpoints import OlderCheckpoints
from codemods.sources.modules import Unit

OBLIVIOUS_PACKAGES = sys.stdlib_module_names | {"builtins", "jax", "flax", "optax", "numpy", "absl"}
"""The packages whose functions do with a train state what they do with an optimizer."""


class Context(Stepping):
    """What a rule may ask: where optimizers take steps, and the forms that span several uses.

    The forms are found in the order in which they stand here, each with the results of those before
    it.
    """

    @cached_property
    def schedules(self) -> Schedules:
        """The learning rates that go into the transformation."""
        return Schedules(self)

    @cached_property
    def masks(self) -> Masks:
        """The optimizers of several groups that are one with a mask."""
        return Masks(self, self.schedules)

    @cached_property
    def clippings(self) -> Clippings:
        """The clippings of gradients that become the first link of a chain."""
        return Clippings(self, self.schedules, self.masks)

    @cached_property
    def kept(self) -> Kept:
        """The statements around a step that stay, and why."""
        return Kept(self.origins)

    @cached_property
    def parameters(self) -> Parameters:
        """The shape of what optimizers are created for."""
        return Parameters(self.origins)

    @cached_property
    def param_names(self) -> ParamNames:
        """What the parameters of models may be called."""
        return ParamNames(self.facts, self.parameters)

    @cached_property
    def overrides(self) -> Overrides:
        """The learning rates that are set at steps."""
        return Overrides(self, self.schedules, self.param_names)

    @cached_property
    def own_states(self) -> OwnStates:
        """The dataclasses that become subclasses of `TrainState`."""
        return OwnStates(self, self.overrides, self.clippings, self.parameters)

    @cached_property
    def handling(self) -> Handling:
        """How the program handles optimizers as a whole."""
        return Handling(self, self.overrides.is_fixed)

    @cached_property
    def counted(self) -> Steps:
        """What the program asks of the steps that optimizers count."""
        return Steps(self.handling)

    @cached_property
    def functional(self) -> Functional:
        """The optimizers that become variables for their parts."""
        return Functional(self, self.overrides, self.clippings, self.own_states, self.counted)

    @cached_property
    def older_checkpoints(self) -> OlderCheckpoints:
        """The calls that load checkpoints from before the migration too."""
        return OlderCheckpoints(self, self.functional)

    @cached_property
    def more_uses(self) -> list[Use]:
        """What changes beside the legacy constructs because of idioms, and what forbids changes.

        Of several uses at one node, the last stands for all, with the things of all.
        """
        uses = [
            *self.schedules.uses(),
            *self.masks.uses(),
            *self.clippings.uses(),
            *self.own_states.uses(),
            *self.older_checkpoints.uses(),
        ]
        uses += [*self.functional.uses(), *self.handling.uses(), *ComplexNumbers(self.facts).uses()]
        uses += uses_taken_for_others(self.facts)
        # a dict without values keeps its order, as a set does not: the output depends on it
        things: dict[ast.AST, dict[Thing, None]] = defaultdict(dict)
        for use in uses:
            things[use.node].update(dict.fromkeys(use.things))
        last = {use.node: use for use in uses}
        return [replace(use, things=tuple(things[node])) for node, use in last.items()]

    def notes(self, use: Use) -> Iterator[Prose]:
        """Why a use has a general form, in sentences; none if there is no other."""
        if use.kind in ("definition", "definition.create"):
            kept = self._kept_because(use)
            if kept is not None:
                yield message("Its definition keeps the interface that it had: {}", kept)
                if self.options.old_checkpoints and use.kind == "definition.create":
                    yield from self._older_checkpoints(use)
                return
        match use.kind:
            case "definition":
                if why := self.masks.reasons.get(use.node):
                    yield message(
                        "Its groups differ in weight decay alone, and stay groups: {}.", why
                    )
            case "annotation":
                if why := self.own_states.reason(use):
                    yield message("The dataclass around it is no train state itself: {}.", why)
            case "definition.create":
                yield from self._notes_on_creation(use)
            case kind if kind in STEPS:
                yield from self._notes_on_step(use)

    def _notes_on_creation(self, use: Use) -> Iterator[Prose]:
        """What may have to change out of view for an optimizer, and why it is a train state."""
        if why := self.functional.reason(use.things):
            yield message("This optimizer stays in one piece, as a train state: {}.", why)
        yield from self._older_checkpoints(use)
        yield from self._handed_out(use)
        yield from self._named_out_of_view(use)

    def _notes_on_step(self, use: Use) -> Iterator[Prose]:
        """Why statements around a step stay that might have gone into the transformation."""
        if self.given_override(use) is not None and (why := self.schedules.reason(use.things)):
            yield message("The learning rate is set before this step, and is no schedule: {}.", why)
        if why := self.clippings.reason(use.things):
            yield message(
                "The gradients are clipped before this step, and not by a link of the chain: {}.",
                why,
            )
        yield from self.kept.reasons(use)

    def _named_out_of_view(self, created: Use) -> Iterator[str]:
        """That steps set a rate by its name, though parameters get their names out of view."""
        # jax.jit(definition.create)(params) has no call of its own
        made = self.facts.things(created.call, "optimizer") if created.call is not None else []
        sets_rate = any(self.overrides.of(step) is not None for step in self.steps(made))
        if not sets_rate or self.param_names.may_be_rate:
            return
        if any(map(self.parameters.come_from_outside, made)):
            yield (
                "Its parameters come from out of view. If one of them is called `learning_rate`, "
                "the steps set its moments too: set `hyperparams` in the state by hand."
            )

    def _kept_because(self, use: Use) -> Message | None:
        """Why a definition keeps its interface; None if it does not."""
        reasons = map(self.with_interface.get, use.things)
        return next(filter(None, reasons), None)

    def _groups(self, things: Iterable[Thing]) -> set[Thing]:
        """The groups, each of which migrates as a whole, to which some things belong."""
        groups = self.facts.groups
        return {groups[thing] for thing in things if thing in groups}

    def _handed_out(self, created: Use) -> Iterator[Prose]:
        """The first function out of view that gets the optimizer or its definition, if any does."""
        ours = self._groups(created.things)
        # evaluate(optimizer, model), from a package that is not read
        for unit, call in self._unknown_calls:
            if ours & self._groups(self._legacy_within(call)):
                yield message(
                    "It is handed to `{}` at {}, which is not in view: what that reads of an "
                    "optimizer has to change there too.",
                    unit.source(call.func),
                    unit.location(call.lineno),
                )
                return

    def _legacy_within(self, call: ast.Call) -> Iterator[Thing]:
        """The optimizers and definitions that a call is given, also in containers."""
        for value in values_of(call):
            for thing in self.facts.within(self.facts.flow.places[value]):
                if thing.kind in ("optimizer", "definition"):
                    yield thing

    @cached_property
    def _unknown_calls(self) -> list[tuple[Unit, ast.Call]]:
        """The calls of functions of which nothing is known, and which may know optimizers."""
        found: list[tuple[Unit, ast.Call]] = []
        for unit, call in self.facts.flow.reading.calls:
            names = self.facts.externals(call.func)
            if names and all(map(self._is_unknown, names)):
                found.append((unit, call))
        return found

    def _is_unknown(self, name: str) -> bool:
        if self.facts.flow.library.function(name):
            return False
        return name.partition(".")[0] not in OBLIVIOUS_PACKAGES

    def _older_checkpoints(self, created: Use) -> Iterator[Prose]:
        """What reads a checkpoint from before the migration, if the program restores one."""
        ours = self._groups(created.things)
        notes = (
            self.older_checkpoints.note(use)
            for use in self.older_checkpoints.restored
            if ours & self._groups(use.things)
        )
        yield from islice(filter(None, notes), 1)

    @cached_property
    def exposed(self) -> frozenset[LegacyName]:
        """The legacy classes that no function can replace."""
        taken = (
            legacy_name(item.name) for item in self.taken_by_classes if isinstance(item, External)
        )
        return exposed_classes(self.facts) | {name for name in taken if name is not None}

    @cached_property
    def taken_by_classes(self) -> frozenset[Object]:
        """What a class gets as an attribute through a variable: a function would be a method."""
        return frozenset(taken_by_classes(self.facts))

    @cached_property
    def viewed(self) -> dict[Thing, str]:
        """The states that are read for more than the step, with the name of their optimizers."""
        names: dict[Thing, set[str | Enum | None]] = defaultdict(set)
        for use in self._reads_of_states():
            made = {found.made_by for found in self.definitions(use)}
            proven = all(thing.evidence == "proven" for thing in use.things)
            sure = proven and all(map(self.facts.legacy.definitions, use.things))
            node = use.node
            states = self.facts.things(node, "state") if isinstance(node, ast.expr) else []
            # optimizers of several classes, or of unknown ones, have no name in common
            for state in states:
                names[state] |= made if sure else {None}
        known = {state: next(iter(found)) for state, found in names.items() if len(found) == 1}
        viewable = {
            state: name
            for state, name in known.items()
            if isinstance(name, str) and is_viewable(name)
        }
        # what is changed in place is lost if the state is made anew at each read
        changed = Snapshots(self.facts).changed if viewable else ()
        return {state: name for state, name in viewable.items() if state not in changed}

    def _reads_of_states(self) -> Iterator[Use]:
        """Where the state of an optimizer is read for more than its step."""
        for use in self.facts.uses:
            if use.kind == "optimizer.state" and not _is_asked_for_step(use):
                yield use

    @cached_property
    def classes_of_states(self) -> dict[str, Support]:
        """The counterparts of `OptimizerState` and of what that has for each parameter, by name."""
        found = {f"_{name}ParamState": param_state(name) for name in self.viewed.values()}
        return found | {"OptimizerState": OPTIMIZER_STATE} if found else {}

    @cached_property
    def states_in(self) -> set[Unit]:
        """The files that read or make states, each of which has classes of its own for them."""
        found = {use.unit for use in self._reads_of_states()}
        for use in self.facts.uses:
            # OptimizerState(step, param_states)
            if use.kind == "definition" and use.name in self.classes_of_states:
                found.add(use.unit)
        return found

    @cached_property
    def viewed_together(self) -> tuple[Thing, ...]:
        """The states that are read, if the program makes some itself: it may make any of these."""
        names = self.classes_of_states
        uses = (use for use in self.facts.uses if use.kind in ("definition", "annotation", "check"))
        return tuple(self.viewed) if any(use.name in names for use in uses) else ()


def is_path(node: ast.expr) -> bool:
    """Whether an expression has only names, attributes and constant subscripts.

    Then evaluating it twice is the same as evaluating it once.
    """
    match node:
        # state.optimizers["generator"]
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return is_path(value)
    return isinstance(node, ast.Name)


def legacy_bases(use: Use, facts: Facts) -> set[LegacyName]:
    """The legacy classes from which the class around a use derives."""
    around = class_around(use.unit, use.node)
    if around is None:
        return set()
    ancestry = facts.flow.ancestry(facts.flow.class_of(around))
    names = (legacy_name(item.name) for item in ancestry if isinstance(item, External))
    return {name for name in names if name not in (None, Unnamed.MODULE)}


def free_name(unit: Unit, *choices: str) -> str:
    """The first of some names that a file does not use, or of them with numbers."""
    taken = {node.id for node in unit.nodes if isinstance(node, ast.Name)}
    numbered = (f"{choices[0]}_{number}" for number in count(2))
    return next(name for name in chain(choices, numbered) if name not in taken)


def _is_asked_for_step(use: Use) -> bool:
    """Whether a use of the state is `optimizer.state.step` or `optimizer.state[0].step`."""
    parent = use.parent
    # not states[optimizer.state].step
    if isinstance(parent, ast.Subscript) and parent.value is use.node:
        parent = use.unit.parents.get(parent)
    return isinstance(parent, ast.Attribute) and parent.attr == "step"
