"""Gradients that are clipped just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from codemods.analysis.origins import FunctionNode
from codemods.idioms import Unproven
from codemods.idioms.forms import Leaf
from codemods.idioms.links import Link, Links
from codemods.idioms.norms import Norms
from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.objects import Function
from codemods.vocabulary import CLIP_GRADIENTS, MAP_TREES

GLOBAL, EACH = "optax.clip_by_global_norm", "optax.clip"


class Clippings(Links):
    """Gradients that are clipped by their global norm, or by value, and then only go into a step,
    are clipped by `optax.clip_by_global_norm` or `optax.clip` instead. If a condition decides about
    the clipping, the link is `optax.clip_by_global_norm(limit) if condition else optax.identity()`.

    This requires that all steps of the optimizer clip alike, that the limit is known, or can be
    passed, where the optimizer is made, and that it does not change afterwards. The code must call
    `clip_grads` of JAX's old optimizers, scale the leaves by `jnp.minimum(1.0, limit / norm)` or in
    `jnp.where(norm < limit, g, g * (limit / norm))`, or clip them by `jnp.clip(g, -limit, limit)`.
    These equal optax's functions for norms and limits of all kinds, even 0, infinite and negative
    ones. An epsilon in the divisor is another function. All leaves must have the same real type.
    Code that logs the norm stays. Otherwise the code stays as it is, and if it looked like
    clipping, a note says why.
    """

    code = "FO502"
    summary = "clipping just before a step is the first link of the chain"
    kind = "clipping"
    before = """\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    ...
    norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grad)]))
    factor = jnp.minimum(1.0, 0.5 / norm)
    grad = jax.tree_util.tree_map(lambda g: factor * g, grad)
    return optimizer.apply_gradient(grad)
"""
    after = """\
tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
"""

    does = "clip"
    done = "clipped"
    argument = "limit of the clipping"

    def link(self, call: ast.Call) -> Link | None:
        return self._of_call(call, {})

    def may_go(self, value: ast.expr) -> bool:
        return self._norms.tree_of(value) is not None

    @cached_property
    def _norms(self) -> Norms:
        return Norms(self.origins)

    def _of_call(self, call: ast.Call, given: Mapping[str, ast.expr]) -> Link | None:
        """How a call clips a tree; within a function, `given` is what its parameters are."""
        name = self.facts.full_name(call.func)
        match call.args:
            # clip_grads(grads, limit)
            case [ast.Name() as tree, limit] if name in CLIP_GRADIENTS:
                return Link(GLOBAL, self._given(limit, given), tree)
            # jax.tree_map(lambda g: jnp.clip(g, -limit, limit), grads)
            case [ast.Lambda() as function, ast.Name() as tree] if name in MAP_TREES:
                if not call.keywords:
                    return self._of_map(function, tree, given)
        made = self.facts.functions(call.func)
        return self._of_helper(made[0], call) if len(made) == 1 else None

    def _of_helper(self, helper: Function, call: ast.Call) -> Link | None:
        """How a function of the project clips that does nothing else with the gradients it gets."""
        value = self._only_result(helper.node)
        given = _arguments(helper, call)
        if not isinstance(value, ast.Call) or given is None:
            return None
        found = self._of_call(value, given)
        if found is None:
            return None
        before = self._given(found.before, given)
        is_known = (
            isinstance(found.argument, ast.Constant) or found.argument in given.values()
        )
        # a tree that is no parameter is not what the call gives
        if before is found.before or not isinstance(before, ast.Name) or not is_known:
            return None
        return replace(found, before=before)

    def _only_result(self, helper: FunctionNode) -> ast.expr | None:
        """What a function returns that does nothing but set variables of its own."""
        if not isinstance(helper, ast.FunctionDef) or helper.decorator_list:
            return None
        *before, last = helper.body
        if not all(map(self._only_sets, before)):
            return None
        if not isinstance(last, ast.Return) or last.value is None:
            return None
        return self.origins.expanded(last.value)

    def _only_sets(self, statement: ast.stmt) -> bool:
        """Whether a statement only sets or deletes variables, or is a docstring."""
        match statement:
            case ast.Assign(targets=[ast.Name() | ast.Tuple()], value=value):
                return self.facts.dataflow.has_no_effect(value)
            case ast.Expr(value=ast.Constant()) | ast.Delete():
                return True
        return False

    def _given(self, node: ast.expr, given: Mapping[str, ast.expr]) -> ast.expr:
        """What a call gives for a parameter that is never set anew; any other expression itself."""
        variable = self.origins.variable(node)
        if variable is None or self.origins.parameter(variable) is None:
            return node
        return given.get(variable.name, node)

    def _of_map(
        self,
        function: ast.Lambda,
        tree: ast.Name,
        given: Mapping[str, ast.expr],
    ) -> Link | None:
        """How a function of each leaf clips it, if it has a form that means what optax does."""
        if len(function.args.args) != 1:
            return None
        leaf = Leaf(self.origins, function.args.args[0].arg, function.body, tree)
        for kind, limit in (
            (GLOBAL, leaf.clipped_by_norm()),
            (EACH, leaf.clipped_by_value()),
        ):
            if limit is not None:
                return Link(kind, self._given(limit, given), tree)
        if leaf.has_norm():
            raise Unproven(
                "it is not done for all norms as `optax.clip_by_global_norm` does it"
            )
        return None


def _arguments(helper: Function, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call gives for each parameter of a function, defaults included."""
    if isinstance(helper.node, ast.Lambda):
        return None
    found = bind(signature_of(helper.node.args), call)
    if not isinstance(found, Bound) or found.unpacked or found.rest or found.others:
        return None
    return found.complete


IDIOM = Clippings
