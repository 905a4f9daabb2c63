"""The parameters in what a scenario yields."""

from __future__ import annotations

from typing import Any

import jax

from optim2optax.parity.judging.leaves import PyTree


def parameters(tree: PyTree) -> PyTree:
    """A tree with the parameters of every optimizer in the place of the optimizer.

    An optimizer is an `Optimizer`, a `TrainState`, or `(params, opt_state)`. So one scenario serves
    both sides. `run_scenario` applies it to all that a scenario yields.
    """
    return jax.tree_util.tree_map(_parameters, tree, is_leaf=holds_parameters)


def _parameters(node: Any) -> PyTree:
    if _is_legacy_optimizer(node):
        return node.target
    if _is_train_state(node):
        return node.params
    # yield params, opt_state
    if _is_pair(node):
        return node[0]
    return node


def holds_parameters(node: Any) -> bool:
    """Whether this is an optimizer, in any of the forms that `parameters` knows."""
    return _is_legacy_optimizer(node) or _is_train_state(node) or _is_pair(node)


def _is_pair(node: Any) -> bool:
    """Whether this is `(params, opt_state)`, perhaps with the number of steps."""
    if type(node) is not tuple or len(node) not in (2, 3):
        return False
    return _is_optimizer_state(node[1])


def _is_optimizer_state(node: Any) -> bool:
    """Whether this is the state of a gradient transformation, or a tuple of those of a chain."""
    if type(node) is tuple:
        return bool(node) and all(map(_is_optimizer_state, node))
    kind = type(node)
    # optax's states are named tuples.
    if not hasattr(kind, "_fields"):
        return False
    if kind.__module__.startswith("optax."):
        return True
    # Helpers that `rewrite` emits define states such as `ScaleBySumOfSquaresState`.
    return kind.__name__.startswith("ScaleBy")


def _is_legacy_optimizer(node: Any) -> bool:
    return hasattr(node, "optimizer_def") and hasattr(node, "target")


def _is_train_state(node: Any) -> bool:
    return (
        hasattr(node, "tx") and hasattr(node, "opt_state") and hasattr(node, "params")
    )
