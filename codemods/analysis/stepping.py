"""Where the optimizers of a project take steps, and what they were made from."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType

from codemods.analysis.facts import Facts, unify
from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.origins import Origins
from codemods.analysis.param_names import ParamNames
from codemods.analysis.uses import Use
from codemods.inference.binding import Bound, arguments_of, bind, is_unpacked
from codemods.inference.objects import (
    Container,
    Function,
    LegacyObject,
    Method,
    Partial,
)
from codemods.model import Message, Options
from codemods.optimizers.methods import REPLICATE, STEP
from codemods.sources.modules import Unit

StepsByObject = dict[LegacyObject, list[Use]]
Axes = set[str | None]
DECAY = "weight_decay"
OVERRIDES = ("learning_rate", "hyper_params")
STEPS = ("optimizer.apply_gradient", "optimizer.optimize")


class Stepping:
    """The facts, and the steps of the project by the optimizers that take them.

    No idioms are tried for the objects of `with_interface`, whose definitions keep their interface,
    each for a reason.
    """

    def __init__(
        self,
        facts: Facts,
        options: Options | None = None,
        with_interface: Mapping[LegacyObject, Message] = MappingProxyType({}),
    ) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.options = options or Options()
        self.with_interface = with_interface
        self.origins = facts.of(Origins)

    @cached_property
    def param_names(self) -> ParamNames:
        """What the parameters of models may be called."""
        return self.facts.of(ParamNames)

    @cached_property
    def _steps(self) -> StepsByObject:
        steps: StepsByObject = defaultdict(list)
        for use in self.facts.uses:
            if use.kind in STEPS:
                for obj in use.objects:
                    steps[obj].append(use)
        return steps

    def given_override(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` of a step.

        Also the `**overrides` of one, if they can only have a learning rate.
        """
        words = use.call.keywords if use.call is not None else []
        # optimizer.apply_gradient(grads, learning_rate=rate)
        named = [word for word in words if word.arg in OVERRIDES]
        # optimizer.apply_gradient(grads, **overrides)
        several = (
            word
            for word in words
            if word.arg is None and self.keys_of(word.value) == {"learning_rate"}
        )
        return next(iter(named), None) or next(several, None)

    def given_decay(self, use: Use) -> ast.keyword | None:
        """The `weight_decay=` of a step."""
        words = use.call.keywords if use.call is not None else []
        return next((word for word in words if word.arg == DECAY), None)

    def sets_decay(self, use: Use) -> bool:
        """Whether a step sets a weight decay that is a number in the state."""
        definitions = self.definitions(use)
        return bool(definitions) and self.decay_is_set.issuperset(definitions)

    @cached_property
    def decay_is_set(self) -> frozenset[LegacyObject]:
        """The definitions of which each step sets the weight decay, whatever they were made with.

        Their classes have one in a link of its own, and are called by their names.
        """
        found: set[LegacyObject] = set()
        for members, steps in self.stepped_groups:
            if not all(map(self.given_decay, steps)):
                continue
            definitions = [obj for obj in members if obj.kind == "definition"]
            if all(map(self._has_decay, definitions)):
                found.update(definitions)
        return frozenset(found)

    def _has_decay(self, definition: LegacyObject) -> bool:
        kind = legacy_optimizer(definition)
        if kind is None or definition.node not in self.constructors:
            return False
        return kind.adds_decay or definition.made_by == "MultiOptimizer"

    def empty_overrides(self, call: ast.Call) -> list[ast.keyword]:
        """The `**overrides` of a step in which no call in view puts anything."""
        words = (word for word in call.keywords if word.arg is None)
        return [word for word in words if self.keys_of(word.value) == set()]

    def keys_of(self, overrides: ast.expr) -> set[object] | None:
        """The keys of the dicts that an expression can be; None if that is not all in view."""
        items = self.facts.objects(overrides)
        if not items or self.flow.may_be_unknown(self.flow.places[overrides]):
            return None
        keys: set[object] = set()
        for item in items:
            if not isinstance(item, Container) or not self._is_filled_in_view(item):
                return None
            if not all(map(self._only_unpacks, self.facts.holders(item))):
                return None
            keys.update(self.flow.keys_of(item), _constants_in(item))
        return keys

    def _is_filled_in_view(self, container: Container) -> bool:
        """Whether all keys of a dict are in view."""
        match container.node:
            # {"learning_rate": rate}
            case ast.Dict(keys=keys):
                return None not in keys
            # dict(learning_rate=rate)
            case ast.Call(args=[], keywords=words) if container.role == "dict":
                return all(word.arg is not None for word in words)
            # def step(optimizer, **overrides)
            case ast.arg() as parameter:
                function = self.flow.engine.function_with(parameter).node
                calls = self.origins.calls(function)
                return bool(calls) and not any(site.unpacked for site, _ in calls)
        return False

    def _only_unpacks(self, node: ast.expr) -> bool:
        """Whether a dict is not changed at an expression: it is unpacked, read or handed on."""
        unit = self.facts.scope(node).unit
        match unit.parents.get(node):
            case (
                ast.keyword(arg=None)
                | ast.Assign()
                | ast.IfExp()
                | ast.Return()
                | ast.Compare()
            ):
                return True
            case ast.Subscript(ctx=ast.Load()) as item:
                return item.value is node
            # step(optimizer, overrides)
            case ast.Call(func=function) if function is not node:
                called = [*self.facts.objects(function)]
                kinds = (Function, Method, Partial)
                return bool(called) and all(isinstance(item, kinds) for item in called)
        return isinstance(getattr(node, "ctx", None), ast.Store)

    def keeps_interface(self, place: Use | LegacyObject) -> bool:
        """Whether an object, or any at a use, keeps the interface of its definition.

        A use of no object does if anything of its program does.
        """
        kept = self.with_interface
        if isinstance(place, LegacyObject) or not kept.keys().isdisjoint(place.objects):
            return isinstance(place, Use) or place in kept
        if not kept:
            return False
        program = self.facts.together(place.unit)
        if not place.objects:
            return any(obj.unit.path in program for obj in kept)
        is_proven = any(obj.evidence == "proven" for obj in place.objects)
        if is_proven or not place.kind.startswith("state."):
            return False
        # a state of unknown origin: `state.param_states`
        optimizers = {
            obj
            for obj in self.facts.groups
            if obj.kind == "optimizer" and obj.unit.path in program
        }
        if optimizers <= kept.keys():
            return True
        # optimizer.state.inner, of a state that keeps it
        node = place.owner
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
            if not kept.keys().isdisjoint(self.facts.legacy_objects(node, "state")):
                return True
        return False

    @cached_property
    def all_steps(self) -> list[Use]:
        """The places where any optimizer takes a step."""
        return self.steps(self._steps)

    @cached_property
    def stepped_groups(self) -> list[tuple[list[LegacyObject], list[Use]]]:
        """Objects that migrate together, and where the optimizers among them take a step."""
        steps: StepsByObject = defaultdict(list)
        for use in self.all_steps:
            # All objects at a use are of one group.
            steps[self.facts.groups[use.objects[0]]].append(use)
        return [(self.facts.members[group], uses) for group, uses in steps.items()]

    def gradients(self, use: Use) -> ast.expr | None:
        """The gradients of a step, if they are an argument of their own."""
        if use.kind != "optimizer.apply_gradient" or use.call is None:
            return None
        arguments = arguments_of(STEP, use.call) or {}
        return arguments.get("grads")

    @cached_property
    def constructors(self) -> frozenset[ast.AST]:
        """The calls that make definitions by the name of their class."""
        return frozenset(
            use.node
            for use in self.facts.uses
            if use.kind == "definition" and isinstance(use.node, ast.Call)
            # optim.Adam(**config) has arguments that are not known.
            if not is_unpacked(use.node)
        )

    def steps(self, optimizers: Iterable[LegacyObject]) -> list[Use]:
        """The places where these optimizers take a step."""
        steps = (use for obj in optimizers for use in self._steps.get(obj, ()))
        return list(dict.fromkeys(steps))

    def definitions(self, use: Use) -> list[LegacyObject]:
        """The definitions from which the optimizers at a use were made."""
        made_of = map(self.facts.legacy.definitions, use.objects)
        return list(dict.fromkeys(chain.from_iterable(made_of)))

    def optimizers_of(self, definition: LegacyObject) -> list[LegacyObject]:
        """The optimizers that were made from a definition, directly or as a part of another."""
        definitions_of = self.facts.legacy.definitions
        return [obj for obj in self._steps if definition in definitions_of(obj)]

    def companions(self, optimizers: Iterable[LegacyObject]) -> list[LegacyObject]:
        """Optimizers, and all that meet one of them, or another companion, at a use."""
        found = dict.fromkeys(optimizers)
        groups = {self._meeting.get(obj) for obj in found}
        for obj, group in self._meeting.items():
            if group in groups:
                found[obj] = None
        return list(found)

    @cached_property
    def exchanging(self) -> list[tuple[LegacyObject, LegacyObject]]:
        """Pairs of optimizers: one that is restored and never stored, and one that is stored.

        They have a class in common, and their files belong to one program or stand in one folder:
        what the second stores may be what the first restores.
        """
        filled = {use.node for use in self.facts.uses if use.kind == "restored"}
        restored: dict[LegacyObject, None] = {}
        stored: dict[LegacyObject, None] = {}
        for use in self.facts.uses:
            if use.kind in ("stored", "restored"):
                around = islice(use.unit.ancestors(use.node), 2)
                is_filled = use.node in filled or not filled.isdisjoint(around)
                found = restored if is_filled else stored
                found |= dict.fromkeys(use.objects)
        return [
            (one, other)
            for one in restored
            if one not in stored
            for other in stored
            if self._kinds_of(one) & self._kinds_of(other)
            and self.are_near(one.unit, other.unit)
        ]

    def _kinds_of(self, optimizer: LegacyObject) -> set[object]:
        made_of = self.facts.legacy.definitions(optimizer)
        return {definition.made_by for definition in made_of}

    def are_near(self, unit: Unit, other: Unit) -> bool:
        """Whether two files belong to one program, or stand in one folder."""
        if other.path in self.facts.together(unit):
            return True
        return unit.path.rpartition("/")[0] == other.path.rpartition("/")[0]

    @cached_property
    def _meeting(self) -> dict[LegacyObject, LegacyObject]:
        uses = self.facts.uses
        return unify(use.objects for use in uses if use.kind.startswith("optimizer."))

    def replicated(self, optimizers: Iterable[LegacyObject]) -> list[Use]:
        """The places where optimizers are replicated by their own method."""
        found = {*optimizers}
        return [
            use
            for use in self.facts.uses
            if use.kind == "optimizer.replicate" and not found.isdisjoint(use.objects)
        ]

    def axes(self, optimizers: Iterable[LegacyObject]) -> Axes:
        """The axes over which the gradients of optimizers are averaged since `replicate()`.

        Empty if none of them does that. Among several, None stands for an axis that is not known,
        or for no averaging.
        """
        found = list(optimizers)
        # optimizer.replicate(axis_name="batch")
        axes: Axes = set()
        replicated: set[LegacyObject] = set()
        for use in self.replicated(found):
            if use.call is not None:
                axes.add(_axis(use.call))
                replicated.update(use.objects)
        return axes | {None} if axes and not replicated.issuperset(found) else axes


def _constants_in(container: Container) -> Iterator[object]:
    """The keys of a display under which it has constants, in which inference is not interested."""
    match container.node:
        case ast.Dict(keys=keys):
            for key in keys:
                yield key.value if isinstance(key, ast.Constant) else None
        case ast.Call(keywords=words):
            for word in words:
                yield word.arg


def _axis(call: ast.Call) -> str | None:
    """The axis in `optimizer.replicate(axis_name="batch")`, or its default; None if not known."""
    found = bind(REPLICATE, call)
    if not isinstance(found, Bound) or found.unpacked:
        return None
    match found.complete["axis_name"]:
        case ast.Constant(value=str() as name):
            return name
    return None


def new_rate(node: ast.expr) -> ast.expr | None:
    """The `rate` of `x.replace(learning_rate=rate)` or `x.update_hyper_params(…)`."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="replace" | "update_hyper_params"),
            args=[],
            keywords=[ast.keyword(arg="learning_rate", value=rate)],
        ):
            return rate
    return None


def field_read(use: Use) -> ast.Attribute | None:
    """The attribute `….hyper_params.beta1` of a `hyper_params`, if it is read and not called."""
    field = use.parent
    if not isinstance(field, ast.Attribute) or not isinstance(field.ctx, ast.Load):
        return None
    match use.unit.parents.get(field):
        # optimizer.optimizer_def.hyper_params.replace(learning_rate=rate)
        case ast.Call(func=called) if called is field:
            return None
    return field


def rate_read(use: Use) -> ast.Attribute | None:
    """The attribute `optimizer.optimizer_def.hyper_params.learning_rate` of a `hyper_params`."""
    match use.node, use.parent:
        case ast.Attribute(value=ast.Attribute(attr="optimizer_def")), ast.Attribute(
            attr="learning_rate", ctx=ast.Load()
        ) as whole:
            return whole
    return None
