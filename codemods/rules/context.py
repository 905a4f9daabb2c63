"""What a rule may ask beside its own use: the whole project's uses, seen from one optimizer or definition."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, count, islice

from codemods.analysis.bound import taken_by_classes
from codemods.analysis.complexity import ComplexNumbers
from codemods.analysis.exposure import exposed_classes
from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling
from codemods.analysis.legacy import legacy_name
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
from codemods.optimizers.base import Support
from codemods.optimizers.views import OPTIMIZER_STATE, is_viewable, param_state
from codemods.rules.older_checkpoints import OlderCheckpoints
from codemods.sources.modules import Unit

OBLIVIOUS_PACKAGES = sys.stdlib_module_names | {"builtins", "jax", "flax", "optax", "numpy", "absl"}
"""Whatever their functions do with an optimizer, they do with a train state."""


class Context(Stepping):
    """What a rule may ask: where optimizers take steps, and what becomes of that in each form that spans several uses.

    The forms are found in the order in which they stand here, each with what those before it have found.
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
        """The clippings that join a chain."""
        return Clippings(self, self.schedules, self.masks)

    @cached_property
    def kept(self) -> Kept:
        """What stays around a step."""
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
        """What changes beside the legacy constructs, for the sake of idioms, and what forbids all changes.

        Of several at one place, the last is for all.
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
        things: dict[ast.AST, dict[Thing, None]] = defaultdict(dict)
        for use in uses:
            things[use.node].update(dict.fromkeys(use.things))
        return [
            replace(use, things=tuple(things[node]))
            for node, use in {use.node: use for use in uses}.items()
        ]

    def note(self, use: Use) -> str:
        """Why a use has a general form, as a sentence; empty if there is no other."""
        if use.kind in ("definition", "definition.create") and (kept := self._kept_because(use)):
            is_told = self.options.old_checkpoints and use.kind == "definition.create"
            older = self._older_checkpoints(use) if is_told else ()
            return " ".join([f"Its definition keeps the interface that it had: {kept}", *older])
        if use.kind == "definition" and (why := self.masks.reasons.get(use.node)):
            return f"Its groups differ in weight decay alone, and stay groups: {why}."
        if use.kind == "annotation" and (why := self.own_states.reason(use)):
            return f"The dataclass around it is no train state itself: {why}."
        if use.kind == "definition.create":
            split = self.functional.reason(use.things)
            pieces = (
                [f"This optimizer stays in one piece, as a train state: {split}."] if split else []
            )
            return " ".join(
                [
                    *pieces,
                    *self._older_checkpoints(use),
                    *self._handed_out(use),
                    *self._named_out_of_view(use),
                ]
            )
        if use.kind not in STEPS:
            return ""
        said = []
        if self.given_override(use) is not None and (why := self.schedules.reason(use.things)):
            said.append(f"The learning rate is set before this step, and is no schedule: {why}.")
        if why := self.clippings.reason(use.things):
            said.append(
                f"The gradients are clipped before this step, and not by a link of the chain: {why}."
            )
        return " ".join([*said, *self.kept.reasons(use)])

    def _named_out_of_view(self, created: Use) -> Iterator[str]:
        """That a rate is set by its name in a state whose parameters are given their names out of view, if that is so."""
        made = self.facts.things(created.call, "optimizer") if created.call is not None else []
        is_rated = any(self.overrides.of(step) is not None for step in self.steps(made))
        if (
            is_rated
            and not self.param_names.may_be_rate
            and any(map(self.parameters.come_from_outside, made))
        ):
            yield (
                "Its parameters come from out of view. If one of them is called `learning_rate`, the steps set its moments too: "
                "set `hyperparams` in the state by hand."
            )

    def _kept_because(self, use: Use) -> str:
        return next((why for thing in use.things if (why := self.with_interface.get(thing))), "")

    def _groups(self, things: Iterable[Thing]) -> set[Thing]:
        """The groups in which some things migrate."""
        groups = self.facts.groups
        return {groups[thing] for thing in things if thing in groups}

    def _handed_out(self, created: Use) -> Iterator[str]:
        """What gets the optimizer or its definition and is not in view, if anything is."""
        ours = self._groups(created.things)
        for unit, call in self._unknown_calls:
            given = (
                thing
                for found in values_of(call)
                for thing in self.facts.within(self.facts.flow.places[found])
            )
            if ours & self._groups(
                thing for thing in given if thing.kind in ("optimizer", "definition")
            ):
                yield (
                    f"It is handed to `{unit.source(call.func)}` at {unit.place(call.lineno)}, which is not in view: "
                    "what that reads of an optimizer has to change there too."
                )
                return

    @cached_property
    def _unknown_calls(self) -> list[tuple[Unit, ast.Call]]:
        """The calls of imported functions of which nothing is known, but for those of packages that know no optimizers."""

        def is_unknown(name: str) -> bool:
            return (
                not self.facts.flow.library.function(name)
                and name.partition(".")[0] not in OBLIVIOUS_PACKAGES
            )

        named = (
            (unit, call, self.facts.externals(call.func))
            for unit, call in self.facts.flow.reading.calls
        )
        return [
            (unit, call) for unit, call, names in named if names and all(map(is_unknown, names))
        ]

    def _older_checkpoints(self, created: Use) -> Iterator[str]:
        """What reads a checkpoint from before the migration, if the program restores one."""
        ours = self._groups(created.things)
        notes = (
            self.older_checkpoints.note(use)
            for use in self.older_checkpoints.restored
            if ours & self._groups(use.things)
        )
        yield from islice(filter(None, notes), 1)

    @cached_property
    def exposed(self) -> frozenset[str]:
        """The legacy classes in the place of which no function can stand."""
        taken = (
            legacy_name(item.name) for item in self.taken_by_classes if isinstance(item, External)
        )
        return exposed_classes(self.facts) | {name for name in taken if name is not None}

    @cached_property
    def taken_by_classes(self) -> frozenset[Object]:
        """What becomes a function and must not, as it is an attribute of a class in other ways than by a plain statement."""
        return frozenset(taken_by_classes(self.facts))

    @cached_property
    def viewed(self) -> dict[Thing, str]:
        """The states that are read other than for their step, each with the name of the optimizers that they belong to."""
        names: dict[Thing, set[str]] = defaultdict(set)
        for use in self.facts.uses:
            if use.kind == "optimizer.state" and not _is_asked_for_step(use):
                made = {found.name for found in self.definitions(use)}
                proven = all(thing.evidence == "proven" for thing in use.things)
                sure = proven and all(map(self.facts.legacy.definitions, use.things))
                for state in (
                    self.facts.things(use.node, "state") if isinstance(use.node, ast.expr) else ()
                ):
                    names[state] |= made if sure else {""}
        known = {state: next(iter(found)) for state, found in names.items() if len(found) == 1}
        viewable = {state: name for state, name in known.items() if is_viewable(name)}
        changed = Snapshots(self.facts).changed if viewable else ()
        return {state: name for state, name in viewable.items() if state not in changed}

    @cached_property
    def classes_of_states(self) -> dict[str, Support]:
        """What takes the place of the legacy classes of states, and of what these keep for a parameter."""
        found = {f"_{name}ParamState": param_state(name) for name in self.viewed.values()}
        return found | {"OptimizerState": OPTIMIZER_STATE} if found else {}

    @cached_property
    def states_in(self) -> set[Unit]:
        """The files that take states of optimizers, or make them by hand: each has classes of its own for them."""
        taken = (
            use
            for use in self.facts.uses
            if use.kind == "optimizer.state" and not _is_asked_for_step(use)
        )
        made = (
            use
            for use in self.facts.uses
            if use.kind == "definition" and use.name in self.classes_of_states
        )
        return {use.unit for use in (*taken, *made)}

    @cached_property
    def viewed_together(self) -> tuple[Thing, ...]:
        """The states that are read, if such are made by hand, too: what makes them does not say for whom."""
        names = self.classes_of_states
        uses = (use for use in self.facts.uses if use.kind in ("definition", "annotation", "check"))
        return tuple(self.viewed) if any(use.name in names for use in uses) else ()


def is_path(node: ast.expr) -> bool:
    """Whether evaluating an expression twice is the same as once: names, attributes and constant subscripts."""
    match node:
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return is_path(value)
    return isinstance(node, ast.Name)


def legacy_bases(use: Use, facts: Facts) -> set[str]:
    """The legacy classes from which the class around a use derives."""
    around = class_around(use.unit, use.node)
    if around is None:
        return set()
    ancestry = facts.flow.ancestry(facts.flow.class_of(around))
    return {
        name for item in ancestry if isinstance(item, External) and (name := legacy_name(item.name))
    }


def free_name(unit: Unit, *choices: str) -> str:
    """The first of some names that a file does not use, or of them with numbers."""
    taken = {node.id for node in unit.nodes if isinstance(node, ast.Name)}
    numbered = (f"{choices[0]}_{number}" for number in count(2))
    return next(name for name in chain(choices, numbered) if name not in taken)


def _is_asked_for_step(use: Use) -> bool:
    """Whether a use of the state is `optimizer.state.step` or the like."""
    parent = use.parent
    if isinstance(parent, ast.Subscript) and parent.value is use.node:
        parent = use.unit.parents.get(parent)
    return isinstance(parent, ast.Attribute) and parent.attr == "step"
