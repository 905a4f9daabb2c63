"""Which functions only ever run under trace, so that their arguments are arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.origins import FunctionNode, Origins
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import COMPILE, CONTROL, MAP_SLICES, PARTIAL, PMAP

TRACING = COMPILE | CONTROL | MAP_SLICES | {PMAP}
"""What calls functions with traced arrays alone."""


class Compiled:
    """Tells where what is read of an optimizer is traced."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.origins = facts.of(Origins)
        self._known: dict[ast.AST, bool] = {}

    def is_traced(self, node: ast.expr) -> bool:
        """Whether a path such as `state.optimizer` starts from a variable of a traced function.

        An optimizer that is created under trace is another thing: its first step is a number.
        """
        root = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        variable = self.origins.variable(root)
        # self.optimizer.state.step: `self` may be static
        if variable is None or variable.name == "self":
            return False
        if not self._is_within_traced(variable.scope):
            return False
        made = self.facts.legacy_objects(node, "optimizer", "state", "step")
        scopes = self.facts.flow.reading.scopes
        return not any(
            self._is_within_traced(scopes[obj.node])
            for obj in made
            if obj.evidence == "proven" and isinstance(obj.node, ast.expr)
        )

    def may_be_traced(self, node: ast.Name) -> bool:
        """Whether a variable is one of a function that is handed to one of JAX, such as `vmap`."""
        variable = self.origins.variable(node)
        for function in _functions(variable.scope) if variable is not None else ():
            if isinstance(function, ast.Lambda):
                continue
            names = [*map(self.facts.full_name, function.decorator_list)]
            for unit, one in self.origins.references(function):
                match unit.parents.get(one):
                    case ast.Call(func=taker) if taker is not one:
                        names += self.facts.externals(taker)
            if any(name.startswith("jax.") for name in names):
                return True
        return False

    def _is_within_traced(self, scope: Scope) -> bool:
        return any(self.runs_traced(one, scope.unit) for one in _functions(scope))

    def runs_traced(self, function: FunctionNode, unit: Unit) -> bool:
        """Whether each call of a function is traced, as far as its file and imports show."""
        if function not in self._known:
            # A function that calls itself is traced if all other calls are.
            self._known[function] = True
            self._known[function] = self._are_all_traced(function, unit)
        return self._known[function]

    def _are_all_traced(self, function: FunctionNode, unit: Unit) -> bool:
        # jax.lax.scan(lambda optimizer, batch: …, optimizer, batches)
        if isinstance(function, ast.Lambda):
            return self._is_handed_on(function, unit)
        # @jax.jit
        if any(map(self._is_tracing, function.decorator_list)):
            return True
        references = self.origins.references(function)
        own = [item for item in references if self._is_plain(item[1])]
        return bool(own) and all(self._is_traced_there(*item) for item in own)

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether a reference to a function may be the function as it is defined.

        With `train_step = jax.jit(step)`, `train_step` is not.
        """
        value = self.origins.value(self.origins.variable(node))
        return not (isinstance(value, ast.Call) and self._is_tracing(value.func))

    def _is_traced_there(self, unit: Unit, node: ast.expr) -> bool:
        """Whether a reference to a function has it traced, or calls it where all is."""
        if self._is_handed_on(node, unit):
            return True
        call = unit.call_of(node)
        return call is not None and self._is_within_traced(self.facts.scope(call))

    def _is_handed_on(self, node: ast.expr, unit: Unit) -> bool:
        """Whether a function is an argument of `jax.jit` or the like, perhaps by `partial`."""
        parent = unit.parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = unit.parents.get(parent)
        if not isinstance(parent, ast.Call) or parent.func is node:
            return False
        if self._is_tracing(parent.func):
            return True
        # jax.jit(functools.partial(train_step, model)), jax.jit(jax.value_and_grad(f))
        is_wrapping = not PARTIAL.isdisjoint(self.facts.externals(parent.func))
        return is_wrapping and self._is_handed_on(parent, unit)

    def _is_tracing(self, node: ast.expr) -> bool:
        # @functools.partial(jax.jit, static_argnums=0)
        if isinstance(node, ast.Call):
            names = self.facts.externals(node.func)
            if not PARTIAL.isdisjoint(names) and node.args:
                return self._is_tracing(node.args[0])
            return self._is_tracing(node.func)
        return not TRACING.isdisjoint(self.facts.externals(node))


def _functions(scope: Scope | None) -> Iterator[FunctionNode]:
    """The functions around a scope, itself among them, from the inside."""
    while scope is not None:
        if isinstance(scope.node, FunctionNode):
            yield scope.node
        scope = scope.parent
