"""Where a value goes, by the text and its scopes alone: so that few places need to be looked at.

A function is called, and a container is changed, under its own name or where it is handed on to:
another variable, a parameter, an attribute, an element. Which of these places are really about it,
inference finds out; this finds those that may be.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from codemods.inference.containers import METHODS, SAME
from codemods.inference.exports import exported
from codemods.inference.heap import is_generic
from codemods.inference.objects import Class, Function
from codemods.inference.reading import (
    CHANGES,
    MODULES,
    Binding,
    FunctionNode,
    ItemStore,
    last_name,
    parameters,
)
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import words

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

T = TypeVar("T")
Stop: TypeAlias = tuple[object, ...]
"""A variable, an attribute of a name, the value of a node, or what a function gives."""

Step: TypeAlias = tuple[Stop, bool]
"""A stop, and whether what is there is in a container."""

EMPTYING = frozenset(
    words(
        "dict OrderedDict SimpleNamespace ConfigDict FrozenConfigDict FrozenDict set zip"
    )
    + words("enumerate map filter sorted reversed chain cycle next")
)
"""Functions out of view that give back the elements of what they are given, not that itself."""

HANDING = EMPTYING.union(
    words("jit pmap vmap pjit checkpoint remat named_call partial Partial"),
    words("wraps grad value_and_grad list tuple iter deepcopy copy freeze"),
    words("unfreeze replicate unreplicate device_put device_get vjp jvp"),
    words("staticmethod classmethod property cached_property lru_cache cache"),
    words("partialmethod cast custom_vjp custom_jvp pad_shard_unpad"),
    words("defaultdict update_wrapper singledispatch contextmanager"),
    words("setdefault get pop deque tree_map xmap eval_shape named_scope scan"),
    words("fori_loop while_loop cond switch"),
)
"""Functions out of view that give back what they are given, or something with it."""

FURTHEST = 10
"""What is handed on more often is not followed any further."""

NEAR = 4
"""So often what a function gives is followed to where its calls are."""


@dataclass
class Here:
    """What becomes of something at one stop."""

    calls: dict[ast.Call, None] = field(default_factory=dict)
    changes: dict[ast.Call | ItemStore, None] = field(default_factory=dict)
    decorated: dict[Function, None] = field(default_factory=dict)
    attributes: dict[ast.Attribute, None] = field(default_factory=dict)
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
    def decorated(self) -> dict[Function, None]:
        return _joined(stop.decorated for stop in self._stops)

    @cached_property
    def attributes(self) -> dict[ast.Attribute, None]:
        """The attributes that are read of it."""
        return _joined(stop.attributes for stop in self._stops)

    @cached_property
    def nodes(self) -> dict[tuple[Unit, ast.expr], None]:
        """Where it stands, or what holds it."""
        return _joined(stop.nodes for stop in self._stops)


def _joined(parts: Iterable[dict[T, None]]) -> dict[T, None]:
    found: dict[T, None] = {}
    for part in parts:
        if part:
            found.update(part)
    return found


class Tracing:
    """Follows values forwards."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._traces: dict[tuple[Step, int], Trace] = {}
        self._numbers: dict[Step, int] = {}
        self._all: list[Step] = []
        self._next: list[tuple[list[int], Here] | None] = []
        """What follows each step, by its number; None for one not looked at."""
        self._back: dict[FunctionNode, set[str]] = {}

    def of_function(self, function: Function) -> Trace:
        return self.of(self._start(function))

    def _start(self, function: Function) -> Stop:
        if isinstance(function.node, ast.Lambda):
            return ("value", function.unit, function.node)
        return self._named(function.scope.parent, function.node.name)

    def of_class(self, cls: Class) -> Trace:
        # Holder[int](…)
        start = self._named(cls.scope.parent, cls.node.name)
        return self.of(start, is_held=is_generic(cls.node))

    @staticmethod
    def _named(scope: Scope | None, name: str) -> Stop:
        assert scope is not None
        if isinstance(scope.node, ast.ClassDef):
            return ("attribute", name)
        return ("variable", scope.binding(name) or scope, name)

    def of(self, start: Stop, furthest: int = FURTHEST, is_held: bool = False) -> Trace:
        """Where what is at a stop may be called or changed.

        Args:
          start: the stop.
          furthest: how often it is followed to where it is handed on to.
          is_held: whether what stands in containers there is followed, too.
        """
        first = (start, is_held)
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
                if self._next[number] is None:
                    self._follow(number)
                further, here = self._next[number]  # type: ignore[misc]
                yield here
                for other in further:
                    if other not in seen:
                        seen.add(other)
                        if self._all[other][0][0] != left_out:
                            following.append(other)
            reached = following

    def _number(self, step: Step) -> int:
        found = self._numbers.get(step)
        if found is None:
            found = self._numbers[step] = len(self._all)
            self._all.append(step)
            self._next.append(None)
        return found

    def _follow(self, number: int) -> None:
        here = Here()
        # a step that leads to itself has nothing to add
        self._next[number] = ([], here)
        found = dict.fromkeys(self._steps(*self._all[number], here))
        self._next[number] = ([*map(self._number, found)], here)

    def _steps(self, stop: Stop, is_held: bool, here: Here) -> Iterator[Step]:
        match stop:
            case ("variable", Scope() as scope, str(name)):
                yield from self._of_variable(scope, name, is_held, here)
            case ("attribute", str(name)):
                for unit, node in self.engine.index.attributes_read.get(name, ()):
                    yield from self._climb(unit, node, is_held, here)
            case ("value", Unit() as unit, ast.AST() as node):
                yield from self._climb(unit, node, is_held, here)
            case ("given by", Function() as function):
                for call in self._calls_near(function):
                    unit = self.engine.reading.scopes[call].unit
                    yield ("value", unit, call), is_held

    def _calls_near(self, function: Function) -> dict[ast.Call, None]:
        """The calls of a function under its own name, or where that is handed on a few times.

        What other functions give is left out: these may give each other without end.
        """
        found: dict[ast.Call, None] = {}
        first = (self._start(function), False)
        for here in self._reached(first, NEAR, "given by"):
            found.update(here.calls)
        return found

    def _of_variable(
        self, scope: Scope, name: str, is_held: bool, here: Here
    ) -> Iterator[Step]:
        for node in self.engine.index.reads.get((scope, name), ()):
            yield from self._climb(scope.unit, node, is_held, here)
        for binding in self.engine.bindings_of(scope, name):
            if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._decorating(binding.node)
        if scope.parent is not None:
            return
        # from module import step
        for binding in self.engine.index.imported.get(name, ()):
            assert isinstance(binding.node, ast.ImportFrom)
            assert binding.alias is not None
            sources = self.engine.sources(binding.scope.unit, binding.node)
            if any(self._may_be_of(module.unit, scope, name) for module in sources):
                bound = binding.alias.asname or name
                owner = binding.scope.binding(bound) or binding.scope
                yield ("variable", owner, bound), is_held
        # from module import *
        for importer in self.engine.star_importers(scope):
            if name in exported(scope):
                yield ("variable", importer, name), is_held
        # module.step
        handed_on = self._read_of_modules.get(name, ())
        for unit, read in self.engine.index.attributes_read.get(name, ()):
            assert isinstance(read, ast.Attribute)
            if read in handed_on or self._is_module(read.value):
                yield from self._climb(unit, read, is_held, here)

    def _decorating(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[Step]:
        """The parameters of decorators that a function is given to."""
        for decorator in node.decorator_list:
            for definition in self._definitions(decorator):
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
                    yield from self._given_to(taker, 0, None, decorator)

    def _may_be_of(self, unit: Unit | None, scope: Scope, name: str) -> bool:
        """Whether a module has a name from another: it is that, or a package around it."""
        if unit is None or unit is scope.unit:
            return True
        return unit.is_package and not self.engine.bindings_of(
            self.engine.module(unit), name
        )

    def _is_module(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        scope = self.engine.reading.scopes[node]
        bound = scope.binding(node.id)
        if bound is None:
            return False
        bindings = self.engine.bindings_of(bound, node.id)
        return not bindings or any(one.alias is not None for one in bindings)

    @cached_property
    def _read_of_modules(self) -> dict[str, set[ast.Attribute]]:
        """The attributes that are read of modules that are handed on, by name."""
        found: dict[str, set[ast.Attribute]] = defaultdict(set)
        for stop in self._modules_handed_on():
            for node in self.of(stop, is_held=True).attributes:
                found[node.attr].add(node)
        return found

    def _modules_handed_on(self) -> Iterator[Stop]:
        """Where modules come from that are values: imports by names, and `fit(steps, params)`."""
        index = self.engine.index
        for word in MODULES:
            for call in index.called.get(word, ()):
                yield ("value", self.engine.reading.scopes[call].unit, call)
            for unit, node in index.attributes_read.get(word, ()):
                yield ("value", unit, node)
        for scope, name in self.engine.modules_imported():
            unit = scope.unit
            reads = index.reads.get((scope, name), ())
            if not all(isinstance(unit.parents[read], ast.Attribute) for read in reads):
                yield ("variable", scope, name)

    def _climb(
        self, unit: Unit, node: ast.AST, is_held: bool, here: Here
    ) -> Iterator[Step]:
        """Where what stands at a node, or holds it, is put."""
        if isinstance(node, ast.expr):
            here.nodes[unit, node] = None
        within = child = node
        was_held = is_held
        for parent in unit.ancestors(node):
            stops: Iterable[Stop] = ()
            goes_on = False
            match parent:
                case ast.Call(func=function):
                    if function is child:
                        here.calls[parent] = None
                        return
                    given = [*self._given(unit, parent, child)]
                    yield from ((stop, is_held or holds) for stop, holds in given)
                    if not given:
                        here.calls[parent] = None
                    if not self._comes_back(parent, child, given, is_held):
                        return
                    # State(table)
                    is_held = is_held or any(
                        stop[0] == "attribute" for stop, _ in given
                    )
                    goes_on = True
                case ast.Attribute(attr=name):
                    here.attributes[parent] = None
                    # states.append(state), states.items()
                    call = unit.parents.get(parent)
                    is_called = isinstance(call, ast.Call) and call.func is parent
                    # Thread(target=states.put, args=(state,))
                    if isinstance(call, ast.keyword):
                        call = unit.parents[call]
                    # jax.debug.callback(seen.append, state)
                    if name in CHANGES and isinstance(call, ast.Call):
                        here.changes[call] = None
                    gives_back = SAME | {"register"} | (METHODS if is_held else set())
                    if is_called and name in gives_back:
                        stops = [("value", unit, call)]
                case ast.Subscript(value=value):
                    if value is not child:
                        return
                    if isinstance(parent.ctx, ast.Load):
                        goes_on = is_held
                    else:
                        for store in self.engine.index.item_stores_of.get(parent, ()):
                            here.changes[store] = None
                case ast.Starred():
                    goes_on = is_held
                case ast.BinOp():
                    # [optimizer] + others
                    goes_on = is_held
                case ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
                    was_held, is_held, goes_on = is_held, True, True
                case (
                    ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp()
                ):
                    is_held = goes_on = True
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        part = _counterpart(target, value, within)
                        held = is_held if part is target else was_held
                        yield from self._targets(part, held)
                    return
                case ast.AnnAssign(target=target, value=value):
                    if child is value:
                        yield from self._targets(target, is_held)
                    return
                case ast.AugAssign(target=target):
                    # states += [state]
                    if is_held:
                        yield from self._targets(target, is_held)
                    return
                case ast.NamedExpr(target=target):
                    yield from self._targets(target, is_held)
                    goes_on = True
                case (
                    ast.For(target=target, iter=source)
                    | ast.AsyncFor(target=target, iter=source)
                    | ast.comprehension(target=target, iter=source)
                ):
                    if child is source and is_held:
                        yield from self._targets(target, is_held)
                    return
                case ast.withitem(optional_vars=target):
                    if target is not None:
                        yield from self._targets(target, is_held)
                    return
                case ast.Lambda():
                    if child is parent.body:
                        stops = [("given by", self.engine.functions[parent])]
                case ast.Return() | ast.Yield() | ast.YieldFrom():
                    is_held = is_held or isinstance(parent, ast.Yield)
                    scope = self.engine.scope_of(unit, parent)
                    if scope is not None and scope.node in self.engine.functions:
                        stops = [("given by", self.engine.functions[scope.node])]
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if child in parent.decorator_list:
                        here.decorated[self.engine.functions[parent]] = None
                    return
                case ast.arguments():
                    owner = unit.parents[parent]
                    assert isinstance(owner, FunctionNode)
                    inner = self.engine.functions[owner].scope
                    defaults = parameters(owner)
                    stops = [
                        ("variable", inner, one.arg)
                        for one, default in defaults
                        if default is child
                    ]
                case ast.Match():
                    scope = self.engine.reading.scopes[parent.subject]
                    stops = [
                        ("variable", scope.binding(name) or scope, name)
                        for case in parent.cases
                        for name in _captured(case.pattern)
                    ]
                case (
                    ast.keyword()
                    | ast.IfExp()
                    | ast.BoolOp()
                    | ast.UnaryOp()
                    | ast.Await()
                ):
                    goes_on = True
            yield from ((stop, is_held) for stop in stops)
            if not goes_on:
                return
            within, child = child, parent

    def _targets(self, target: ast.expr, is_held: bool) -> Iterator[Step]:
        match target:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                # first, second = states
                for element in elements if is_held else ():
                    yield from self._targets(element, is_held)
            case ast.Starred(value=inner):
                yield from self._targets(inner, is_held)
            case ast.Name(id=name):
                scope = self.engine.reading.scopes[target]
                bound = scope.binding(name) or scope
                # a variable of a class is an attribute of it
                if isinstance(bound.node, ast.ClassDef):
                    yield ("attribute", name), is_held
                yield ("variable", bound, name), is_held
            case ast.Attribute(attr=name):
                yield ("attribute", name), is_held
            case ast.Subscript(value=inner):
                # states["step"] = step
                unit = self.engine.reading.scopes[target].unit
                yield from self._holder(unit, inner)

    def _holder(self, unit: Unit, node: ast.expr) -> Iterator[Step]:
        """The variable or attribute of a container."""
        match node:
            case ast.Name() | ast.Attribute():
                yield from self._targets(node, is_held=True)
            case ast.Subscript(value=inner):
                yield from self._holder(unit, inner)

    # Calls

    def _given(self, unit: Unit, call: ast.Call, child: ast.AST) -> Iterator[Step]:
        """The parameters that get an argument, and whether they hold it then."""
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
        # Thread(target=keep, args=(step, states))
        if name in ("args", "kwargs") and last_name(function) == "Thread":
            yield from self._given_to_thread(call)
        # states.append(step)
        if isinstance(function, ast.Attribute) and function.attr in CHANGES:
            yield from self._holder(unit, function.value)
        for definition in self._definitions(function):
            if isinstance(definition, Class):
                yield from self._given_to_class(definition, index, name)
            else:
                yield from self._given_to(definition, index, name, function)

    def _given_to_thread(self, call: ast.Call) -> Iterator[Step]:
        for target in (one.value for one in call.keywords if one.arg == "target"):
            for definition in self._definitions(target):
                declared = (
                    definition.node.args if isinstance(definition, Function) else None
                )
                for one in (*declared.args, *declared.kwonlyargs) if declared else ():
                    yield ("variable", definition.scope, one.arg), False

    def _given_to(
        self, function: Function, index: int | None, name: str | None, callee: ast.expr
    ) -> Iterator[Step]:
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
    ) -> Iterator[Step]:
        if name is not None:
            yield ("attribute", name), False
        fields: list[str] = []
        for statement in cls.node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=word)):
                    fields.append(word)
                case ast.FunctionDef(name="__init__"):
                    function = self.engine.functions[statement]
                    yield from self._given_to(function, index, name, statement)  # type: ignore[arg-type]
        for base in cls.node.bases:
            for other in self._definitions(base):
                if isinstance(other, Class) and other is not cls:
                    yield from self._given_to_class(other, index, name)
        if index is not None:
            for word in fields[index : index + 1]:
                yield ("attribute", word), False

    def _definitions(self, node: ast.expr) -> list[Function | Class]:
        """The functions and classes that a callee may be, by its name."""
        match node:
            case ast.Attribute(attr=name):
                return [*self.engine.index.defined.get(name, ())]
            case ast.Name(id=name):
                scope = self.engine.reading.scopes[node]
                bound = scope.binding(name)
                return [] if bound is None else self._defined_as(bound, name, set())
            # jax.value_and_grad(loss_fn)(params)
            case ast.Call(func=inner, args=[first, *_]) if last_name(inner) in HANDING:
                return self._definitions(first)
            case ast.Subscript(value=inner) | ast.Call(func=inner):
                return self._definitions(inner)
            case ast.Lambda():
                return [self.engine.functions[node]]
        return []

    def _defined_as(
        self, scope: Scope, name: str, seen: set[tuple[Scope, str]]
    ) -> list[Function | Class]:
        if (scope, name) in seen:
            return []
        seen.add((scope, name))
        found: list[Function | Class] = []
        for binding in self.engine.bindings_of(scope, name):
            found += self._defined_by(binding, seen)
        return found

    def _defined_by(
        self, binding: Binding, seen: set[tuple[Scope, str]]
    ) -> list[Function | Class]:
        match binding.node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self.engine.functions[binding.node]]
            case ast.ClassDef():
                return [self.engine.class_of(binding.node)]
            case ast.arg():
                return []
            case ast.ImportFrom():
                assert binding.alias is not None
                return [*self.engine.index.defined.get(binding.alias.name, ())]
        # p_step = jax.pmap(partial(step, model))
        found: list[Function | Class] = []
        node = binding.source
        while isinstance(node, ast.Call) and node.args:
            if last_name(node.func) not in HANDING:
                break
            node = node.args[0]
        if isinstance(node, ast.Name):
            scope = self.engine.reading.scopes[node]
            bound = scope.binding(node.id)
            if bound is not None:
                found += self._defined_as(bound, node.id, seen)
        elif isinstance(node, ast.Attribute):
            found += self.engine.index.defined.get(node.attr, ())
        elif isinstance(node, ast.Lambda):
            found.append(self.engine.functions[node])
        return found

    def _comes_back(
        self, call: ast.Call, child: ast.AST, given: list[Step], is_held: bool
    ) -> bool:
        """Whether what a call is given, or what holds it, may be in what it gives."""
        name = last_name(call.func)
        if name in HANDING:
            # list(states), dict(state=state)
            return is_held or name not in EMPTYING or isinstance(child, ast.keyword)
        for (word, *rest), _ in given:
            if word == "attribute":
                return True
            scope, argument = rest
            assert isinstance(scope, Scope)
            if not isinstance(scope.node, FunctionNode):
                return True
            if self._hands_back(scope.node, argument):
                return True
        return False

    def _hands_back(self, function: FunctionNode, name: object) -> bool:
        """Whether a function may give back a parameter, or a function with it."""
        if function not in self._back:
            named: set[str] = set()
            for inner in ast.walk(function):
                if isinstance(inner, ast.Return | ast.Lambda | ast.Yield) or (
                    isinstance(inner, ast.FunctionDef) and inner is not function
                ):
                    parts = (
                        one for one in ast.walk(inner) if isinstance(one, ast.Name)
                    )
                    named.update(one.id for one in parts)
            self._back[function] = named
        return name in self._back[function]


def _counterpart(target: ast.expr, value: ast.expr, within: ast.AST) -> ast.expr:
    """What of a target gets `within`, a part of the value: `b`, of `y` in `a, b = x, y`."""
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            is_starred = any(isinstance(one, ast.Starred) for one in targets + values)
            if within in values and len(targets) == len(values) and not is_starred:
                return targets[values.index(within)]
    return target


def _captured(pattern: ast.pattern) -> Iterator[str]:
    """The names that a pattern binds."""
    for part in ast.walk(pattern):
        if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
            yield part.name
