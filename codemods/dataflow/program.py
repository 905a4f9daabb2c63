"""Who calls whom, and what belongs to which function."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from codemods.dataflow.control_flow import ENTRY, FunctionNode, Order, Owner
from codemods.dataflow.pure import CALLING
from codemods.inference.containers import POOL
from codemods.inference.objects import (
    Class,
    Container,
    Derivative,
    External,
    Function,
    Method,
    Object,
    Partial,
    Place,
)
from codemods.inference.scopes import Scope
from codemods.inference.view import View
from codemods.sources.bindings import ScopeNode
from codemods.sources.modules import Unit

Members = dict[str, list[Function]]
Callees = dict[ast.AST, dict[FunctionNode, None]]


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
        self._orders: dict[Owner, Order] = {}
        self._sites: dict[ast.AST, EvaluationSite | None] = {}
        self._members: dict[Class, Members] = {}

    def objects(self, node: ast.AST) -> tuple[Object, ...]:
        """What an expression may hold, as far as that is known."""
        place: Place = node
        if isinstance(node, ast.expr):
            place = self.flow.places.get(node)
        if place is None:
            return ()
        return tuple(self.flow.solver.at(place))

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
        if not owner:
            return ""
        return f"{owner}.{node.attr}"

    # Places in the code

    def order(self, owner: Owner) -> Order:
        if owner not in self._orders:
            self._orders[owner] = Order(owner)
        return self._orders[owner]

    def site(self, unit: Unit, node: ast.AST) -> EvaluationSite | None:
        """Where a node is evaluated; None for what never is, such as an annotation.

        The arguments of a function stand for its beginning.
        """
        function = unit.parents.get(node)
        # Parameters get their values before anything in the body is evaluated.
        if isinstance(node, ast.arguments) and isinstance(function, FunctionNode):
            return EvaluationSite(unit, function, ENTRY)
        if node not in self._sites:
            owner = owner_of(unit, node)
            number = self.order(owner).at.get(node)
            site = None
            if number is not None:
                site = EvaluationSite(unit, owner, number)
            self._sites[node] = site
        return self._sites[node]

    # Variables

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        """The scopes, by what opens them."""
        found: dict[ast.AST, Scope] = {}
        for scope in self.flow.modules.values():
            found[scope.node] = scope
        for node, scope in self.flow.reading.scopes.items():
            found.setdefault(scope.node, scope)
            if isinstance(node, ast.ClassDef):
                found[node] = scope
        for node, function in self.functions.items():
            found[node] = function.scope
        return found

    def scope(self, unit: Unit, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        scopes = self.flow.reading.scopes
        if isinstance(node, ast.expr) and node in scopes:
            return scopes[node]
        for outer in unit.ancestors(node):
            if isinstance(outer, ScopeNode) and outer in self.scopes:
                return self.scopes[outer]
        return self.flow.modules[unit]

    def objects_at(self, scope: Scope, name: str) -> tuple[Object, ...]:
        """What a variable may hold."""
        place = ("variable", scope, name)
        return tuple(self.flow.solver.at(place))

    # Functions

    def unit_of(self, node: ast.AST) -> Unit:
        """The file in which a node stands."""
        if isinstance(node, ast.expr):
            scope = self.flow.reading.scopes.get(node)
            if scope is not None:
                return scope.unit
        units = self.flow.project.read
        # The tree of a file has no parent.
        return next(unit for unit in units if node in unit.parents or node is unit.tree)

    @cached_property
    def functions(self) -> dict[ast.AST, Function]:
        """The functions that anything may hold, by their definitions."""
        found: dict[ast.AST, Function] = {}
        for unit in self.flow.project.read:
            for node in unit.nodes:
                if not isinstance(node, FunctionNode):
                    continue
                for item in self.flow.solver.at(node):
                    if isinstance(item, Function) and item.node is node:
                        found[node] = item
        return found

    @cached_property
    def callees(self) -> Callees:
        """The functions that a call reaches, through whatever hands them on."""
        found: Callees = defaultdict(dict)
        for node, sites in self.flow.entered.items():
            if isinstance(node, FunctionNode):
                for site, _ in sites:
                    found[site.node][node] = None
        return found

    def callers(self, function: FunctionNode) -> list[EvaluationSite] | None:
        """The calls of a function; None if others may call it than those in view."""
        entered = self.flow.entered.get(function, ())
        if isinstance(function, ast.Lambda) and not entered:
            return self._mapping(function)
        found: list[EvaluationSite] = []
        for call, _ in entered:
            # A call without an expression, such as that of a property, has no place in the order.
            if not isinstance(call.node, ast.expr):
                return None
            site = self.site(call.unit, call.node)
            if site is None:
                return None
            found.append(site)
        return found or None

    def _mapping(self, function: ast.Lambda) -> list[EvaluationSite] | None:
        """The call of which a lambda is an argument, if that does nothing but call it.

        `jax.tree_map(lambda p, g: p - g, params, grads)` is one.
        """
        unit = self.unit_of(function)
        call = unit.parents.get(function)
        if not isinstance(call, ast.Call):
            return None
        if self.full_name(call.func) not in CALLING:
            return None
        site = self.site(unit, call)
        return None if site is None else [site]

    def members(self, cls: Class) -> Members:
        """The functions that a class and its bases define, nearest first."""
        if cls not in self._members:
            found: Members = defaultdict(list)
            for ancestor in self.flow.ancestry(cls):
                if not isinstance(ancestor, Class):
                    continue
                for node in ancestor.node.body:
                    if isinstance(node, FunctionNode) and node in self.functions:
                        function = self.functions[node]
                        found[node.name].append(function)
            self._members[cls] = found
        return self._members[cls]


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


def is_any(item: Object) -> bool:
    """Whether an object stands for what code out of view gives, which may be any."""
    return isinstance(item, Container) and item.role == POOL


def owner_of(unit: Unit, node: ast.AST) -> Owner:
    """The function, or module, in whose course a node is evaluated."""
    inner = node
    for outer in unit.ancestors(node):
        # Defaults and decorators are evaluated outside the function that they belong to.
        if isinstance(outer, ast.Lambda) and inner is outer.body:
            return outer
        if (
            isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
            and inner in outer.body
        ):
            return outer
        inner = outer
    return unit.tree
