"""Where the optimizers of a project take steps, what they were made from, and what a run is to leave alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from codemods.analysis.closed_world import ClosedWorld
from codemods.analysis.facts import Facts, unify
from codemods.analysis.origins import Origins
from codemods.analysis.uses import Use
from codemods.flow.binding import Bound, arguments_of, bind, is_unpacked
from codemods.flow.objects import Container, Function, Method, Partial, Thing
from codemods.model import Options
from codemods.optimizers.methods import BARE_STEP, REPLICATE, STEP
from codemods.sources.modules import Unit

OVERRIDES = ("learning_rate", "hyper_params")
STEPS = ("optimizer.apply_gradient", "optimizer.optimize")


class Stepping:
    """The facts, and the steps of the project by the optimizers that take them.

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

    @cached_property
    def world(self) -> ClosedWorld:
        """What goes out of view, and comes back."""
        return ClosedWorld(self.facts)

    @cached_property
    def _steps(self) -> dict[Thing, list[Use]]:
        steps: dict[Thing, list[Use]] = defaultdict(list)
        for use in (one for one in self.facts.uses if one.kind in STEPS):
            for thing in use.things:
                steps[thing].append(use)
        return steps

    def given_override(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` of a step, or the `**overrides` in which nothing but a learning rate may be."""
        words = use.call.keywords if use.call is not None else ()
        named = next((word for word in words if word.arg in OVERRIDES), None)
        return named or next(
            (word for word in words if word.arg is None and self._holds_rate(word.value)), None
        )

    def _holds_rate(self, overrides: ast.expr) -> bool:
        """Whether all that a dict may be is in view, and has a learning rate if anything."""
        flow = self.facts.flow
        if not all(
            flow.solver.at(root) for root in flow.derivation.roots.of(flow.places[overrides])
        ):
            return False  # something comes there of which nothing is known
        items = [*self.facts.objects(overrides)]
        dicts = [
            item for item in items if isinstance(item, Container) and self._is_filled_in_view(item)
        ]
        if not all(
            self._only_unpacks(node) for item in dicts for node in self.facts.holders.get(item, ())
        ):
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
                function = next(
                    (one for one in functions if one.node.args.kwarg is parameter), None
                )
                if function is None or function in self.world.outermost:
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
                return bool(called) and all(
                    isinstance(item, Function | Method | Partial) for item in called
                )
        return isinstance(getattr(node, "ctx", None), ast.Store)

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
        if not place.kind.startswith("state.") or any(
            thing.evidence == "proven" for thing in things
        ):
            return False
        made = {
            thing
            for thing in self.facts.groups
            if thing.kind == "optimizer" and thing.unit.path in program
        }
        return made <= self.with_interface.keys() or self._is_within_kept(place.owner)

    def _is_within_kept(self, node: ast.expr) -> bool:
        """Whether something is read from a state of what keeps its interface, as in `optimizer.state.inner`."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
            if any(thing in self.with_interface for thing in self.facts.things(node, "state")):
                return True
        return False

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
        return frozenset(
            call for call in calls if isinstance(call, ast.Call) and not is_unpacked(call)
        )

    def steps(self, optimizers: Iterable[Thing]) -> list[Use]:
        """Where these optimizers take a step."""
        return list(dict.fromkeys(use for thing in optimizers for use in self._steps[thing]))

    def definitions(self, use: Use) -> list[Thing]:
        """The definitions from which the optimizers at a use were made."""
        return list(
            dict.fromkeys(
                found for thing in use.things for found in self.facts.legacy.definitions(thing)
            )
        )

    def optimizers_of(self, definition: Thing) -> list[Thing]:
        """The optimizers that were made from a definition, directly or as a part of another."""
        return [
            thing for thing in self._steps if definition in self.facts.legacy.definitions(thing)
        ]

    def companions(self, optimizers: Iterable[Thing]) -> list[Thing]:
        """Optimizers, and all others that reach a place which one of them, or another companion, reaches."""
        found = dict.fromkeys(optimizers)
        groups = {self._meeting.get(thing) for thing in found}
        return list(
            {**found, **{thing: None for thing, group in self._meeting.items() if group in groups}}
        )

    @cached_property
    def _meeting(self) -> dict[Thing, Thing]:
        return unify(use.things for use in self.facts.uses if use.kind.startswith("optimizer."))

    @cached_property
    def _axes(self) -> dict[Thing, set[str | None]]:
        """The axes over which optimizers average their gradients since `Optimizer.replicate()`; None: not plain to see."""
        axes: dict[Thing, set[str | None]] = defaultdict(set)
        for use in self.facts.uses:
            found = (
                bind(REPLICATE, use.call)
                if use.kind == "optimizer.replicate" and use.call is not None
                else None
            )
            match (
                found.complete["axis_name"]
                if isinstance(found, Bound) and not found.unpacked
                else None
            ):
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
            use
            for use in self.facts.uses
            if use.kind == "optimizer.replicate" and not found.isdisjoint(use.things)
        ]

    def axes(self, optimizers: Iterable[Thing]) -> set[str | None]:
        """The axes over which the gradients of some optimizers are averaged since `Optimizer.replicate()`.

        Empty if none does that. Among several, None stands for one that is not plain to see, or for no averaging.
        """
        found = list(optimizers)
        if self._axes.keys().isdisjoint(found):
            return set()
        return {axis for thing in found for axis in self._axes.get(thing, {None})}


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
        case ast.Attribute(attr="optimizer_def"), ast.Attribute(
            attr="learning_rate", ctx=ast.Load()
        ) as whole:
            return whole
    return None
