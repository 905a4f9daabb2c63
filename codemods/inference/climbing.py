"""Where what stands at a node is put: a variable, a parameter, an attribute, a container."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.callees import Callees
from codemods.inference.containers import CHANGING, MERGING, METHODS, SAME
from codemods.inference.depth import HANDING, given_by, handed_back, put, taken
from codemods.inference.objects import Class, Function
from codemods.inference.reading import (
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

Stop: TypeAlias = tuple[object, ...]
"""A variable, an attribute of a name, the value of a node, or what a function gives."""

Step: TypeAlias = tuple[Stop, int]
"""A stop, and in how many containers what is there is, one in another."""

PUTTING = CHANGING - {"sort"}
"""Methods that may put what they are given into a container."""


@dataclass
class Here:
    """What becomes of something at one stop."""

    calls: dict[ast.Call, None] = field(default_factory=dict)
    changes: dict[ast.Call | ItemStore, None] = field(default_factory=dict)
    decorated: dict[Function | Class, None] = field(default_factory=dict)
    nodes: dict[tuple[Unit, ast.expr], None] = field(default_factory=dict)


class Climbing:
    """Climbs from a node through what is around it."""

    def __init__(self, engine: Inference, callees: Callees) -> None:
        self.engine = engine
        self.callees = callees
        self._back: dict[ast.FunctionDef, set[str]] = {}
        """The names that may be in what each function gives."""

    def climb(
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
            for taker in chain.from_iterable(map(self.callees.of, targets)):
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
        for definition in self.callees.of(function):
            if isinstance(definition, Class):
                given = self.given_to_class(definition, index, name)
            else:
                given = self.given_to(definition, index, name)
            for stop, is_packed in given:
                yield stop, put(depth) if is_packed else depth

    def given_to(
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

    def given_to_class(
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
                    yield from self.given_to(function, index, name)
        for base in cls.node.bases:
            for other in self.callees.of(base):
                if isinstance(other, Class) and other is not cls:
                    yield from self.given_to_class(other, index, name)
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
