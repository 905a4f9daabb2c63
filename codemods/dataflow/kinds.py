"""The kinds of expressions: text, numbers, arrays, containers, as far as that is certain."""

from __future__ import annotations

import ast
from typing import get_args

from codemods.dataflow import pure
from codemods.dataflow.control_flow import FunctionNode
from codemods.dataflow.definitions import Definitions
from codemods.dataflow.effects import Variable
from codemods.dataflow.program import Program, is_any
from codemods.inference.binding import Bound, bind_values, signature_of
from codemods.inference.objects import Container, Result
from codemods.sources.bindings import Comprehension
from codemods.vocabulary import COPY, GET, full_names

TEXT, TEXTS, NUMBER, ARRAY, SCHEDULE = "text", "texts", "number", "array", "schedule"
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
DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, *get_args(Comprehension))
"""What makes elements where it stands; a generator is used up there."""

ITERATORS = frozenset(("generator", "map", "zip", "enumerate", "chain"))


class Kinds:
    """Tells the kinds of expressions by what makes them."""

    def __init__(self, program: Program, definitions: Definitions) -> None:
        self.program = program
        self.definitions = definitions
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
            case ast.IfExp(body=first, orelse=second):
                kind = self.of(first)
                return kind if self.of(second) == kind else ""
            case ast.Name():
                return self._of_name(node)
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
            ):
                return ARRAY if self.of(value) == ARRAY else ""
            case ast.Call():
                return self._of_call(node)
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
        kinds = {self._of_store(store, variable) for store in stores}
        return _only(kinds)

    def _of_store(self, store: ast.AST, variable: Variable) -> str:
        parent = variable.unit.parents.get(store)
        match store, parent:
            # rate = 0.1
            case ast.Name(), ast.Assign(targets=[_], value=value):
                return self.of(value)
            # rate: float = 0.1
            case ast.Name(), ast.AnnAssign(value=ast.expr() as value):
                return self.of(value)
            # for word in text.split():
            case ast.Name(), (
                ast.For(iter=source) | ast.comprehension(iter=source)
            ) if parent.target is store:
                return TEXT if self.of(source) == TEXTS else ""
            case ast.arg(), ast.arguments():
                return self._of_parameter(store.arg, variable.scope.node)
        return ""

    def _of_parameter(self, name: str, function: ast.AST) -> str:
        """The kind of all that is given for a parameter, if all calls are in view."""
        if not isinstance(function, FunctionNode):
            return ""
        if self.program.callers(function) is None:
            return ""
        kinds: set[str] = set()
        for site, offset in self.program.flow.entered[function]:
            # step(*args), step(**options)
            if site.starred is not None or site.unpacked:
                kinds.add("")
                continue
            signature = signature_of(function.args, offset)
            found = bind_values(signature, site.positional, site.keywords)
            given = None
            if isinstance(found, Bound):
                given = found.complete.get(name)
            kinds.add(self.of(given) if isinstance(given, ast.expr) else "")
        return _only(kinds)

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
        if name.startswith(pure.SCHEDULES):
            return SCHEDULE
        match node.func:
            # text.split(), array.sum()
            case ast.Attribute(value=owner, attr=method):
                if self.has_method(owner, method):
                    return TEXTS if method in SPLITTING else self.of(owner)
        return ""

    def is_schedule(self, node: ast.expr) -> bool:
        """Whether a function is a schedule or transformation of a library, and so is pure."""
        if self.of(node) == SCHEDULE:
            return True
        for item in self.program.objects(node):
            # rate = optax.cosine_decay_schedule(…)
            if isinstance(item, Result) and pure.is_pure(item.name):
                return True
        return False

    def has_method(self, owner: ast.expr, name: str) -> bool:
        """Whether a method of an expression is known by its kind, and so changes nothing."""
        return name in METHODS.get(self.of(owner), ())

    def is_immutable(self, node: ast.expr) -> bool:
        """Whether nothing can set an element of what an expression gives."""
        return self.of(node) in (TEXT, NUMBER, ARRAY)

    def is_again(self, node: ast.expr) -> bool:
        """Whether an expression gives the same elements each time: no iterator, used up once."""
        if isinstance(node, DISPLAYS):
            return True
        if self.of(node) in (TEXT, TEXTS, ARRAY):
            return True
        if isinstance(node, ast.Call):
            name = self.program.full_name(node.func)
            # zip(xs, ys)
            if name in LAZY:
                return all(map(self.is_again, node.args))
            if self._makes_anew(name):
                return True
            match node.func:
                case ast.Attribute(value=owner, attr="items" | "keys" | "values"):
                    return self._are_containers(owner)
        value = self.definitions.only_value(node)
        # batches = load_batches()
        if isinstance(value, ast.Call):
            name = self.program.full_name(value.func)
            return self._makes_anew(name) or self._are_containers(node)
        if value is not None and not isinstance(value, ast.GeneratorExp):
            return self.is_again(value)
        return self._are_containers(node)

    @staticmethod
    def _makes_anew(name: str) -> bool:
        """Whether an external function gives something new that is no iterator."""
        return pure.is_pure(name) and name not in LAZY and name not in UNKNOWN

    def _are_containers(self, node: ast.expr) -> bool:
        """Whether all that an expression may be is containers, and no iterators."""
        items = self.program.objects(node)
        for item in items:
            if not isinstance(item, Container) or is_any(item):
                return False
            if item.role in ITERATORS or isinstance(item.node, ast.GeneratorExp):
                return False
        return bool(items)


def _only(kinds: set[str]) -> str:
    """The kind of several values, if all have the same."""
    return kinds.pop() if len(kinds) == 1 else ""
