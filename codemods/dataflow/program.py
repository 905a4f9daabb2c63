"""Who calls whom, and what belongs to which function."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codemods.dataflow.pure import CALLING
from codemods.inference.control_flow import ENTRY, Order, Owner
from codemods.inference.objects import (
    Class,
    Container,
    Derivative,
    External,
    Function,
    Instance,
    Method,
    Object,
    Partial,
)
from codemods.inference.reading import FunctionNode, function_around
from codemods.inference.scopes import Scope
from codemods.inference.view import View
from codemods.sources.modules import Unit

STATES = (Instance, Container, Class)
"""Abstract objects that have attributes or elements of their own."""

Members = dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]


@dataclass(frozen=True, eq=False)
class EvaluationSite:
    """An evaluation in an owner's code."""

    unit: Unit
    owner: Owner
    number: int


class Program:
    """The functions of a project, the order of what each does, and the calls between them."""

    def __init__(self, flow: View) -> None:
        self.flow = flow
        self._members: dict[Class, Members] = {}

    def objects(self, node: ast.AST) -> tuple[Object, ...]:
        """What an expression may hold, as far as that is known."""
        if isinstance(node, ast.expr):
            return self.flow.solver.at(self.flow.places.read(node))
        return self.flow.solver.at(node)

    def states(self, node: ast.AST) -> frozenset[Object]:
        """The objects with attributes or elements that an expression may be.

        None unless it is known of all what they are.
        """
        return states_of(self.objects(node))

    def objects_at(self, scope: Scope, name: str) -> tuple[Object, ...]:
        """What a variable may hold."""
        return self.flow.solver.at(("variable", scope, name))

    def full_name(self, node: ast.expr) -> str:
        """The full name of what an expression means, as far as imports tell; else empty."""
        items = self.objects(node)
        found = [item.name for item in items if isinstance(item, External)]
        if len(found) == 1:
            return found[0]
        # Attributes of packages that nobody follows have the name of their owner.
        if found or not isinstance(node, ast.Attribute):
            return ""
        owner = self.full_name(node.value)
        return owner and f"{owner}.{node.attr}"

    # Places in the code

    def order(self, owner: Owner) -> Order:
        return self.flow.engine.reaching.order(owner)

    def unit_of(self, node: ast.AST) -> Unit:
        """The file in which a node stands."""
        if isinstance(node, ast.expr) and node in self.flow.reading.scopes:
            return self.flow.reading.scopes[node].unit
        units = self.flow.project.read
        # The tree of a file has no parent.
        return next(unit for unit in units if node in unit.parents or node is unit.tree)

    def scope(self, unit: Unit, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        if isinstance(node, ast.expr):
            return self.flow.reading.scopes[node]
        return self.flow.engine.stands(unit, node)

    def site(self, unit: Unit, node: ast.AST) -> EvaluationSite | None:
        """Where a node is evaluated; None for what never is, such as an annotation.

        The arguments of a function stand for its beginning.
        """
        function = unit.parents.get(node)
        # Parameters get their values before anything in the body is evaluated.
        if isinstance(node, ast.arguments) and isinstance(function, FunctionNode):
            return EvaluationSite(unit, function, ENTRY)
        owner = function_around(self.scope(unit, node)) or unit.tree
        number = self.order(owner).at.get(node)
        return None if number is None else EvaluationSite(unit, owner, number)

    # Functions

    def callees(self, node: ast.AST) -> Iterable[FunctionNode]:
        """The functions that an evaluation calls, through whatever hands them on."""
        return self.flow.engine.callees(node) if isinstance(node, ast.expr) else ()

    def callers(self, owner: Owner) -> list[EvaluationSite] | None:
        """The calls of a function; None if others may call it than those in view.

        None for a module, too.
        """
        if isinstance(owner, ast.Module):
            return None
        calls = [(site.unit, site.node) for site, _ in self.flow.entered[owner]]
        if isinstance(owner, ast.Lambda) and not calls:
            calls = self._mapping(owner)
        found: list[EvaluationSite] = []
        for unit, call in calls:
            # A call without an expression, such as that of a property, has no place in the order.
            site = self.site(unit, call) if isinstance(call, ast.expr) else None
            if site is None:
                return None
            found.append(site)
        return found or None

    def _mapping(self, function: ast.Lambda) -> list[tuple[Unit, ast.AST]]:
        """The call of which a lambda is an argument, if that does nothing but call it.

        `jax.tree_map(lambda p, g: p - g, params, grads)` is one.
        """
        unit = self.unit_of(function)
        call = unit.parents.get(function)
        if isinstance(call, ast.Call) and self.full_name(call.func) in CALLING:
            return [(unit, call)]
        return []

    def members(self, cls: Class) -> Members:
        """The functions that a class and its bases define, nearest first."""
        if cls not in self._members:
            found: Members = defaultdict(list)
            for ancestor in self.flow.ancestry(cls):
                body = ancestor.node.body if isinstance(ancestor, Class) else ()
                for node in body:
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                        found[node.name].append(node)
            self._members[cls] = found
        return self._members[cls]


def states_of(items: Iterable[Object]) -> frozenset[Object]:
    """Objects that have attributes or elements; none if one of them is of another kind."""
    found = frozenset(items)
    return found if all(isinstance(item, STATES) for item in found) else frozenset()


def behind(item: Object) -> Object:
    """What partial applications and derivatives are of; anything else itself."""
    while isinstance(item, Partial | Derivative):
        item = item.function
    return item


def functions_in(items: Iterable[Object]) -> Iterator[Function]:
    """The functions of the project among some objects.

    They may be behind partial applications, methods and derivatives.
    """
    for inner in map(behind, items):
        function = inner.function if isinstance(inner, Method) else inner
        if isinstance(function, Function):
            yield function
