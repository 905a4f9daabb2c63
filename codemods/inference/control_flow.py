"""The evaluations of a function or module, in every order that may be: a control-flow graph."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from codemods.inference.binding import values_of
from codemods.inference.reading import FunctionNode
from codemods.sources.bindings import Comprehension

Owner = ast.Module | FunctionNode
Loop = ast.For | ast.AsyncFor | ast.While
Edges = list[list[int]]
Reached = dict[tuple[bool, int, int], frozenset[int]]
ENTRY, EXIT = 0, 1


class Narrowed(ast.AST):
    """A way that is taken only if a test of a name holds, or does not: `isinstance(x, Kind)`."""

    def __init__(self, name: ast.Name, test: ast.Call, holds: bool) -> None:
        super().__init__()
        self.name = name
        self.test = test
        self.holds = holds


class Order:
    """The evaluations of an owner's own code, by number, and which may follow which.

    An expression is evaluated when all that it is made of has been; a simple statement has its own
    number at its end. The body of a class and what a comprehension does count as done in place; a
    function within is its definition alone. Where an exception may lead, a path leads, so that
    there may be more paths here than the program can take, never fewer.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.nodes: list[ast.AST] = [owner, owner]
        self.at: dict[ast.AST, int] = {}
        self.after: Edges = [[], []]
        self.before: Edges = [[], []]
        self._known: Reached = {}
        _Builder(self).build()

    def add(self, node: ast.AST) -> int:
        """A new number, for the evaluation of a node."""
        self.nodes.append(node)
        self.after.append([])
        self.before.append([])
        number = len(self.nodes) - 1
        self.at[node] = number
        return number

    def connect(self, first: int, second: int) -> None:
        if second not in self.after[first]:
            self.after[first].append(second)
            self.before[second].append(first)

    def forward(self, number: int, without: int = -1) -> frozenset[int]:
        """What may come after an evaluation, on paths that do not lead through another.

        In a loop, it comes after itself.
        """
        return self._reached(self.after, number, without)

    def backward(self, number: int, without: int = -1) -> frozenset[int]:
        """What may have come before an evaluation, on paths that do not lead through another."""
        return self._reached(self.before, number, without)

    def _reached(self, edges: Edges, number: int, without: int) -> frozenset[int]:
        key = (edges is self.after, number, without)
        if key not in self._known:
            pending = [one for one in edges[number] if one != without]
            found = set(pending)
            while pending:
                for one in edges[pending.pop()]:
                    if one != without and one not in found:
                        found.add(one)
                        pending.append(one)
            self._known[key] = frozenset(found)
        return self._known[key]

    def between(self, first: int, second: int) -> frozenset[int]:
        """What may happen after an evaluation, if that is not repeated, and before another."""
        after = self.forward(first, without=first)
        before = self.backward(second, without=first)
        return after & before

    def last(self, number: int, some: Container[int]) -> list[int]:
        """Those of some evaluations that may be the last of them before another."""
        found: dict[int, None] = {}
        seen = {number}
        pending = list(self.before[number])
        while pending:
            one = pending.pop()
            if one in some:
                found[one] = None
            elif one not in seen:
                seen.add(one)
                pending += self.before[one]
        return list(found)

    def dominates(self, first: int, second: int) -> bool:
        """Whether each path to the second evaluation leads through the first."""
        if first in (ENTRY, second):
            return True
        return second not in self.forward(ENTRY, without=first)


class _Builder:
    """Walks the code of an owner; `ends` are the evaluations that the next one follows.

    `loops` has for each loop around where `continue` leads, and from where `break` comes.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.ends: set[int] = {ENTRY}
        self.loops: list[tuple[int, set[int]]] = []
        self.guarded: list[set[int]] = []

    def build(self) -> None:
        owner = self.order.owner
        if isinstance(owner, ast.Lambda):
            self.expression(owner.body)
        else:
            self.body(owner.body)
        self._lead_to(EXIT)

    def _emit(self, node: ast.AST) -> int:
        number = self.order.add(node)
        self._lead_to(number)
        self.ends = {number}
        for guarded in self.guarded:
            guarded.add(number)
        return number

    def _lead_to(self, number: int) -> None:
        for end in self.ends:
            self.order.connect(end, number)

    @contextmanager
    def _guard(self) -> Iterator[set[int]]:
        """Collects the evaluations of which any may be the last."""
        guarded = set(self.ends)
        self.guarded.append(guarded)
        yield guarded
        self.guarded.pop()

    # Statements

    def body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test):
                self.expression(test)
                start = self.ends
                self._narrow(test, holds=True)
                self.body(node.body)
                ends, self.ends = self.ends, start
                self._narrow(test, holds=False)
                self.body(node.orelse)
                self.ends = self.ends | ends
            case ast.For() | ast.AsyncFor():
                self.expression(node.iter)
                self._loop(node, node.target)
            case ast.While():
                self._loop(node, node.test)
            # with except*, of which Python 3.10 has no node
            case ast.stmt() if hasattr(node, "handlers"):
                self._try(cast(ast.Try, node))
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Match():
                self._match(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._expressions(node.decorator_list)
                self._expressions(_defaults(node.args))
                self._emit(node)
            case ast.ClassDef():
                self._expressions(node.decorator_list)
                self._expressions(node.bases)
                self._expressions(word.value for word in node.keywords)
                self.body(node.body)
                self._emit(node)
            case _:
                self._simple(node)

    def _simple(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self.expression(value)
                for target in targets:
                    self.expression(target)
            # rate: float = 0.1, but `rate: float` alone sets nothing
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._expressions([value, target])
            # state.step += 1: `state` first, then the value, then the attribute.
            case ast.AugAssign(
                target=ast.Attribute() | ast.Subscript() as target, value=value
            ):
                self._expressions(ast.iter_child_nodes(target))
                self.expression(value)
                self._emit(target)
            case ast.AugAssign(target=target, value=value):
                self._expressions([value, target])
            case ast.Global() | ast.Nonlocal() | ast.Pass():
                return
            case _:
                self._expressions(ast.iter_child_nodes(node))
        self._emit(node)
        self._leave(node)

    def _leave(self, node: ast.stmt) -> None:
        """Go where a statement leads that ends a block."""
        match node:
            case ast.Return() | ast.Raise():
                self._lead_to(EXIT)
            case ast.Break() if self.loops:
                _, breaks = self.loops[-1]
                breaks.update(self.ends)
            case ast.Continue() if self.loops:
                head, _ = self.loops[-1]
                self._lead_to(head)
            case _:
                return
        self.ends = set()

    def _narrow(self, test: ast.expr, holds: bool) -> None:
        """Go the way on which a test holds, or does not."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._narrow(operand, not holds)
            # isinstance(x, Kind) and x.step > 0
            case ast.BoolOp(op=operator, values=values):
                if isinstance(operator, ast.And) is holds:
                    for value in values:
                        self._narrow(value, holds)
            case ast.Call(
                func=ast.Name(id="isinstance" | "hasattr"),
                args=[ast.Name() as name, _],
            ):
                self._emit(Narrowed(name, test, holds))

    def _loop(self, node: Loop, first: ast.expr) -> None:
        """A loop: at its head it asks for the next element, or whether to go on."""
        head = self._emit(node)
        if isinstance(node, ast.While):
            self.expression(first)
        done = set(self.ends)
        match first:
            # while True: only `break` leads out of it
            case ast.Constant(value=value) if value:
                done = set()
        breaks: set[int] = set()
        self.loops.append((head, breaks))
        # for batch in batches: a name is set only if there is another element
        if not isinstance(node, ast.While):
            self.expression(first)
        self.body(node.body)
        self._lead_to(head)
        self.ends = done
        self.loops.pop()
        self.body(node.orelse)
        self.ends |= breaks

    def _try(self, node: ast.Try) -> None:
        with self._guard() as anywhere:
            # A handler may follow any evaluation of the body.
            with self._guard() as guarded:
                self.body(node.body)
            self.body(node.orelse)
            ends = set(self.ends)
            for handler in node.handlers:
                self.ends = set(guarded)
                self._expressions([handler.type])
                self._emit(handler)
                self.body(handler.body)
                ends |= self.ends
        self.ends = ends
        if not node.finalbody:
            return
        # `finally` may follow any evaluation; an exception, `return`, `break` or `continue` go on.
        self.ends = ends | anywhere
        self.body(node.finalbody)
        self._lead_to(EXIT)
        if self.loops:
            head, breaks = self.loops[-1]
            breaks.update(self.ends)
            self._lead_to(head)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.expression(item.context_expr)
            self._emit(item)
            self._expressions([item.optional_vars])
        with self._guard() as guarded:
            self.body(node.body)
        # A context manager may swallow an exception.
        self.ends |= guarded
        self._emit(node)

    def _match(self, node: ast.Match) -> None:
        self.expression(node.subject)
        # A case is tried where others have failed, at any part of their patterns.
        with self._guard() as anywhere:
            for case in node.cases:
                self.ends = set(anywhere)
                for part in ast.walk(case.pattern):
                    self._emit(part)
                self._expressions([case.guard])
                self.body(case.body)
        self.ends = anywhere

    # Expressions

    def _expressions(self, nodes: Iterable[ast.AST | None]) -> None:
        """What is evaluated for those of some nodes that are expressions."""
        for node in nodes:
            if isinstance(node, ast.expr):
                self.expression(node)

    def expression(self, node: ast.expr) -> None:
        """What is evaluated for an expression or stored in a target, and that last."""
        match node:
            case (
                ast.BoolOp(values=[first, *others])
                | ast.Compare(left=first, comparators=others)
            ):
                self.expression(first)
                ends: set[int] = set()
                # It may end behind each operand; a comparison evaluates at least two.
                if isinstance(node, ast.BoolOp):
                    ends |= self.ends
                for other in others:
                    self.expression(other)
                    ends |= self.ends
                self.ends = ends
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.expression(test)
                start = self.ends
                self._narrow(test, holds=True)
                self.expression(body)
                ends, self.ends = self.ends, start
                self._narrow(test, holds=False)
                self.expression(orelse)
                self.ends = self.ends | ends
            case ast.Lambda(args=arguments):
                self._expressions(_defaults(arguments))
            case ast.NamedExpr(target=target, value=value):
                self._expressions([value, target])
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    self._expressions([key, value])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, node.generators)
            case ast.Call(func=function):
                self._expressions((function, *values_of(node)))
            case _:
                self._expressions(ast.iter_child_nodes(node))
        self._emit(node)

    def _comprehension(
        self, node: Comprehension, generators: list[ast.comprehension]
    ) -> None:
        # In the innermost loop stands the element.
        if not generators:
            if isinstance(node, ast.DictComp):
                self._expressions([node.key, node.value])
            else:
                self.expression(node.elt)
            return
        first, *others = generators
        self.expression(first.iter)
        head = self._emit(first)
        self.expression(first.target)
        # After a condition that fails comes the next element.
        for condition in first.ifs:
            self.expression(condition)
            self._lead_to(head)
        self._comprehension(node, others)
        self._lead_to(head)
        self.ends = {head}


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    """What is evaluated where a function is defined."""
    # A parameter by keyword alone may have none: `*, rate, momentum=0.9`.
    by_keyword = filter(None, arguments.kw_defaults)
    return [*arguments.defaults, *by_keyword]
