"""Where a value goes, by the text and its scopes alone: so that few places need to be looked at.

A function is called, and a container is changed, under its own name or where it is handed on to:
another variable, a parameter, an attribute, an element. Which of these places are really about it,
inference finds out; this finds those that may be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from codemods.inference.accepting import Accepting
from codemods.inference.callees import Callees
from codemods.inference.climbing import Climbing, Here, Step, Stop
from codemods.inference.depth import (
    DEEP,
    ITSELF,
    WITHIN,
    is_default_dict,
)
from codemods.inference.dynamic import names_like
from codemods.inference.elements import is_generic
from codemods.inference.imports import exported
from codemods.inference.objects import Class, Function
from codemods.inference.reading import (
    MODULES,
    ItemStore,
    last_name,
)
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

T = TypeVar("T")
Decorated: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

OF_CLASSES = ("__new__", "__init_subclass__", "__class_getitem__")
"""The methods whose first parameter is a class without a decorator."""

FURTHEST = 10
"""What is handed on more often is not followed any further."""

NEAR = 4
"""So often what a function gives is followed to where its calls are."""


class Trace:
    """Where something may be called or changed."""

    def __init__(self, stops: list[Here]) -> None:
        self._stops = stops

    @cached_property
    def calls(self) -> dict[ast.Call, None]:
        return _joined(stop.calls for stop in self._stops)

    @cached_property
    def changes(self) -> dict[ast.Call | ItemStore, None]:
        return _joined(stop.changes for stop in self._stops)

    @cached_property
    def decorated(self) -> dict[Function | Class, None]:
        return _joined(stop.decorated for stop in self._stops)

    @cached_property
    def nodes(self) -> dict[tuple[Unit, ast.expr], None]:
        """Where it stands, or what holds it."""
        return _joined(stop.nodes for stop in self._stops)


def _joined(parts: Iterable[dict[T, None]]) -> dict[T, None]:
    found: dict[T, None] = {}
    for part in parts:
        found.update(part)
    return found


class Tracing:
    """Follows values forwards."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._traces: dict[tuple[Step, int], Trace] = {}
        self._modules: set[ast.expr] | None = None
        self._numbers: dict[Step, int] = {}
        self._steps: list[Step] = []
        self._next: dict[int, tuple[list[int], Here]] = {}
        """What follows each step, by its number."""
        self.accepting = Accepting(engine)
        self._callees = Callees(engine)
        self._climbing = Climbing(engine, self._callees)

    def of_function(self, function: Function) -> Trace:
        return self.of(self._start(function))

    def calls_of(self, function: Function) -> Iterator[ast.Call]:
        """The calls at which a function may stand, and that Python does not refuse."""
        return self.accepting.calls(function, self.of_function(function).calls)

    def _start(self, definition: Function | Class) -> Stop:
        if isinstance(definition.node, ast.Lambda):
            return ("value", definition.unit, definition.node)
        return self._named(definition.scope.parent, definition.node.name)

    def of_class(self, cls: Class) -> Trace:
        # Holder[int](…)
        depth = DEEP if is_generic(cls.node) else ITSELF
        return self.of(self._start(cls), depth=depth)

    @staticmethod
    def _named(scope: Scope | None, name: str) -> Stop:
        assert scope is not None
        if isinstance(scope.node, ast.ClassDef):
            return ("attribute", name)
        return ("variable", scope.binding(name) or scope, name)

    def of_value(self, node: ast.expr) -> Trace:
        """Where what an expression gives is called, also from a container."""
        return self.of(("value", self._unit(node), node), depth=DEEP)

    def of(self, start: Stop, furthest: int = FURTHEST, depth: int = ITSELF) -> Trace:
        """Where what is at a stop may be called or changed.

        Args:
          start: the stop.
          furthest: how often it is followed to where it is handed on to.
          depth: in how many containers it is there.
        """
        first = (start, depth)
        if (first, furthest) not in self._traces:
            stops = [*self._reached(first, furthest)]
            self._traces[first, furthest] = Trace(stops)
        return self._traces[first, furthest]

    def _reached(
        self, first: Step, furthest: int, left_out: str = ""
    ) -> Iterator[Here]:
        reached = [self._number(first)]
        seen = {*reached}
        for _ in range(furthest):
            following: list[int] = []
            for number in reached:
                further, here = self._followed(number)
                yield here
                for other in further:
                    if other not in seen:
                        seen.add(other)
                        if self._steps[other][0][0] != left_out:
                            following.append(other)
            reached = following

    def _number(self, step: Step) -> int:
        """A number for a step: sets of numbers are fast."""
        if step not in self._numbers:
            self._numbers[step] = len(self._steps)
            self._steps.append(step)
        return self._numbers[step]

    def _followed(self, number: int) -> tuple[list[int], Here]:
        if number not in self._next:
            here = Here()
            # a step that leads to itself has nothing to add
            self._next[number] = ([], here)
            following = dict.fromkeys(self._following(*self._steps[number], here))
            self._next[number] = ([*map(self._number, following)], here)
        return self._next[number]

    def _following(self, stop: Stop, depth: int, here: Here) -> Iterator[Step]:
        match stop:
            case ("variable", Scope() as scope, str(name)):
                yield from self._of_variable(scope, name, depth, here)
            case ("attribute", str(name)):
                nodes = self.engine.index.attributes_read.get(name, ())
                computed = (
                    node for like, node in self._computed if like.fullmatch(name)
                )
                for node in (*(node for node, _ in nodes), *computed):
                    yield from self._climbing.climb(self._unit(node), node, depth, here)
            case ("value", Unit() as unit, ast.AST() as node):
                yield from self._climbing.climb(unit, node, depth, here)
            case ("given by", Function() as function):
                near = self._near(function)
                for call in self.accepting.calls(function, near.calls):
                    inner = DEEP if is_default_dict(call) else depth
                    yield ("value", self._unit(call), call), inner
                # what a decorator gives stands for what it decorates
                for other in near.decorated:
                    yield self._start(other), depth

    @cached_property
    def _computed(self) -> list[tuple[re.Pattern[str], ast.expr]]:
        """Where attributes are read by names that are computed, and what these may be."""
        found: list[tuple[re.Pattern[str], ast.expr]] = []
        for lookup in self.engine.index.lookups:
            match lookup.node:
                # getattr(callback, f"on_{event}")
                case ast.Call(args=[_, name, *_]) if lookup.key is None:
                    like = names_like(name)
                    if like is not None:
                        found.append((like, lookup.node))
        return found

    def _unit(self, node: ast.expr) -> Unit:
        return self.engine.scopes[node].unit

    def _near(self, function: Function) -> Trace:
        """Where a function stands under its own name, or where that is handed on a few times.

        What other functions give is left out: these may give each other without end.
        """
        reached = self._reached((self._start(function), ITSELF), NEAR, "given by")
        return Trace([*reached])

    def _of_variable(
        self, scope: Scope, name: str, depth: int, here: Here
    ) -> Iterator[Step]:
        index = self.engine.index
        for node in index.reads.get((scope, name), ()):
            yield from self._climbing.climb(scope.unit, node, depth, here)
        for binding in self.engine.bindings_of(scope, name):
            if isinstance(binding.node, Decorated):
                yield from self._decorating(binding.node)
        if scope.parent is not None:
            return
        # from module import step
        for binding in index.imported.get(name, ()):
            assert isinstance(binding.node, ast.ImportFrom)
            assert binding.alias is not None
            sources = self.engine.imports.sources(binding.scope.unit, binding.node)
            if any(self._may_be_of(module.unit, scope, name) for module in sources):
                bound = binding.alias.asname or name
                into = binding.scope.binding(bound) or binding.scope
                yield ("variable", into, bound), depth
        # from module import *
        for importer in self.engine.imports.star_importers(scope):
            if name in exported(scope):
                yield ("variable", importer, name), depth
        # module.step, getattr(module, "step")
        for read, owner in index.attributes_read.get(name, ()):
            # found["step"].step
            held = owner
            while isinstance(held, ast.Subscript):
                held = held.value
            if self.may_be_module(owner) or held in self._modules_at():
                yield from self._climbing.climb(self._unit(read), read, depth, here)

    def _decorating(self, node: Decorated) -> Iterator[Step]:
        """The parameters of decorators that a function or class is given to.

        A class stands in its own methods, too: as `cls`, `type(self)` and `self.__class__`.
        """
        if isinstance(node, ast.ClassDef):
            yield from self._in_methods(node, {node})
            # Base.__subclasses__()
            listed = self.engine.index.attributes_read.get("__subclasses__", ())
            for read, _ in listed if node.bases else ():
                unit = self._unit(read)
                yield ("value", unit, unit.parents[read]), WITHIN
        for decorator in node.decorator_list:
            for definition in self._callees.of(decorator):
                if isinstance(definition, Class):
                    yield from self._climbing.given_to_class(definition, 0, None)
                    continue
                takers = [definition]
                # @loop.every(10): a function within takes it
                if isinstance(decorator, ast.Call):
                    within = ast.walk(definition.node)
                    found = (self.engine.functions.get(inner) for inner in within)
                    takers = [
                        one
                        for one in found
                        if one is not None and one.scope.parent is definition.scope
                    ]
                for taker in takers:
                    yield from self._climbing.given_to(taker, 0, None)

    def _in_methods(
        self, node: ast.ClassDef, seen: set[ast.ClassDef]
    ) -> Iterator[Step]:
        """Where the methods of a class and of its bases have what they are called on as a class."""
        unit = self.engine.class_of(node).unit
        for inner in ast.walk(node):
            match inner:
                case ast.FunctionDef(name=name, args=ast.arguments(args=[first, *_])):
                    of_class = "classmethod" in self.engine.decorators(inner)
                    if of_class or name in OF_CLASSES:
                        scope = self.engine.functions[inner].scope
                        yield ("variable", scope, first.arg), ITSELF
                # type(self)(…), self.__class__(…)
                case (
                    ast.Call(func=ast.Name(id="type"), args=[_])
                    | ast.Attribute(attr="__class__")
                ):
                    yield ("value", unit, inner), ITSELF
        for base in node.bases:
            for cls in self._callees.of(base):
                if isinstance(cls, Class) and cls.node not in seen:
                    seen.add(cls.node)
                    yield from self._in_methods(cls.node, seen)

    def _may_be_of(self, unit: Unit | None, scope: Scope, name: str) -> bool:
        """Whether a module has a name from another: it is that, or a package around it."""
        if unit is None or unit is scope.unit:
            return True
        return unit.is_package and not self.engine.bindings_of(
            self.engine.module(unit), name
        )

    def _modules_at(self) -> set[ast.expr]:
        """Where modules of the project stand that are handed on: `fit(steps, params)`."""
        if self._modules is None:
            # while they are followed themselves, none is known
            self._modules = set()
            index = self.engine.index
            starts: list[Stop] = []
            # found[name] = importlib.import_module(f"plugins.{name}")
            calls = (call for word in MODULES for call in index.called.get(word, ()))
            starts += (("value", self.engine.scopes[one].unit, one) for one in calls)
            for (scope, name), bindings in index.bindings.items():
                parents = scope.unit.parents
                reads = index.reads.get((scope, name), ())
                is_read_of = (isinstance(parents[one], ast.Attribute) for one in reads)
                if all(is_read_of) or not any(
                    map(self.engine.imports.is_module, bindings)
                ):
                    continue
                starts.append(("variable", scope, name))
            for start in starts:
                trace = self.of(start, depth=DEEP)
                self._modules.update(node for _, node in trace.nodes)
            # what was followed on the way lacks what is read of them
            self._traces.clear()
            self._next.clear()
        return self._modules

    def may_be_module(self, node: ast.expr) -> bool:
        """Whether an expression is bound as modules are, as far as the text shows."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return last_name(node) in MODULES
        bound = self.engine.scopes[node].binding(node.id)
        bindings = [] if bound is None else self.engine.bindings_of(bound, node.id)
        return any(
            # import train; train = importlib.import_module(name); sys.modules[name]
            one.alias is not None
            or (one.source is not None and last_name(one.source) in MODULES)
            for one in bindings
        )
