"""Which bindings of a variable a read may find: reaching definitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.inference.control_flow import ENTRY, Narrowed, Order, Owner
from codemods.inference.reading import Binding
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

IN_PLACE = ast.ListComp | ast.SetComp | ast.DictComp
"""Scopes of which the code runs where it stands."""

Numbered = dict[int, Binding]


class Reaching:
    """Divides variables that a function or module begins anew: `optimizer = …` a second time.

    So does a test that tells what a variable is: `if isinstance(x, optim.Optimizer): x = x.target`.

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
        while _runs_in_place(name, around.node) and around.parent is not None:
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
            narrowed = self._narrowed(scope, name) if is_local else {}
            numbers = None
            if is_local and (len(begun) > 1 or narrowed):
                numbers = _numbered(bindings, self._order_of(scope))
            self._divided[key] = None if numbers is None else numbers | narrowed
        return self._divided[key]

    def _narrowed(self, scope: Scope, name: str) -> Numbered:
        """The ways on which more is known of a variable, as bindings, by their numbers."""
        reads = self.engine.index.reads.get((scope, name), ())
        tested = [one for one in reads if self._is_tested(scope.unit, one)]
        ways = self._order_of(scope).at.items() if tested else ()
        return {
            number: Binding(node, scope, node.name)
            for node, number in ways
            if isinstance(node, Narrowed) and node.name in tested
        }

    def _is_tested(self, unit: Unit, read: ast.Name) -> bool:
        """Whether a test may tell legacy objects from others."""
        match unit.parents[read]:
            case ast.Call(func=ast.Name(id="isinstance" | "hasattr"), args=[_, kind]):
                return self.engine.library.tells_apart(kind)
        return False

    def _reads_within(self, binding: Binding, scope: Scope, name: str) -> Iterator[int]:
        """The evaluations by which a binding reads the variable that it sets."""
        at = self._order_of(scope).at
        # what it has is that which the test has
        if isinstance(binding.node, Narrowed):
            return
        if isinstance(binding.node, ast.AugAssign):
            yield at[binding.node]
        for node in _reads(binding, name):
            if node in at:
                yield at[node]


def _runs_in_place(name: ast.Name, scope: ast.AST) -> bool:
    """Whether a name in a scope is read where that stands, and not at any time."""
    match scope:
        # sum(leaf.size for leaf in jax.tree_util.tree_leaves(params))
        case ast.GeneratorExp(generators=[first, *_]):
            return any(one is name for one in ast.walk(first.iter))
    return isinstance(scope, IN_PLACE)


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
