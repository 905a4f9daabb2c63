"""Where a value goes, by the text and its scopes alone: so that few places need to be looked at.

A function is called, and a container is changed, under its own name or where it is handed on to:
another variable, a parameter, an attribute, an element. Which of these places are really about it,
inference finds out; this finds those that may be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from codemods.inference.accepting import Accepting
from codemods.inference.callees import Callees
from codemods.inference.containers import CHANGING, MERGING, METHODS, SAME
from codemods.inference.depth import (
    DEEP,
    HANDING,
    ITSELF,
    WITHIN,
    given_by,
    handed_back,
    is_default_dict,
    put,
    taken,
)
from codemods.inference.dynamic import names_like
from codemods.inference.elements import is_generic
from codemods.inference.exports import exported
from codemods.inference.objects import Class, Function
from codemods.inference.reading import (
    MODULES,
    FunctionNode,
    ItemStore,
    function_around,
    last_name,
    parameters,
)
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

T = TypeVar("T")
Decorated: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Stop: TypeAlias = tuple[object, ...]
"""A variable, an attribute of a name, the value of a node, or what a function gives."""

Step: TypeAlias = tuple[Stop, int]
"""A stop, and in how many containers what is there is, one in another."""

PUTTING = CHANGING - {"sort"}
"""Methods that may put what they are given into a container."""

OF_CLASSES = ("__new__", "__init_subclass__", "__class_getitem__")
"""The methods whose first parameter is a class without a decorator."""

FURTHEST = 10
"""What is handed on more often is not followed any further."""

NEAR = 4
"""So often what a function gives is followed to where its calls are."""


@dataclass
class Here:
    """What becomes of something at one stop."""

    calls: dict[ast.Call, None] = field(default_factory=dict)
    changes: dict[ast.Call | ItemStore, None] = field(default_factory=dict)
    decorated: dict[Function | Class, None] = field(default_factory=dict)
    nodes: dict[tuple[Unit, ast.expr], None] = field(default_factory=dict)


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
        self._back: dict[ast.FunctionDef, set[str]] = {}
        """The names that may be in what each function gives."""
        self._modules: set[ast.expr] | None = None
        self._numbers: dict[Step, int] = {}
        self._steps: list[Step] = []
        self._next: dict[int, tuple[list[int], Here]] = {}
        """What follows each step, by its number."""
        self.accepting = Accepting(engine)
        self._callees = Callees(engine)

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
                    yield from self._climb(self._unit(node), node, depth, here)
            case ("value", Unit() as unit, ast.AST() as node):
                yield from self._climb(unit, node, depth, here)
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
            yield from self._climb(scope.unit, node, depth, here)
        for binding in self.engine.bindings_of(scope, name):
            if isinstance(binding.node, Decorated):
                yield from self._decorating(binding.node)
        if scope.parent is not None:
            return
        # from module import step
        for binding in index.imported.get(name, ()):
            assert isinstance(binding.node, ast.ImportFrom)
            assert binding.alias is not None
            sources = self.engine.sources(binding.scope.unit, binding.node)
            if any(self._may_be_of(module.unit, scope, name) for module in sources):
                bound = binding.alias.asname or name
                into = binding.scope.binding(bound) or binding.scope
                yield ("variable", into, bound), depth
        # from module import *
        for importer in self.engine.star_importers(scope):
            if name in exported(scope):
                yield ("variable", importer, name), depth
        # module.step, getattr(module, "step")
        for read, owner in index.attributes_read.get(name, ()):
            # found["step"].step
            held = owner
            while isinstance(held, ast.Subscript):
                held = held.value
            if self.may_be_module(owner) or held in self._modules_at():
                yield from self._climb(self._unit(read), read, depth, here)

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
                    yield from self._given_to_class(definition, 0, None)
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
                    yield from self._given_to(taker, 0, None)

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
                if all(is_read_of) or not any(map(self.engine.is_module, bindings)):
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

    def _climb(
        self, unit: Unit, node: ast.AST, depth: int, here: Here
    ) -> Iterator[Step]:
        """Where what stands at a node, or holds it, is put."""
        if isinstance(node, ast.expr):
            here.nodes[unit, node] = None
        child = node
        for parent in unit.ancestors(node):
            match parent:
                case ast.Call(func=function):
                    if function is child:
                        here.calls[parent] = None
                        return
                    given = [*self._given(parent, child, depth)]
                    yield from given
                    if not given:
                        here.calls[parent] = None
                    back = self._coming_back(parent, child, given, depth)
                    if back is None:
                        return
                    depth = back
                case ast.Attribute(attr=name):
                    # states.append(state), states.items()
                    call = unit.parents.get(parent)
                    is_called = isinstance(call, ast.Call) and call.func is parent
                    # Thread(target=seen.append, args=(state,))
                    if isinstance(call, ast.keyword):
                        call = unit.parents[call]
                    # jax.debug.callback(seen.append, state)
                    if name in CHANGING and isinstance(call, ast.Call):
                        here.changes[call] = None
                    if is_called and name in (METHODS if depth else SAME):
                        yield ("value", unit, call), given_by(name, depth)
                    return
                case ast.Subscript(value=value, slice=key):
                    if value is not child:
                        return
                    for store in self.engine.index.item_stores_of.get(parent, ()):
                        here.changes[store] = None
                    if not depth:
                        return
                    # states[1:] holds them still
                    depth = depth if isinstance(key, ast.Slice) else taken(depth)
                # others + states
                case ast.BinOp():
                    if not depth:
                        return
                # [*states], {**states}
                case ast.Starred():
                    if not depth:
                        return
                    depth = taken(depth)
                case ast.Dict(keys=keys, values=values) if (
                    child in values and keys[values.index(child)] is None
                ):
                    if not depth:
                        return
                case (
                    ast.Dict()
                    | ast.List()
                    | ast.Tuple()
                    | ast.Set()
                    | ast.DictComp()
                    | ast.ListComp()
                    | ast.SetComp()
                    | ast.GeneratorExp()
                ):
                    depth = put(depth)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        yield from self._targets(target, depth)
                    return
                case ast.AnnAssign(target=target, value=value):
                    if child is value:
                        yield from self._targets(target, depth)
                    return
                case ast.AugAssign(target=target):
                    # states += [state]
                    if depth:
                        yield from self._targets(target, depth)
                    return
                case ast.NamedExpr(target=target):
                    yield from self._targets(target, depth)
                case (
                    ast.For(target=target, iter=source)
                    | ast.AsyncFor(target=target, iter=source)
                    | ast.comprehension(target=target, iter=source)
                ):
                    if child is source and depth:
                        yield from self._targets(target, taken(depth))
                    return
                case ast.withitem(optional_vars=ast.expr() as target):
                    # one that a generator yields, or itself
                    for held in {depth, taken(depth)}:
                        yield from self._targets(target, held)
                    return
                case ast.Lambda():
                    if child is parent.body:
                        yield ("given by", self.engine.functions[parent]), depth
                    return
                case ast.Return() | ast.Yield() | ast.YieldFrom():
                    assert isinstance(child, ast.expr)
                    around = function_around(self.engine.scopes[child])
                    if around is not None:
                        held = put(depth) if isinstance(parent, ast.Yield) else depth
                        yield ("given by", self.engine.functions[around]), held
                    return
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    if child in parent.decorator_list:
                        here.decorated[self.engine.definition(parent)] = None
                    return
                case ast.arguments():
                    owner = unit.parents[parent]
                    assert isinstance(owner, FunctionNode)
                    inner = self.engine.functions[owner].scope
                    for argument, default in parameters(owner):
                        if default is child:
                            yield ("variable", inner, argument.arg), depth
                    return
                case ast.Match():
                    scope = self.engine.scopes[parent.subject]
                    for case in parent.cases:
                        for name in _captured(case.pattern):
                            bound = scope.binding(name) or scope
                            yield ("variable", bound, name), depth
                    return
                case (
                    ast.keyword()
                    | ast.IfExp()
                    | ast.BoolOp()
                    | ast.UnaryOp()
                    | ast.Await()
                ):
                    pass
                case _:
                    return
            child = parent

    def _targets(self, target: ast.expr, depth: int) -> Iterator[Step]:
        match target:
            # first, *others = states: the others are in a list again
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements if depth else ():
                    is_list = isinstance(element, ast.Starred)
                    inner = depth if is_list else taken(depth)
                    yield from self._targets(element, inner)
            case ast.Starred(value=inner):
                yield from self._targets(inner, depth)
            # states["step"] = step: what has the element
            case ast.Subscript(value=inner):
                yield from self._targets(inner, put(depth))
            case ast.Name(id=name):
                scope = self.engine.scopes[target]
                bound = scope.binding(name) or scope
                # a variable of a class is an attribute of it
                if isinstance(bound.node, ast.ClassDef):
                    yield ("attribute", name), depth
                yield ("variable", bound, name), depth
            case ast.Attribute(attr=name):
                yield ("attribute", name), depth

    # Calls

    def _given(self, call: ast.Call, child: ast.AST, depth: int) -> Iterator[Step]:
        """The parameters and containers that get an argument."""
        function, index, name = call.func, None, None
        if isinstance(child, ast.keyword):
            name = child.arg
        elif child in call.args:
            index = call.args.index(child)
        # partial(step, rate)
        if last_name(function) in ("partial", "Partial") and call.args:
            if index == 0:
                return
            function = call.args[0]
            index = None if index is None else index - 1
        # Thread(target=keep, args=(step, states)): any parameter may get it
        if name in ("args", "kwargs") and last_name(function) == "Thread":
            targets = (one.value for one in call.keywords if one.arg == "target")
            for taker in chain.from_iterable(map(self._callees.of, targets)):
                for argument, _ in (
                    parameters(taker.node) if isinstance(taker, Function) else ()
                ):
                    yield ("variable", taker.scope, argument.arg), depth
        # states.append(step), not states.sort(key=step)
        if isinstance(function, ast.Attribute) and function.attr in PUTTING:
            # settings.update(state=state), settings.update(others): what is in these
            is_merged = function.attr in MERGING and name is None
            if depth or not is_merged:
                inner = depth if is_merged else put(depth)
                yield from self._targets(function.value, inner)
        for definition in self._callees.of(function):
            if isinstance(definition, Class):
                given = self._given_to_class(definition, index, name)
            else:
                given = self._given_to(definition, index, name)
            for stop, is_packed in given:
                yield stop, put(depth) if is_packed else depth

    def _given_to(
        self, function: Function, index: int | None, name: str | None
    ) -> Iterator[tuple[Stop, bool]]:
        """The parameters that get an argument, and whether with others: `*args`."""
        declared = function.node.args
        positional = [*declared.posonlyargs, *declared.args]
        for one in (*positional, *declared.kwonlyargs):
            if one.arg == name:
                yield ("variable", function.scope, name), False
        if index is not None:
            is_method = self.engine.class_of_method(function) is not None
            # Trainer.step(trainer), or trainer.step()
            for at in {index, index + 1} if is_method else {index}:
                for one in positional[at : at + 1]:
                    yield ("variable", function.scope, one.arg), False
                if at >= len(positional) and declared.vararg is not None:
                    yield ("variable", function.scope, declared.vararg.arg), True
        elif declared.kwarg is not None:
            yield ("variable", function.scope, declared.kwarg.arg), True

    def _given_to_class(
        self, cls: Class, index: int | None, name: str | None
    ) -> Iterator[tuple[Stop, bool]]:
        if name is not None:
            yield ("attribute", name), False
        fields: list[str] = []
        for statement in cls.node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=word)):
                    fields.append(word)
                case ast.FunctionDef(name="__init__"):
                    function = self.engine.functions[statement]
                    yield from self._given_to(function, index, name)
        for base in cls.node.bases:
            for other in self._callees.of(base):
                if isinstance(other, Class) and other is not cls:
                    yield from self._given_to_class(other, index, name)
        if index is not None:
            for word in fields[index : index + 1]:
                yield ("attribute", word), False

    def _coming_back(
        self, call: ast.Call, child: ast.AST, given: list[Step], depth: int
    ) -> int | None:
        """How deep it is in what the call gives that gets it; None if it is not there."""
        name = last_name(call.func)
        # State(table)
        if any(stop[0] == "attribute" for stop, _ in given):
            return put(depth)
        if name in HANDING:
            return handed_back(name, depth, isinstance(child, ast.keyword))
        return depth if any(self._hands_back(stop) for stop, _ in given) else None

    def _hands_back(self, stop: Stop) -> bool:
        """Whether a function may give back a parameter: so it is followed in one step."""
        match stop:
            case ("variable", Scope(node=ast.FunctionDef() as function), str(name)):
                if function not in self._back:
                    givers = ast.Return | ast.Lambda | ast.Yield | ast.FunctionDef
                    self._back[function] = {
                        one.id
                        for inner in ast.walk(function)
                        if isinstance(inner, givers) and inner is not function
                        for one in ast.walk(inner)
                        if isinstance(one, ast.Name)
                    }
                return name in self._back[function]
        return True


def _captured(pattern: ast.pattern) -> Iterator[str]:
    """The names that a pattern binds."""
    for part in ast.walk(pattern):
        if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
            yield part.name
