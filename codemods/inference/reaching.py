"""Which bindings of a variable a read may find: reaching definitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.inference.control_flow import ENTRY, Order, Owner
from codemods.inference.reading import Binding
from codemods.inference.scopes import Scope

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

IN_PLACE = ast.ListComp | ast.SetComp | ast.DictComp
"""Scopes of which the code runs where it stands."""

Numbered = dict[int, Binding]


class Reaching:
    """Divides variables that a function or module begins anew: `optimizer = …` a second time.

    A binding that depends on the variable itself, as `optimizer = step(optimizer)`, continues what
    was there: so nothing is lost where it is not known what a call gives.
    """

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._orders: dict[Owner, Order] = {}
        self._divided: dict[tuple[Scope, str], Numbered | None] = {}
        self._known: dict[ast.Name, list[Binding] | None] = {}

    def order(self, owner: Owner) -> Order:
        if owner not in self._orders:
            self._orders[owner] = Order(owner)
        return self._orders[owner]

    def bindings(self, name: ast.Name) -> list[Binding] | None:
        """The bindings that a read may find; None if that may be any of the variable."""
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def _found(self, name: ast.Name) -> list[Binding] | None:
        around = self.engine.scopes[name]
        scope = around.binding(name.id)
        while isinstance(around.node, IN_PLACE) and around.parent is not None:
            around = around.parent
        # a function within may run at any time
        if scope is None or around is not scope or isinstance(name.ctx, ast.Store):
            return None
        numbers = self._divide(scope, name.id)
        start = None if numbers is None else self._order_of(scope).at.get(name)
        if numbers is None or start is None:
            return None
        found: dict[int, None] = {}
        pending = [start]
        for number in pending:  # grows while it is read
            for last in self._order_of(scope).last(number, numbers):
                if last not in found:
                    found[last] = None
                    pending += self._reads_within(numbers[last], scope, name.id)
        # code that is never reached
        return [numbers[number] for number in found] or None

    def _order_of(self, scope: Scope) -> Order:
        assert isinstance(scope.node, Owner)
        return self.order(scope.node)

    def _divide(self, scope: Scope, name: str) -> Numbered | None:
        """The bindings of a variable by the number of their evaluation, if it is begun anew."""
        key = (scope, name)
        if key not in self._divided:
            bindings = self.engine.bindings_of(scope, name)
            begun = [one for one in bindings if _begins(one, name)]
            is_local = isinstance(scope.node, Owner) and all(
                one.scope is scope for one in bindings
            )
            numbers = None
            if len(begun) > 1 and is_local:
                numbers = _numbered(bindings, self._order_of(scope))
            self._divided[key] = numbers
        return self._divided[key]

    def _reads_within(self, binding: Binding, scope: Scope, name: str) -> Iterator[int]:
        """The evaluations by which a binding reads the variable that it sets."""
        at = self._order_of(scope).at
        if isinstance(binding.node, ast.AugAssign):
            yield at[binding.node]
        for node in _reads(binding, name):
            if node in at:
                yield at[node]


def _reads(binding: Binding, name: str) -> Iterator[ast.Name]:
    """Where the value that a binding sets may be made of what a variable of the name was.

    A part of that is something else: `optim.Adam(rate).create(optimizer.target)`.
    """
    parents = binding.scope.unit.parents
    for node in ast.walk(binding.source) if binding.source is not None else ():
        if isinstance(node, ast.Name) and node.id == name:
            around = parents[node]
            is_called = getattr(parents[around], "func", None) is around
            if is_called or not isinstance(around, ast.Attribute):
                yield node


def _begins(binding: Binding, name: str) -> bool:
    """Whether a binding sets something that is not made of what the variable was."""
    if isinstance(binding.source, ast.Constant):
        return False
    return not isinstance(binding.node, ast.AugAssign) and not any(
        _reads(binding, name)
    )


def _numbered(bindings: list[Binding], order: Order) -> Numbered | None:
    """Bindings by the number of their evaluation; None if one of them has none of its own."""
    found: Numbered = {}
    for binding in bindings:
        number = _number(binding.node, order)
        if number is None or number in found:
            return None
        found[number] = binding
    return found


def _number(node: ast.AST, order: Order) -> int | None:
    """The number of the evaluation that binds a name."""
    match node:
        case ast.arg():
            return ENTRY
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return order.at.get(target)
        case ast.withitem(optional_vars=ast.expr() as target):
            return order.at.get(target)
        case ast.Match():
            return None
    return order.at.get(node)
