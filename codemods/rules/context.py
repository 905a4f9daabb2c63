"""What a rule may ask beside its own use: the whole project's uses, seen from one optimizer or definition."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, count
from types import MappingProxyType

from codemods.bound import taken_by_classes
from codemods.complexity import ComplexNumbers
from codemods.dataflow.binding import Bound, arguments_of, bind, is_unpacked, values_of
from codemods.exposure import exposed_classes
from codemods.facts import Facts, unify
from codemods.flow.modules import Unit
from codemods.flow.objects import Container, External, Function, Method, Object, Partial, Thing
from codemods.functional import Functional
from codemods.handling import Handling
from codemods.idioms import Unproven
from codemods.idioms.clipping import Clippings
from codemods.idioms.kept import Kept
from codemods.idioms.masks import Masks
from codemods.idioms.order import Edits
from codemods.idioms.own_states import OwnStates
from codemods.idioms.schedules import Schedules
from codemods.legacy import legacy_name
from codemods.model import Options
from codemods.optimizers.base import Support
from codemods.optimizers.methods import BARE_STEP, REPLICATE, STEP
from codemods.optimizers.views import OPTIMIZER_STATE, VIEWABLE, param_state
from codemods.origins import Origins
from codemods.param_names import ParamNames
from codemods.shapes import Parameters
from codemods.snapshots import Snapshots
from codemods.steps import Steps
from codemods.taken_for import uses_taken_for_others
from codemods.uses import Use, class_around

OVERRIDES = ("learning_rate", "hyper_params")
STEPS = ("optimizer.apply_gradient", "optimizer.optimize")
OBLIVIOUS_PACKAGES = sys.stdlib_module_names | {"builtins", "jax", "flax", "optax", "numpy", "absl"}
"""Whatever their functions do with an optimizer, they do with a train state."""


class Context:
    """The facts, and the uses of the project by the things that meet at them.

    In the files of `plain`, no idioms are tried; nor for the things of `kept`, whose definitions keep their interface: for each,
    the reason.
    """

    def __init__(
        self,
        facts: Facts,
        options: Options | None = None,
        plain: Collection[Unit] = (),
        kept: Mapping[Thing, str] = MappingProxyType({}),
    ) -> None:
        self.facts = facts
        self.options = options or Options()
        self.plain = plain
        self.with_interface = kept
        self.origins = Origins(facts)

    schedules = cached_property(Schedules)
    """The learning rates that go into the transformation."""

    masks = cached_property(Masks)
    """The optimizers of several groups that are one with a mask."""

    clippings = cached_property(Clippings)
    """The clippings that join a chain."""

    kept = cached_property(Kept)
    """What stays around a step."""

    own_states = cached_property(OwnStates)
    """The dataclasses that become subclasses of `TrainState`."""

    functional = cached_property(Functional)
    """The optimizers that become variables for their parts."""

    parameters = cached_property(Parameters)
    """The shape of what optimizers are created for."""

    param_names = cached_property(ParamNames)
    """What the parameters of models may be called."""

    handling = cached_property(Handling)
    """How the program handles optimizers as a whole."""

    counted = cached_property(Steps)
    """What the program asks of the steps that optimizers count."""

    @cached_property
    def _steps(self) -> dict[Thing, list[Use]]:
        steps: dict[Thing, list[Use]] = defaultdict(list)
        for use in (one for one in self.facts.uses if one.kind in STEPS):
            for thing in use.things:
                steps[thing].append(use)
        return steps

    def override(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` that a step gives, unless it becomes a schedule in the transformation."""
        return None if self.schedules.of(use.things) else self.given_override(use)

    def keeps_rate(self, use: Use) -> bool:
        """Whether a step keeps the rate that the constructor was given, where another step of such an optimizer sets one."""
        is_bare = self.given_override(use) is None and not self.schedules.of(use.things)
        return is_bare and not self.overridden.isdisjoint(self.definitions(use))

    def given_override(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` of a step, or the `**overrides` in which nothing but a learning rate may be."""
        words = use.call.keywords if use.call is not None else ()
        named = next((word for word in words if word.arg in OVERRIDES), None)
        return named or next((word for word in words if word.arg is None and self._holds_rate(word.value)), None)

    def _holds_rate(self, overrides: ast.expr) -> bool:
        """Whether all that a dict may be is in view, and has a learning rate if anything."""
        flow = self.facts.flow
        if not all(flow.solver.at(root) for root in flow.derivation.roots.of(flow.places[overrides])):
            return False  # something comes there of which nothing is known
        items = [*self.facts.objects(overrides)]
        dicts = [item for item in items if isinstance(item, Container) and self._is_filled_in_view(item)]
        if not all(self._only_unpacks(node) for item in dicts for node in self.facts.holders.get(item, ())):
            return False
        keys = {key for item in dicts for key in self.facts.flow.keys_of(item)}
        return len(dicts) == len(items) and keys == {"learning_rate"}

    def _is_filled_in_view(self, container: Container) -> bool:
        """Whether a dict is written out, or takes what calls in view of a function give by name."""
        match container.node:
            case ast.Dict(keys=keys):
                return None not in keys
            case ast.Call(args=[], keywords=words):
                return container.role == "dict" and all(word.arg is not None for word in words)
            case ast.arg() as parameter:
                functions = self.facts.flow.reading.functions
                function = next((one for one in functions if one.node.args.kwarg is parameter), None)
                if function is None or function in self.handling.world.outermost:
                    return False
                return not any(site.unpacked for site, _ in self.origins.calls(function.node))
        return False

    def _only_unpacks(self, node: ast.expr) -> bool:
        """Whether a dict is not changed where it is met: it is unpacked there, read or handed on."""
        unit = self.facts.scope(node).unit
        match unit.parents.get(node):
            case ast.keyword(arg=None) | ast.Assign() | ast.IfExp() | ast.Return() | ast.Compare():
                return True
            case ast.Subscript(ctx=ast.Load()) as item:
                return item.value is node
            case ast.Call(func=function) if function is not node:
                called = [*self.facts.objects(function)]
                return bool(called) and all(isinstance(item, Function | Method | Partial) for item in called)
        return isinstance(getattr(node, "ctx", None), ast.Store)

    @cached_property
    def more_uses(self) -> list[Use]:
        """What changes beside the legacy constructs, for the sake of idioms, and what forbids all changes.

        Of several at one place, the last is for all.
        """
        uses = [*self.schedules.uses(), *self.masks.uses(), *self.clippings.uses(), *self.own_states.uses()]
        uses += [*self.functional.uses(), *self.handling.uses(), *ComplexNumbers(self.facts).uses()]
        uses += uses_taken_for_others(self.facts)
        things: dict[ast.AST, dict[Thing, None]] = defaultdict(dict)
        for use in uses:
            things[use.node].update(dict.fromkeys(use.things))
        return [replace(use, things=tuple(things[node])) for node, use in {use.node: use for use in uses}.items()]

    def edits_beside(self, members: Iterable[Thing]) -> Edits:
        """What schedules and masks change for the sake of a group."""
        found = self.schedules.edits_of(members)
        for mask in self.masks.within(members):
            found.update(mask.edits)
        return found

    def refuse_plain(self, edits: Edits, places: Iterable[Use | Thing]) -> None:
        """See to it that an idiom changes nothing in a file of `plain`.

        Raises:
          Unproven: if it does.
        """
        places = list(places)
        units = {unit for unit, _ in edits.values()} | {place.unit for place in places}
        if not units.isdisjoint(self.plain):
            raise Unproven("the file could not be rewritten in this form")
        if any(map(self.keeps_interface, places)):
            raise Unproven("its definition keeps its interface")

    def keeps_interface(self, place: Use | Thing) -> bool:
        """Whether a thing, or any at a use, keeps the interface of its definition.

        A use of no thing does if anything of its program does.
        """
        things = (place,) if isinstance(place, Thing) else place.things
        if any(thing in self.with_interface for thing in things):
            return True
        if not self.with_interface or isinstance(place, Thing):
            return False
        program = self.facts.together(place.unit)
        if not things:
            return any(thing.unit.path in program for thing in self.with_interface)
        if not place.kind.startswith("state.") or any(thing.evidence == "proven" for thing in things):
            return False
        made = {thing for thing in self.facts.groups if thing.kind == "optimizer" and thing.unit.path in program}
        return made <= self.with_interface.keys() or self._is_within_kept(place.owner)

    def _is_within_kept(self, node: ast.expr) -> bool:
        """Whether something is read from a state of what keeps its interface, as in `optimizer.state.inner`."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
            if any(thing in self.with_interface for thing in self.facts.things(node, "state")):
                return True
        return False

    def note(self, use: Use) -> str:
        """Why a use has a general form, as a sentence; empty if there is no other."""
        if use.kind in ("definition", "definition.create") and (kept := self._kept_because(use)):
            return f"Its definition keeps the interface that it had: {kept}"
        if use.kind == "definition" and (why := self.masks.reasons.get(use.node)):
            return f"Its groups differ in weight decay alone, and stay groups: {why}."
        if use.kind == "annotation" and (why := self.own_states.reason(use)):
            return f"The dataclass around it is no train state itself: {why}."
        if use.kind == "definition.create":
            split = self.functional.reason(use.things)
            pieces = [f"This optimizer stays in one piece, as a train state: {split}."] if split else []
            return " ".join(
                [*pieces, *self._older_checkpoints(use), *self._handed_out(use), *self._named_out_of_view(use)]
            )
        if use.kind not in STEPS:
            return ""
        said = []
        if self.given_override(use) is not None and (why := self.schedules.reason(use.things)):
            said.append(f"The learning rate is set before this step, and is no schedule: {why}.")
        if why := self.clippings.reason(use.things):
            said.append(f"The gradients are clipped before this step, and not by a link of the chain: {why}.")
        return " ".join([*said, *self.kept.reasons(use)])

    def _named_out_of_view(self, created: Use) -> Iterator[str]:
        """That a rate is set by its name in a state whose parameters are given their names out of view, if that is so."""
        made = self.facts.things(created.call, "optimizer") if created.call is not None else []
        is_rated = any(self.override(step) is not None for step in self.steps(made))
        if is_rated and not self.param_names.may_be_rate and any(map(self.parameters.come_from_outside, made)):
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
            given = (thing for found in values_of(call) for thing in self.facts.within(self.facts.flow.places[found]))
            if ours & self._groups(thing for thing in given if thing.kind in ("optimizer", "definition")):
                yield (
                    f"It is handed to `{unit.source(call.func)}` at {unit.place(call.lineno)}, which is not in view: "
                    "what that reads of an optimizer has to change there too."
                )
                return

    @cached_property
    def _unknown_calls(self) -> list[tuple[Unit, ast.Call]]:
        """The calls of imported functions of which nothing is known, but for those of packages that know no optimizers."""

        def is_unknown(name: str) -> bool:
            return not self.facts.flow.library.function(name) and name.partition(".")[0] not in OBLIVIOUS_PACKAGES

        named = ((unit, call, self.facts.externals(call.func)) for unit, call in self.facts.flow.reading.calls)
        return [(unit, call) for unit, call, names in named if names and all(map(is_unknown, names))]

    def _older_checkpoints(self, created: Use) -> Iterator[str]:
        """What reads a checkpoint from before the migration, if the program restores one."""
        ours = self._groups(created.things)
        for use in self.facts.uses:
            if use.kind == "restored" and ours & self._groups(use.things):
                yield (
                    f"It is restored at {use.where}, where a checkpoint from before the migration does not "
                    "load: `optim2optax checkpoint convert` writes it anew, and "
                    "`optim2optax.checkpoints.loading.load_legacy_checkpoint(path, state)` loads it."
                )
                return

    @cached_property
    def all_steps(self) -> list[Use]:
        """Where any optimizer takes a step."""
        return list(dict.fromkeys(use for uses in self._steps.values() for use in uses))

    @cached_property
    def stepped_groups(self) -> list[tuple[list[Thing], list[Use]]]:
        """Things that migrate together, and where the optimizers among them take a step."""
        steps: dict[Thing, list[Use]] = defaultdict(list)
        for use in self.all_steps:
            steps[self.facts.groups[use.things[0]]].append(use)
        return [(self.facts.members[group], found) for group, found in steps.items()]

    def gradients(self, use: Use) -> ast.expr | None:
        """What a step is given as gradients, if that is an argument of its own."""
        call = use.call if use.kind == "optimizer.apply_gradient" else None
        return (arguments_of(STEP, call) or {}).get("grads") if call is not None else None

    @cached_property
    def constructors(self) -> frozenset[ast.AST]:
        """The calls that make definitions by the name of their class."""
        calls = (use.node for use in self.facts.uses if use.kind == "definition")
        return frozenset(call for call in calls if isinstance(call, ast.Call) and not is_unpacked(call))

    def steps(self, optimizers: Iterable[Thing]) -> list[Use]:
        """Where these optimizers take a step."""
        return list(dict.fromkeys(use for thing in optimizers for use in self._steps[thing]))

    def definitions(self, use: Use) -> list[Thing]:
        """The definitions from which the optimizers at a use were made."""
        return list(dict.fromkeys(found for thing in use.things for found in self.facts.legacy.definitions(thing)))

    def optimizers_of(self, definition: Thing) -> list[Thing]:
        """The optimizers that were made from a definition, directly or as a part of another."""
        return [thing for thing in self._steps if definition in self.facts.legacy.definitions(thing)]

    def companions(self, optimizers: Iterable[Thing]) -> list[Thing]:
        """Optimizers, and all others that reach a place which one of them, or another companion, reaches."""
        found = dict.fromkeys(optimizers)
        groups = {self._meeting.get(thing) for thing in found}
        return list({**found, **{thing: None for thing, group in self._meeting.items() if group in groups}})

    @cached_property
    def _meeting(self) -> dict[Thing, Thing]:
        return unify(use.things for use in self.facts.uses if use.kind.startswith("optimizer."))

    @cached_property
    def _axes(self) -> dict[Thing, set[str | None]]:
        """The axes over which optimizers average their gradients since `Optimizer.replicate()`; None: not plain to see."""
        axes: dict[Thing, set[str | None]] = defaultdict(set)
        for use in self.facts.uses:
            found = bind(REPLICATE, use.call) if use.kind == "optimizer.replicate" and use.call is not None else None
            match found.complete["axis_name"] if isinstance(found, Bound) and not found.unpacked else None:
                case ast.Constant(value=str() as name):
                    axis: str | None = name
                case _:
                    axis = None
            for thing in use.things if found is not None else ():
                axes[thing].add(axis)
        return axes

    def replicated(self, optimizers: Iterable[Thing]) -> list[Use]:
        """Where optimizers are replicated by their own method."""
        found = {*optimizers}
        return [
            use for use in self.facts.uses if use.kind == "optimizer.replicate" and not found.isdisjoint(use.things)
        ]

    def axes(self, optimizers: Iterable[Thing]) -> set[str | None]:
        """The axes over which the gradients of some optimizers are averaged since `Optimizer.replicate()`.

        Empty if none does that. Among several, None stands for one that is not plain to see, or for no averaging.
        """
        found = list(optimizers)
        if self._axes.keys().isdisjoint(found):
            return set()
        return {axis for thing in found for axis in self._axes.get(thing, {None})}

    @cached_property
    def exposed(self) -> frozenset[str]:
        """The legacy classes in the place of which no function can stand."""
        taken = (legacy_name(item.name) for item in self.taken_by_classes if isinstance(item, External))
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
                for state in self.facts.things(use.node, "state") if isinstance(use.node, ast.expr) else ():
                    names[state] |= made if sure else {""}
        known = {state: next(iter(found)) for state, found in names.items() if len(found) == 1}
        viewable = {state: name for state, name in known.items() if name in VIEWABLE}
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
        taken = (use for use in self.facts.uses if use.kind == "optimizer.state" and not _is_asked_for_step(use))
        made = (use for use in self.facts.uses if use.kind == "definition" and use.name in self.classes_of_states)
        return {use.unit for use in (*taken, *made)}

    @cached_property
    def viewed_together(self) -> tuple[Thing, ...]:
        """The states that are read, if such are made by hand, too: what makes them does not say for whom."""
        names = self.classes_of_states
        uses = (use for use in self.facts.uses if use.kind in ("definition", "annotation", "check"))
        return tuple(self.viewed) if any(use.name in names for use in uses) else ()

    @cached_property
    def injected(self) -> frozenset[Thing]:
        """The definitions whose learning rate is in the state, because a step sets it or something reads it there."""
        read = (use for use in self.facts.uses if use.kind == "definition.hyper_params" and rate_read(use) is not None)
        return self.overridden | {thing for use in read for thing in use.things}

    @cached_property
    def overridden(self) -> frozenset[Thing]:
        """The definitions whose learning rate is set at a step."""
        overriding = (use for use in self.all_steps if self.override(use) is not None)
        bare = [use for use in self.facts.uses if use.kind == "definition.apply_gradient"]
        rated = (use for use in bare if (given := bare_step(use.call)) and new_rate(given["hyper_params"]) is not None)
        definitions = {definition for use in overriding for definition in self.definitions(use)}
        return frozenset(definitions | {thing for use in rated for thing in use.things})


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
    return {name for item in ancestry if isinstance(item, External) and (name := legacy_name(item.name))}


def free_name(unit: Unit, *choices: str) -> str:
    """The first of some names that a file does not use, or of them with numbers."""
    taken = {node.id for node in unit.nodes if isinstance(node, ast.Name)}
    numbered = (f"{choices[0]}_{number}" for number in count(2))
    return next(name for name in chain(choices, numbered) if name not in taken)


def new_rate(node: ast.expr) -> ast.expr | None:
    """The rate in `x.replace(learning_rate=rate)` or `x.update_hyper_params(learning_rate=rate)`."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="replace" | "update_hyper_params"),
            args=[],
            keywords=[ast.keyword(arg="learning_rate", value=rate)],
        ):
            return rate
    return None


def bare_step(call: ast.Call | None) -> dict[str, ast.expr] | None:
    """The arguments of a step that a definition takes without an optimizer, by name."""
    return None if call is None else arguments_of(BARE_STEP, call)


def rate_read(use: Use) -> ast.Attribute | None:
    """The whole of `optimizer.optimizer_def.hyper_params.learning_rate`, if this is its `hyper_params`."""
    match use.owner, use.parent:
        case ast.Attribute(attr="optimizer_def"), ast.Attribute(attr="learning_rate", ctx=ast.Load()) as whole:
            return whole
    return None


def _is_asked_for_step(use: Use) -> bool:
    """Whether a use of the state is `optimizer.state.step` or the like."""
    parent = use.parent
    if isinstance(parent, ast.Subscript) and parent.value is use.node:
        parent = use.unit.parents.get(parent)
    return isinstance(parent, ast.Attribute) and parent.attr == "step"
