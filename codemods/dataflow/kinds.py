"""The kinds of expressions: text, numbers, arrays, containers, as far as that is certain."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from codemods.dataflow import pure
from codemods.dataflow.definitions import Definitions
from codemods.dataflow.effects import Variable
from codemods.dataflow.program import Program
from codemods.inference.objects import Container
from codemods.vocabulary import COPY, GET, full_names

TEXT, TEXTS, NUMBER, ARRAY = "text", "texts", "number", "array"
METHODS = {
    TEXT: pure.TEXT_METHODS,
    NUMBER: pure.NUMBER_METHODS,
    ARRAY: pure.ARRAY_METHODS,
}

LAZY = full_names("builtins", "enumerate zip reversed map filter iter super")
UNKNOWN = (COPY | GET) | {"builtins.getattr", "typing.cast", "dataclasses.replace"}
"""Functions that may give back an iterator that is an argument."""

NUMBERS = full_names("builtins", "abs int float len round bool pow divmod hash ord")
SPLITTING = ("split", "rsplit", "splitlines")
MAKING_TEXT = full_names("builtins", "str repr chr hex bin ascii")
ITERATORS = frozenset(("generator", "map", "zip", "enumerate", "chain"))


class Kinds:
    """Tells the kinds of expressions by what makes them."""

    def __init__(self, program: Program, definitions: Definitions) -> None:
        self.program = program
        self.definitions = definitions
        self.flow = program.flow
        self._known: dict[ast.expr, str] = {}

    def of(self, node: ast.expr) -> str:
        """The kind of an expression; empty if it is not known."""
        if node not in self._known:
            # While it is being found out: what depends on itself is of no kind.
            self._known[node] = ""
            self._known[node] = self._of(node)
        return self._known[node]

    def _of(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                return TEXT
            case ast.Constant(value=int() | float() | complex()):
                return NUMBER
            case ast.BinOp(left=left, right=right):
                return self._of_both(self.of(left), self.of(right))
            case ast.UnaryOp(operand=operand):
                return self.of(operand)
            # ["train", "eval"]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                kinds = {*map(self.of, elements)}
                return TEXTS if kinds == {TEXT} else ""
            # [name.strip() for name in names]
            case ast.ListComp(elt=element):
                return TEXTS if self.of(element) == TEXT else ""
            # x.T, x.at[0], x[0]
            case (
                ast.Attribute(value=value, attr="T" | "at" | "real" | "imag")
                | ast.Subscript(value=value)
            ) if self.of(value) == ARRAY:
                return ARRAY
            case ast.IfExp(body=body, orelse=other):
                return _only(map(self.of, (body, other)))
            case ast.Call():
                return self._of_call(node)
            case ast.Name():
                return self._of_name(node)
        return ""

    def _of_name(self, node: ast.Name) -> str:
        """The kind of all values that a name may have where it is read."""
        variable = self.definitions.variable(node)
        if variable is None:
            return ""
        stores = self.definitions.reaching(node, variable)
        if stores is None:
            # Set in another function: it is the same if only one statement sets it.
            stores = self.definitions.stores(variable)
            if len(stores) != 1:
                return ""
        return _only(self._of_store(store, variable) for store in stores)

    def _of_store(self, store: ast.AST, variable: Variable) -> str:
        match store, variable.unit.parents.get(store):
            # rate = 0.1, rate: float = 0.1
            case ast.Name(), (
                ast.Assign(targets=[_], value=ast.expr() as value)
                | ast.AnnAssign(value=ast.expr() as value)
            ):
                return self.of(value)
            # for word in text.split():
            case ast.Name(), (
                ast.For(target=target, iter=source)
                | ast.comprehension(target=target, iter=source)
            ) if target is store:
                return TEXT if self.of(source) == TEXTS else ""
            case ast.arg(), ast.arguments():
                function = self.flow.engine.function_with(store)
                if self.program.callers(function.node) is not None:
                    given = self.flow.sources.given(function, store)
                    return _only(
                        self.of(one) if isinstance(one, ast.expr) else ""
                        for one in given
                    )
        return ""

    @staticmethod
    def _of_both(left: str, right: str) -> str:
        if TEXT in (left, right):
            return TEXT
        if ARRAY in (left, right):
            return ARRAY
        return left if left == right else ""

    def _of_call(self, node: ast.Call) -> str:
        name = self.program.full_name(node.func)
        if name in NUMBERS:
            return NUMBER
        if name in MAKING_TEXT:
            return TEXT
        if name.startswith(pure.ARRAY_MODULES):
            return ARRAY
        match node.func:
            # text.split(), array.sum()
            case ast.Attribute(value=owner, attr=method):
                if self.has_method(owner, method):
                    return TEXTS if method in SPLITTING else self.of(owner) or TEXT
        return ""

    def has_method(self, owner: ast.expr, name: str) -> bool:
        """Whether a method of an expression is known by its kind, and so changes nothing.

        A method that texts alone have is one of a text, unless something in view has one of that
        name, too.
        """
        kind = self.of(owner)
        if kind:
            return name in METHODS.get(kind, ())
        return name in pure.OF_TEXTS_ALONE and name not in self._defined

    @cached_property
    def _defined(self) -> frozenset[str]:
        """The names of the functions in view."""
        nodes = (function.node for function in self.flow.reading.functions)
        return frozenset(getattr(node, "name", "") for node in nodes)

    def is_immutable(self, node: ast.expr) -> bool:
        """Whether nothing can set an element of what an expression gives."""
        return self.of(node) in (TEXT, NUMBER, ARRAY)

    def is_again(self, node: ast.expr) -> bool:
        """Whether an expression gives the same elements each time: no iterator, used up once."""
        match node:
            # a generator is used up where it stands
            case ast.GeneratorExp():
                return True
            # zip(xs, ys)
            case ast.Call(func=function, args=arguments) if (
                self.program.full_name(function) in LAZY
            ):
                return all(map(self.is_again, arguments))
            case ast.Call(
                func=ast.Attribute(value=owner, attr="items" | "keys" | "values")
            ) if self._are_containers(owner):
                return True
        if self._are_containers(node):
            return True
        value = self.definitions.value(self.definitions.variable(node))
        # batches = load_batches(), but not batches = zip(xs, ys)
        if value is not None and not isinstance(value, ast.Call | ast.GeneratorExp):
            return self.is_again(value)
        return self._is_new(value or node)

    def _is_new(self, node: ast.expr) -> bool:
        """Whether something comes about at an expression, and is no iterator."""
        if isinstance(node, ast.Call):
            name = self.program.full_name(node.func)
            if pure.is_pure(name):
                return name not in LAZY and name not in UNKNOWN
        return self.of(node) in (TEXT, TEXTS, ARRAY)

    def _are_containers(self, node: ast.expr) -> bool:
        """Whether all that an expression may be is containers, and no iterators."""
        items = self.program.objects(node)
        for item in items:
            if not isinstance(item, Container) or item.role in ITERATORS:
                return False
            if isinstance(item.node, ast.GeneratorExp):
                return False
        return bool(items)


def _only(kinds: Iterable[str]) -> str:
    """The kind of several values, if all have the same."""
    found = {*kinds}
    return found.pop() if len(found) == 1 else ""
