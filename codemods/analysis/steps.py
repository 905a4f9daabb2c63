"""The step that an optimizer counts: an array in legacy, and a plain number in a `TrainState` that has taken none under `jit`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.analysis.handling import Handling, names_of, tree_function
from codemods.analysis.origins import Variable
from codemods.analysis.uses import Use
from codemods.flow.objects import External, Function, Object, Partial, Thing
from codemods.sources.modules import Unit
from codemods.vocabulary import REMATERIALIZE

COMPUTING = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.BoolOp,
    ast.Tuple,
    ast.List,
    ast.Starred,
    ast.keyword,
)
TAKING_NUMBERS = ("jax.", "numpy.")
"""The packages whose functions take a number wherever they take an array."""


ZERO = "{jnp}.zeros((), {jnp}.int32)"


class Steps:
    """Finds where something asks more of a step than a number can do."""

    def __init__(self, handling: Handling) -> None:
        self.facts = handling.facts
        self.origins = handling.origins
        self.handling = handling

    def zero(self, optimizers: Iterable[Thing]) -> str:
        """What counts no step yet, for optimizers that are made."""
        return ZERO if any(map(self.is_array, optimizers)) else "0"

    def read(self, use: Use, owner: ast.expr, text: str) -> str:
        """The template of what reads the step of an owner: `text`, or an array of it where a number will not do."""
        owners = self.facts.things(owner, "optimizer")
        is_array = all(thing.evidence == "proven" and self.is_array(thing) for thing in owners)
        number_will_do = is_array or not (
            isinstance(use.node, ast.Attribute) and self.needs_array(use.node, use.unit)
        )
        return text if number_will_do else f"{{jnp}}.asarray({text}, {{jnp}}.int32)"

    def is_array(self, optimizer: Thing) -> bool:
        """Whether an optimizer has to be made with an array for its step."""
        others = (outer for outer, inner in self.facts.legacy.links if inner is optimizer)
        return optimizer in self._array_steps or not self._array_steps.isdisjoint(others)

    @cached_property
    def _array_steps(self) -> frozenset[Thing]:
        """The optimizers of which something asks more of the step than a number can do, beside `.state.step`."""
        found: set[Thing] = set()
        for _, call in self.facts.flow.reading.calls:
            name = tree_function(self.facts, call)
            if name in ("flatten", "leaves") or (
                name in ("map", "multimap") and self._asks_leaves(call)
            ):
                found.update(self.handling.held(call))
        for function in self._rematerialized():
            for site, _ in self.facts.flow.entered[function.node]:
                found.update(
                    self.handling.held(site.node) if isinstance(site.node, ast.Call) else ()
                )
        return frozenset(found)

    def _rematerialized(self) -> Iterator[Function]:
        """The functions that are wrapped by `jax.checkpoint`, which makes numbers into some of a type of its own."""
        for _, call in self.facts.flow.reading.calls:
            if not REMATERIALIZE.isdisjoint(self.facts.externals(call.func)):
                yield from (
                    one for argument in call.args[:1] for one in self.facts.functions(argument)
                )
        for function in self.facts.flow.reading.functions:
            decorators = (
                [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
            )
            if any(not REMATERIALIZE.isdisjoint(self.facts.externals(one)) for one in decorators):
                yield function

    def _asks_leaves(self, call: ast.Call) -> bool:
        """Whether the function of a `tree_map` may ask more of a leaf than a number can do."""
        function = call.args[0] if call.args else None
        return function is None or not all(map(self._takes_numbers, self._functions(function)))

    def _functions(self, node: ast.expr) -> Iterable[Object | None]:
        name = self.facts.full_name(node)
        return list(self.facts.objects(node)) or [External(name) if name else None]

    def _takes_numbers(self, item: Object | None) -> bool:
        match item:
            case External(name=name):
                return name.startswith(TAKING_NUMBERS)
            case Partial(function=function):
                return self._takes_numbers(function)
            case Function(node=node):
                leaves = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
                several = [node.args.vararg.arg] if node.args.vararg is not None else []
                uses = [
                    *self._loads(item, leaves),
                    *(_element(load, item) for load in self._loads(item, several)),
                ]
                return all(self._is_number(use, item) for use in uses)
        return False

    def _loads(self, function: Function, names: Iterable[str]) -> list[ast.Name]:
        """Where parameters of a function are read."""
        return [
            load for name in names for load in self.origins.loads(Variable(function.scope, name))
        ]

    def _is_number(self, node: ast.AST, function: Function) -> bool:
        """Whether a number will do for a leaf where it is used."""
        parent = function.unit.parents.get(node)
        match parent:
            case ast.Lambda() | ast.Return():
                return True
            case ast.Subscript(value=value, slice=index) if value is node:
                return _is_of_stacked(index)
            case ast.Call(func=called) if called is not node:
                return any(name.startswith(TAKING_NUMBERS) for name in names_of(self.facts, called))
            case ast.BinOp(op=ast.MatMult()):
                return False
        return isinstance(parent, COMPUTING) and self._is_number(parent, function)

    def needs_array(self, read: ast.Attribute | ast.Subscript, unit: Unit) -> bool:
        """Whether the step that is read at a place is asked for what a plain number does not have or do."""
        parent = unit.parents.get(read)
        if isinstance(parent, ast.Call) and {"builtins.int", "builtins.float"} & {
            *self.facts.externals(parent.func)
        }:
            return False
        steps = self.facts.things(read, "step")
        return self._asks(read, unit) or not self._asked_steps.isdisjoint(steps)

    @cached_property
    def _asked_steps(self) -> frozenset[Thing]:
        """The steps of optimizers of which something that gets them asks what only an array has."""
        asked: set[Thing] = set()
        for node, scope in self.facts.flow.reading.scopes.items():
            if isinstance(
                node, ast.Name | ast.Attribute | ast.Subscript | ast.Call
            ) and not self._is_read(node):
                steps = self.facts.things(node, "step")
                if steps and self._asks(node, scope.unit):
                    asked.update(steps)
        return frozenset(asked)

    def _is_read(self, node: ast.expr) -> bool:
        """Whether this is `x.state.step` itself, of which the rule for it decides."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "step"
            and bool(self.facts.things(node.value, "state"))
        )

    def _asks(self, node: ast.expr, unit: Unit, at_least_one: bool = False) -> bool:
        """Whether a step, or what is computed of it, is asked for what a plain number does not have or do."""
        parent = unit.parents.get(node)
        match parent:
            case ast.Attribute():
                return True
            case ast.Subscript(value=value, slice=index) if value is node:
                return not _is_of_stacked(index)
            case ast.BinOp(left=left, op=ast.Pow()) if left is node and not at_least_one:
                return not _is_positive(parent.right)
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right) if right is node:
                return not at_least_one or self._asks(parent, unit)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                other = right if left is node else left
                return self._asks(parent, unit, at_least_one or _is_positive(other))
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp():
                return self._asks(parent, unit)
            case ast.Assign(targets=[ast.Name() as name]) if not self.facts.things(node, "step"):
                return any(
                    self._asks(load, unit, at_least_one)
                    for load in self.origins.loads_of(name, node)
                )
            case ast.Call(func=function):
                return "builtins.isinstance" in self.facts.externals(function)
        return False


def _element(node: ast.Name, function: Function) -> ast.AST:
    """Of a tuple of leaves, what stands for one of them: `xs[0]`, or else the tuple."""
    parent = function.unit.parents.get(node)
    return parent if isinstance(parent, ast.Subscript) and parent.value is node else node


def _is_of_stacked(index: ast.expr) -> bool:
    """Whether an index can only be that of an array with a dimension, which no number has ever been."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    numbers = (part.value for part in parts if isinstance(part, ast.Constant))
    return any(isinstance(part, ast.Slice) for part in parts) or any(
        isinstance(one, int) for one in numbers
    )


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value > 0
