"""What an expression may be, by its syntax."""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.binding import arguments_in
from codemods.inference.containers import GENERATOR
from codemods.inference.control_flow import Narrowed
from codemods.inference.objects import (
    Arguments,
    Class,
    Container,
    External,
    Frame,
    Function,
    InFrame,
    Instance,
    Key,
    Layout,
    LegacyObject,
    Made,
    Object,
    Place,
    Result,
    plain,
)
from codemods.inference.reading import Binding, function_around, key_of
from codemods.inference.solver import whole

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]

OTHERS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.AugAssign,
    ast.AnnAssign,
    ast.ExceptHandler,
    Narrowed,
)
"""What binds a name to more than what it takes from one place."""

JOINING = ast.Add | ast.BitOr
"""The operators that make a container of two."""

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
    ast.BitXor: "xor",
    ast.BitAnd: "and",
}
"""The special methods of operators."""


class Expressions:
    """Equations of expressions."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine

    def same(self, node: ast.expr, frame: Frame | None) -> Place | None:
        """The place for which an expression is only a name, if it is."""
        if isinstance(node, ast.Name):
            return self.engine.names.meant(node, frame)
        if isinstance(node, ast.Attribute):
            return ("attribute of", ("expression", node.value, frame), node.attr)
        return None

    def expression(self, node: ast.expr, frame: Frame | None) -> Answer:
        match node:
            case ast.Name():
                return (yield from self.engine.names.read(node, frame))
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
                yield whole(("expression", value, frame))
            case ast.YieldFrom(value=value):
                return (yield from self._returned(value, frame))
            case ast.Yield():
                return (yield from self._sent(node))
            case ast.Lambda():
                return [self._in(self.engine.functions[node], frame)]
            case ast.Starred(value=value):
                yield whole(("each of", ("expression", value, frame)))
        return []

    @staticmethod
    def _in(item: Container | Function, frame: Frame | None) -> Object:
        return item if frame is None else InFrame(item, frame)

    def _any(
        self, nodes: list[ast.expr] | tuple[ast.expr, ...], frame: Frame | None
    ) -> Answer:
        for node in nodes:
            yield whole(("expression", node, frame))
        return []

    def _call(self, node: ast.Call, frame: Frame | None) -> Answer:
        unit = self.engine.scopes[node].unit
        arguments = arguments_in(unit, node, frame)
        callee = ("expression", node.func, frame)
        yield whole(("invoked", callee, arguments))
        return []

    def _subscript(
        self, node: ast.Subscript, value: ast.expr, key: ast.expr, frame: Frame | None
    ) -> Answer:
        place = ("expression", value, frame)
        found: list[Object] = []
        if isinstance(key, ast.Slice):
            part = Layout(Container(node, "slice"), ((None, ("each of", place)),))
            for item in (yield place):
                if isinstance(plain(item), Container):
                    found.append(part)
                else:
                    found += yield from self.engine.elements.item_of(item, None)
            return found
        yield whole(("item of", place, key_of(key)))
        # sys.modules[name]
        if External("sys.modules") in (yield place):
            call = ast.Call(value, [key], [])
            unit = self.engine.scopes[node].unit
            found += self.engine.names.import_module(call, unit)
        return found

    def _binary(self, node: ast.BinOp, frame: Frame | None) -> Answer:
        """`left op right`: an operand, or a container of both."""
        name = OPERATORS[type(node.op)]
        found: list[Object] = []
        parts: list[tuple[Key, Place]] = []
        for operand, method in (
            (node.left, f"__{name}__"),
            (node.right, f"__r{name}__"),
        ):
            side = ("expression", operand, frame)
            for item in (yield side):
                match plain(item):
                    # [state] * count; arithmetic on a list computes an array of it
                    case Container():
                        if isinstance(node.op, JOINING) or _is_repeated(node):
                            parts.append((None, ("each of", side)))
                    case Instance(cls=cls):
                        if (yield from self.engine.heap.has(cls, method)):
                            found.append(item)
                    case External() | Result() | Class() | LegacyObject():
                        found.append(item)
        if parts:
            box = Container(node, "concatenation")
            found.append(Layout(box, tuple(dict.fromkeys(parts))))
        return found

    def _returned(self, node: ast.expr, frame: Frame | None) -> Answer:
        """What other generators return, or other coroutines give."""
        found: list[Object] = []
        for item in (yield ("expression", node, frame)):
            box = plain(item)
            if isinstance(box, Container) and box.role == GENERATOR:
                own = item.frame if isinstance(item, InFrame) else None
                for value in self.engine.values_returned(box.node):
                    found += yield ("expression", value, own)
            else:
                found.append(item)
        return found

    def _sent(self, node: ast.Yield) -> Answer:
        """What a generator gets: `log = logger(); next(log); log.send(state)`."""
        around = function_around(self.engine.scopes[node])
        found: list[Object] = []
        for call in self.engine.index.called.get("send", ()):
            match call:
                case ast.Call(func=ast.Attribute(value=owner), args=[given, *_]):
                    items = yield ("expression", owner, None)
                    if Container(around, GENERATOR) in map(plain, items):  # type: ignore[arg-type]
                        found += yield ("expression", given, None)
        return found

    def bound(self, binding: Binding, frame: Frame | None) -> Answer:
        """What a binding sets its name to."""
        frame = self.engine.frame_for(binding.scope, frame)
        node = binding.node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return (yield from self._decorated(node, frame))
            case ast.ClassDef():
                cls = self.engine.class_of(node)
                # whatever else a decorator makes of it, as `dataclass` does
                return [cls, *(yield from self._decorated(node, frame))]
            case ast.AugAssign():
                return [*(yield ("expression", node.value, frame))]
            case ast.ExceptHandler():
                return [*(yield ("raised",))]
            case Narrowed():
                return (yield from self._narrowed(node, frame))
        if binding.source is None:
            return []
        # table["step"]: int = …
        yield whole(self._taken(binding, binding.source, frame))
        yield whole(("annotated", node.target))  # type: ignore[attr-defined]
        return []

    def _narrowed(self, way: Narrowed, frame: Frame | None) -> Answer:
        """What a variable may be where a test of it holds, or does not."""
        kind = way.test.args[1]
        kinds = yield ("expression", kind, frame)
        word = kind.value if isinstance(kind, ast.Constant) else None
        found: list[Object] = []
        for item in (yield ("expression", way.name, frame)):
            passes = self.engine.library.passes(item, kinds, word)
            if passes is None or passes is way.holds:
                found.append(item)
        return found

    def source(self, binding: Binding, frame: Frame | None) -> Place | None:
        """The place from which a binding takes all that it sets its name to, if there is one."""
        if binding.source is None or isinstance(binding.node, OTHERS):
            return None
        own = self.engine.frame_for(binding.scope, frame)
        return self._taken(binding, binding.source, own)

    @staticmethod
    def _taken(binding: Binding, source: ast.expr, frame: Frame | None) -> Place:
        place: Place = ("expression", source, frame)
        for word, key in binding.steps:
            place = _stepped(place, word, key, binding)
        return place

    def _decorated(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        frame: Frame | None,
    ) -> Answer:
        """A function or class, as its decorators give it.

        A decorator of which nothing is known hands it through.
        """
        own = self.engine.definition(node)
        unit = own.unit
        found: list[Object] = [
            self._in(own, frame) if isinstance(own, Function) else own
        ]
        for decorator in reversed(node.decorator_list):
            given: list[Object] = []
            callees = yield ("expression", decorator, frame)
            for callee in callees:
                for item in found:
                    arguments = Arguments(
                        unit, decorator, (("itself", item),), frame=frame
                    )
                    given += yield from self.engine.calls.invoke(callee, arguments)
            known = [item for item in given if not isinstance(item, Result)]
            found = [*dict.fromkeys(known or found)]
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


def _is_repeated(node: ast.BinOp) -> bool:
    """Whether an operation repeats a list or tuple that is written out: `[state] * 3`."""
    displays = ast.List | ast.Tuple
    return isinstance(node.op, ast.Mult) and (
        isinstance(node.left, displays) or isinstance(node.right, displays)
    )


def _stepped(place: Place, word: str, key: Key, binding: Binding) -> Place:
    match word:
        case "item":
            return ("item of", place, key)
        case "each":
            return ("each of", place)
        case "turn":
            return ("turn of", place)
        case "enter" | "aenter":
            return ("entered", place, f"__{word}__")
        case "attribute":
            return ("attribute of", place, key)
    return ("rest of", place, binding.node)
