"""The step that an optimizer counts.

In legacy it is an array, and in a `TrainState` that took no step under `jit` a plain number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling, names_of, tree_function
from codemods.analysis.origins import Origins, Variable
from codemods.analysis.plain_numbers import PACKAGES, PlainNumbers, is_of_stacked
from codemods.analysis.uses import Use
from codemods.inference.binding import parameters_of
from codemods.inference.objects import External, Function, LegacyObject, Object, Partial
from codemods.sources.modules import Unit
from codemods.vocabulary import REMATERIALIZE, UNREPLICATE

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
ZERO = "{jnp}.zeros((), {jnp}.int32)"


class Steps:
    """Finds where a step is used as only an array can be."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)
        self.handling = facts.of(Handling)
        self.compiled = facts.of(Compiled)
        self.numbers = facts.of(PlainNumbers)

    def zero(self, optimizers: Iterable[LegacyObject]) -> str:
        """The step of optimizers that are created."""
        return ZERO if any(map(self.is_array, optimizers)) else "0"

    def read(self, use: Use, owner: ast.expr, text: str) -> str:
        """The template that reads the step of an owner.

        It is `text`, or an array of that where a number is not enough.
        """
        if not isinstance(use.node, ast.Attribute):
            return text
        owners = self.facts.legacy_objects(owner, "optimizer")
        if all(obj.evidence == "proven" and self.is_array(obj) for obj in owners):
            return text
        if not self.needs_array(use.node, use.unit):
            return text
        return f"{{jnp}}.asarray({text}, {{jnp}}.int32)"

    def is_array(self, optimizer: LegacyObject) -> bool:
        """Whether an optimizer has to be created with an array as its step."""
        if optimizer in self._array_steps:
            return True
        links = self.facts.legacy.links
        others = (outer for outer, inner in links if inner is optimizer)
        return not self._array_steps.isdisjoint(others)

    @cached_property
    def _array_steps(self) -> frozenset[LegacyObject]:
        """The optimizers with a step that is used as only an array can be, as one of the leaves."""
        found: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            name = tree_function(self.facts, call)
            asks = name in ("flatten", "leaves")
            # jax.tree_map(lambda leaf: leaf[0], optimizer)
            if name in ("map", "multimap"):
                asks = self._asks_leaves(call)
            if asks:
                found.update(self.handling.optimizers_in(call))
        for function in self._rematerialized():
            for site, _ in self.flow.entered[function.node]:
                if isinstance(site.node, ast.Call):
                    found.update(self.handling.optimizers_in(site.node))
        return frozenset(found)

    def _rematerialized(self) -> Iterator[Function]:
        """The functions in `jax.checkpoint`, which makes numbers into objects of its own type."""
        for _, call in self.flow.reading.calls:
            # jax.checkpoint(loss_fn)
            if self._is_checkpoint(call.func):
                for argument in call.args[:1]:
                    yield from self.facts.functions(argument)
        for function in self.flow.reading.functions:
            if isinstance(function.node, ast.Lambda):
                continue
            # @jax.checkpoint
            decorators = function.node.decorator_list
            if any(map(self._is_checkpoint, decorators)):
                yield function

    def _is_checkpoint(self, node: ast.expr) -> bool:
        return not REMATERIALIZE.isdisjoint(self.facts.externals(node))

    def _asks_leaves(self, call: ast.Call) -> bool:
        """Whether the function of a `tree_map` may use a leaf as only an array can be."""
        # jax.tree_map(f=function, tree=optimizer)
        if not call.args:
            return True
        functions = self._functions(call.args[0])
        return not all(map(self._takes_numbers, functions))

    def _functions(self, node: ast.expr) -> Iterable[Object | None]:
        found = list(self.facts.objects(node))
        if found:
            return found
        # jnp.zeros_like, of a package that nobody follows
        name = self.facts.full_name(node)
        return [External(name) if name else None]

    def _takes_numbers(self, item: Object | None) -> bool:
        match item:
            case External(name=name):
                return name.startswith(PACKAGES)
            case Partial(function=function):
                return self._takes_numbers(function)
            case Function(node=node):
                parameters = (*node.args.posonlyargs, *node.args.args)
                names = [one.arg for one in parameters]
                uses: list[ast.AST] = [*self._loads(item, names)]
                # lambda *leaves: sum(leaves)
                several = node.args.vararg
                if several is not None:
                    loads = self._loads(item, [several.arg])
                    uses += [_element(load, item) for load in loads]
                return all(self._is_number(use, item) for use in uses)
        return False

    def _loads(self, function: Function, names: Iterable[str]) -> list[ast.Name]:
        """The places where parameters of a function are read."""
        found: list[ast.Name] = []
        for name in names:
            parameter = Variable(function.scope, name)
            found += self.origins.loads(parameter)
        return found

    def _is_number(self, node: ast.AST, function: Function) -> bool:
        """Whether a leaf is used as a number can be."""
        parent = function.unit.parents.get(node)
        match parent:
            # lambda leaf: leaf
            case ast.Lambda() | ast.Return():
                return True
            # leaf[0], of a replicated optimizer
            case ast.Subscript(value=value, slice=index) if value is node:
                return is_of_stacked(index)
            # jnp.square(leaf)
            case ast.Call(func=called) if called is not node:
                called_names = names_of(self.facts, called)
                return any(name.startswith(PACKAGES) for name in called_names)
            case ast.BinOp(op=ast.MatMult()):
                return False
        return isinstance(parent, COMPUTING) and self._is_number(parent, function)

    def needs_array(self, read: ast.Attribute | ast.Subscript, unit: Unit) -> bool:
        """Whether the step that is read here is used as only an array can be."""
        if self.compiled.is_traced(read) or self._is_replicated(read, unit):
            return False
        if not self.numbers.do(read, unit):
            return True
        # Only the step itself is used elsewhere, too, and no number that is made of it.
        if self.numbers.is_used_up(read, unit):
            return False
        steps = self.facts.legacy_objects(read, "step")
        return not self._asked_steps.isdisjoint(steps)

    def _is_replicated(self, read: ast.expr, unit: Unit) -> bool:
        """Whether a step is one of several devices, or was: replicating makes an array of it."""
        match unit.parents.get(read):
            # optimizer.state.step[0]
            case ast.Subscript(value=value, slice=index) if value is read:
                return is_of_stacked(index)
            # jax_utils.unreplicate(optimizer.state.step)
            case ast.Call() as call if self._is_unreplicated(call):
                return True
        match read:
            # jax_utils.unreplicate(optimizer).state.step
            case ast.Attribute(value=ast.Attribute(value=ast.Call() as call)):
                return self._is_unreplicated(call)
        return False

    def _is_unreplicated(self, call: ast.Call) -> bool:
        return not UNREPLICATE.isdisjoint(self.facts.externals(call.func))

    @cached_property
    def _asked_steps(self) -> frozenset[LegacyObject]:
        """The steps that are used as only an array can be where they have got to."""
        asked = self._mapped_steps()
        kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
        for node, scope in self.flow.reading.scopes.items():
            if not isinstance(node, kinds) or self._is_read(node):
                continue
            steps = self.facts.legacy_objects(node, "step")
            if not steps or self.compiled.is_traced(node):
                continue
            if not self.numbers.do(node, scope.unit):
                asked.update(steps)
        return frozenset(asked)

    def _mapped_steps(self) -> set[LegacyObject]:
        """The steps among the leaves of a tree that a function is mapped over."""
        found: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            # jax.tree_map(lambda value: value.mean(), {"step": optimizer.state.step})
            if tree_function(self.facts, call) in ("map", "multimap"):
                steps = self.handling.optimizers_in(call, "step")
                if steps and not self._maps_numbers(call):
                    found.update(steps)
        return found

    def _maps_numbers(self, call: ast.Call) -> bool:
        """Whether a number does as a leaf, for the function of a `tree_map`."""
        for item in self._functions(call.args[0]) if call.args else [None]:
            if not self._takes_numbers(item):
                return False
            if isinstance(item, Function):
                names = [one.arg for one in parameters_of(item.node.args)]
                loads = self._loads(item, names)
                if not all(self._gives_number(load, item.unit) for load in loads):
                    return False
        return True

    def _gives_number(self, load: ast.Name, unit: Unit) -> bool:
        # lambda value: value
        is_given = isinstance(unit.parents.get(load), ast.Lambda | ast.Return)
        return is_given or self.numbers.do(load, unit)

    def _is_read(self, node: ast.expr) -> bool:
        """Whether this is `x.state.step` itself, which has a rule of its own."""
        if not isinstance(node, ast.Attribute) or node.attr != "step":
            return False
        return bool(self.facts.legacy_objects(node.value, "state"))


def _element(node: ast.Name, function: Function) -> ast.AST:
    """The expression for one leaf of a tuple of leaves: `xs[0]`, or else the tuple."""
    parent = function.unit.parents.get(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return parent
    return node
