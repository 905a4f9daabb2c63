"""The step that an optimizer counts.

In legacy it is an array, and in a `TrainState` that took no step under `jit` a plain number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling, tree_function
from codemods.analysis.origins import Origins, Variable
from codemods.analysis.plain_numbers import PACKAGES, PlainNumbers, is_of_stacked
from codemods.analysis.uses import Use
from codemods.inference.objects import External, Function, LegacyObject, Object, Partial
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    REDUCE_OVER_DEVICES,
    REMATERIALIZE,
    SHAPES_OF,
    UNREPLICATE,
)

ZERO = "{jnp}.zeros((), {jnp}.int32)"
MAPPING = ("map", "multimap")


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
        if not self.needs_array(use.node, use.unit) or self._is_abstract(owner):
            return text
        return f"{{jnp}}.asarray({text}, {{jnp}}.int32)"

    def _is_abstract(self, owner: ast.expr) -> bool:
        """Whether an optimizer is one of shapes: its step is none of numbers, but has a type."""
        roots = self.flow.sources.roots(self.flow.places.get(owner))
        calls = [one.func for one in roots if isinstance(one, ast.Call)]
        # jax.eval_shape(definition.create, params)
        of_shapes = [
            not SHAPES_OF.isdisjoint(self.facts.externals(called)) for called in calls
        ]
        return bool(of_shapes) and all(of_shapes)

    def is_array(self, optimizer: LegacyObject) -> bool:
        """Whether an optimizer has to be created with an array as its step."""
        if optimizer in self._array_steps:
            return True
        links = self.facts.legacy.links
        outer = (one for one, inner in links if inner is optimizer)
        return not self._array_steps.isdisjoint(outer)

    @cached_property
    def _array_steps(self) -> frozenset[LegacyObject]:
        """The optimizers with a step that is used as only an array can be, as one of the leaves."""
        found: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            name = tree_function(self.facts, call)
            # jax.tree_map(lambda leaf: leaf[0], optimizer)
            is_mapped = name in MAPPING and not self._maps_numbers(
                call, may_return=True
            )
            # jax.lax.pmean(optimizer, "batch"), after which it may be no whole number
            is_reduced = not REDUCE_OVER_DEVICES.isdisjoint(
                self.facts.externals(call.func)
            )
            if is_mapped or is_reduced or name in ("flatten", "leaves"):
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
            if call.args and self._is_checkpoint(call.func):
                yield from self.facts.functions(call.args[0])
        for function in self.flow.reading.functions:
            # @jax.checkpoint
            decorators = getattr(function.node, "decorator_list", ())
            if any(map(self._is_checkpoint, decorators)):
                yield function

    def _is_checkpoint(self, node: ast.expr) -> bool:
        return not REMATERIALIZE.isdisjoint(self.facts.externals(node))

    def _maps_numbers(self, call: ast.Call, may_return: bool = False) -> bool:
        """Whether a number does as a leaf, for the function of a `tree_map`.

        Args:
          call: that of `tree_map`.
          may_return: whether the function may give back what it computes of a leaf.
        """
        # jax.tree_map(f=function, tree=optimizer)
        if not call.args:
            return False
        # jnp.zeros_like, of a package that nobody follows
        name = External(self.facts.full_name(call.args[0]))
        items = [*self.facts.objects(call.args[0])] or [name]
        return all(self._takes_numbers(item, may_return) for item in items)

    def _takes_numbers(self, item: Object, may_return: bool) -> bool:
        match item:
            case External(name=name):
                return name.startswith(PACKAGES)
            case Partial(function=function):
                return self._takes_numbers(function, may_return)
            case Function(node=node, unit=unit, scope=scope):
                loads = [
                    load
                    for parameter in ast.walk(node.args)
                    if isinstance(parameter, ast.arg)
                    for load in self.origins.loads(Variable(scope, parameter.arg))
                ]
                # lambda value: value
                return all(
                    isinstance(unit.parents.get(load), ast.Lambda | ast.Return)
                    or self.numbers.do(load, unit, may_return)
                    for load in loads
                )
        return False

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
        asked: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            # jax.tree_map(lambda value: value.mean(), {"step": optimizer.state.step})
            if tree_function(self.facts, call) in MAPPING:
                steps = self.handling.optimizers_in(call, "step")
                if steps and not self._maps_numbers(call):
                    asked.update(steps)
        kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
        for node, scope in self.flow.reading.scopes.items():
            if not isinstance(node, kinds) or self._is_read(node):
                continue
            found = self.facts.legacy_objects(node, "step")
            if not found or self.compiled.is_traced(node):
                continue
            if not self.numbers.do(node, scope.unit):
                asked.update(found)
        return frozenset(asked)

    def _is_read(self, node: ast.expr) -> bool:
        """Whether this is `x.state.step` itself, which has a rule of its own."""
        if not isinstance(node, ast.Attribute) or node.attr != "step":
            return False
        return bool(self.facts.legacy_objects(node.value, "state"))
