"""What an expression may be, by its syntax."""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.containers import GENERATOR
from codemods.inference.objects import (
    Arguments,
    Container,
    External,
    Frame,
    Function,
    InFrame,
    Instance,
    Key,
    Layout,
    Made,
    Module,
    Object,
    Place,
    Result,
    plain,
)
from codemods.inference.reading import Binding, function_around, key_of

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or",
    ast.BitAnd: "and",
    ast.BitXor: "xor",
}
"""The special method of each operator, without its underscores: `__add__` and `__radd__`."""

UNARY: dict[type[ast.unaryop], str] = {
    ast.Invert: "__invert__",
    ast.UAdd: "__pos__",
    ast.USub: "__neg__",
}

JOINING = ("add", "mul", "or", "and", "sub", "xor")
"""The operators that make a container of two."""


class Expressions:
    """Equations of expressions."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine

    def expression(self, node: ast.expr, frame: Frame | None) -> Answer:
        match node:
            case ast.Name():
                return (yield from self.engine.names.read(node, frame))
            case ast.Attribute(value=value, attr=name):
                place = ("expression", value, frame)
                return [*(yield ("attribute of", place, name))]
            case ast.Call():
                return (yield from self._call(node, frame))
            case (
                ast.Tuple()
                | ast.List()
                | ast.Set()
                | ast.Dict()
                | ast.ListComp()
                | ast.SetComp()
                | ast.DictComp()
                | ast.GeneratorExp()
            ):
                return [self._in(Container(node), frame)]
            case ast.Subscript(value=value, slice=key):
                return (yield from self._subscript(node, value, key, frame))
            # a if test else b: either
            case ast.IfExp(body=body, orelse=orelse):
                return (yield from self._any((body, orelse), frame))
            case ast.BoolOp(values=values):
                return (yield from self._any(values, frame))
            case ast.BinOp():
                return (yield from self._binary(node, frame))
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return [*(yield ("expression", value, frame))]
            case ast.Lambda():
                return [self._in(self.engine.functions[node], frame)]
            case ast.UnaryOp(op=operator, operand=value):
                found = [*(yield ("expression", value, frame))]
                method = UNARY.get(type(operator))
                for item in tuple(found) if method else ():
                    found += yield from self._operated(item, method or "", node)
                return found
            case ast.YieldFrom(value=value):
                # the value of `yield from` is what the other generator returns
                return [*(yield ("expression", value, frame))]
            case ast.Yield():
                # state = yield metrics, where a caller has `generator.send(state)`
                function = function_around(self.engine.reading.scopes[node])
                # out of a function, `ast` allows it and Python does not
                if function is not None:
                    return [*(yield ("sent to", Container(function, GENERATOR)))]
            case ast.Starred(value=value):
                return [*(yield ("each of", ("expression", value, frame)))]
        return []

    @staticmethod
    def _in(item: Container | Function, frame: Frame | None) -> Object:
        return item if frame is None else InFrame(item, frame)

    def _any(
        self, nodes: list[ast.expr] | tuple[ast.expr, ...], frame: Frame | None
    ) -> Answer:
        found: list[Object] = []
        for node in nodes:
            found += yield ("expression", node, frame)
        return found

    def _call(self, node: ast.Call, frame: Frame | None) -> Answer:
        unit = self.engine.reading.scopes[node].unit
        arguments = self.engine.arguments(unit, node, frame)
        callee = ("expression", node.func, frame)
        found: list[Object] = [*(yield ("invoked", callee, arguments))]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__new__":
            found += yield from self.engine.calls.made_by_new(node, frame)
        return found

    def _subscript(
        self, node: ast.Subscript, value: ast.expr, key: ast.expr, frame: Frame | None
    ) -> Answer:
        place = ("expression", value, frame)
        found: list[Object] = []
        if isinstance(key, ast.Slice):
            part = Layout(Container(node, "slice"), ((None, ("elements at", place)),))
            for item in (yield place):
                if isinstance(plain(item), Container):
                    found.append(part)
                else:
                    found += yield from self.engine.heap.item_of(item, None)
            return found
        found += yield ("item of", place, key_of(key))
        for item in (yield place):
            if isinstance(item, Module):
                self.engine.look_up(item, key_of(key), node)
            found += yield from self._by_name(
                item, key, self.engine.reading.scopes[node].unit
            )
        return found

    def _by_name(self, item: Object, key: ast.expr, unit: object) -> Answer:
        """What a namespace has under a name: `sys.modules[name]`, `vars(module)[name]`."""
        if not isinstance(item, External):
            return []
        match key:
            case ast.Constant(value=str(name)):
                if item.name == "sys.modules":
                    return self.engine.names.module_named(name, unit)  # type: ignore[arg-type]
                member = f"{item.name}.{name}"
                return [External(member)] if self.engine.library.follows(member) else []
            case ast.Name(id="__name__") if item.name == "sys.modules":
                return [Module(unit)]  # type: ignore[arg-type]
        yield from ()
        return []

    def _binary(self, node: ast.BinOp, frame: Frame | None) -> Answer:
        """`left op right`: an operand, a container of both, or what a special method gives."""
        left = ("expression", node.left, frame)
        right = ("expression", node.right, frame)
        name = OPERATORS[type(node.op)]
        found: list[Object] = []
        parts: list[tuple[Key, Place]] = []
        for side, other in ((left, node.right), (right, node.left)):
            for item in (yield side):
                if isinstance(plain(item), Container):
                    if name in JOINING:
                        parts.append((None, ("elements at", side)))
                    continue
                found.append(item)
                for prefix in ("__", "__r"):
                    found += yield from self._operated(
                        item, f"{prefix}{name}__", node, other
                    )
        if parts:
            box = Container(node, "concatenation")
            found.append(Layout(box, tuple(dict.fromkeys(parts))))
        return found

    def bound(self, binding: Binding, frame: Frame | None) -> Answer:
        """What a binding sets its name to."""
        frame = self.engine.frame_for(binding.scope, frame)
        node = binding.node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return (yield from self._decorated(node, frame))
            case ast.ClassDef():
                return [self.engine.class_of(node)]
            case ast.AugAssign():
                return (yield from self._augmented(node, frame))
            case ast.ExceptHandler():
                return [*(yield ("raised",))]
        if binding.source is None:
            return []
        place: Place = ("expression", binding.source, frame)
        for word, key in binding.steps:
            place = _stepped(place, word, key, binding)
        found: list[Object] = [*(yield place)]
        # table["step"]: int = …
        if isinstance(node, ast.AnnAssign):
            found += yield ("annotated", node.target)
        return found

    def _decorated(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame | None
    ) -> Answer:
        """A function, as its decorators give it.

        A decorator of which nothing is known hands its function through.
        """
        found: list[Object] = [self._in(self.engine.functions[node], frame)]
        for decorator in reversed(node.decorator_list):
            given: list[Object] = []
            callees = yield ("expression", decorator, frame)
            unit = self.engine.functions[node].unit
            for callee in callees:
                for item in found:
                    arguments = Arguments(
                        unit, decorator, (("itself", item),), frame=frame
                    )
                    given += yield from self.engine.calls.invoke(callee, arguments)
            known = [item for item in given if not isinstance(item, Result)]
            found = [*dict.fromkeys(known or found)]
        return found

    @staticmethod
    def _operated(
        item: Object, method: str, node: ast.AST, *others: ast.expr
    ) -> Answer:
        """What an operator gives by a special method, whatever the calls around it.

        Numbers of classes of their own are computed with everywhere.
        """
        instance = plain(item)
        if not isinstance(instance, Instance):
            return []
        places = tuple(("expression", other, None) for other in others)
        given = Arguments(instance.cls.unit, node, places)
        return [*(yield ("invoked", ("special", instance, method), given))]

    def _augmented(self, node: ast.AugAssign, frame: Frame | None) -> Answer:
        """`target op= value`: what is added, or what a special method of either gives."""
        source: Place = ("expression", node.value, frame)
        current: Place = ("expression", node.target, frame)
        found: list[Object] = [*(yield source)]
        name = OPERATORS[type(node.op)]
        sides = (
            (current, (f"__i{name}__", f"__{name}__"), node.value),
            (source, (f"__r{name}__",), node.target),
        )
        for side, methods, other in sides:
            for item in (yield side):
                for method in methods:
                    found += yield from self._operated(item, method, node, other)
        return found

    def entered(self, place: Place, method: str) -> Answer:
        """What the name in `with x as name` gets."""
        found = [*(yield place)]
        # a function under `contextlib.contextmanager` yields what the name gets
        found += yield ("each of", place)
        for item in tuple(found):
            if isinstance(item, Instance | Made):
                given = Arguments(item.cls.unit, item.cls.node)
                found += yield ("invoked", ("special", item, method), given)
        return found


def _stepped(place: Place, word: str, key: Key, binding: Binding) -> Place:
    match word:
        case "item":
            return ("item of", place, key)
        case "each":
            return ("each of", place)
        case "enter" | "aenter":
            return ("entered", place, f"__{word}__")
        case "attribute":
            return ("attribute of", place, key)
    return ("rest of", place, binding.node)
