"""Traversals: one that chooses parameters for an optimizer is its predicate, any other stays what it is."""

import pytest

from tests.codemods.programs import changes, migrated
from tests.codemods.test_alike import assert_alike

PROGRAMS = """
== one that counts beside one that chooses
  def create(params):
-     kernels = optim.ModelParamTraversal(filter_fn=lambda path, _: "kernel" in path)
-     biases = optim.ModelParamTraversal(lambda path, _: "bias" in path)
+     kernels = lambda path, _: "kernel" in path
+     biases = ModelParamTraversal(lambda path, _: "bias" in path)
      print(len(list(biases.iterate(params))))
-     return optim.MultiOptimizer((kernels, optim.Adam(0.1))).create(params)
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=partition_by_path((kernels, optax.adam(0.1)))
+     )
== a pair in a variable
  def create(params):
-     pair = (optim.ModelParamTraversal(lambda path, _: "kernel" in path), optim.Adam(0.1))
-     return optim.MultiOptimizer(pair).create(params)
+     pair = (lambda path, _: "kernel" in path, optax.adam(0.1))
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=partition_by_path(pair)
+     )
"""


@pytest.mark.parametrize(("before", "after"), changes(PROGRAMS))
def test_traversals(before: str, after: str) -> None:
    code = migrated("from flax import optim\n\n\n" + before)
    assert code.endswith("\n\n\n" + after)


CHOSEN = """
import jax
import jax.numpy as jnp
from flax import optim

def weights():
    return optim.ModelParamTraversal(lambda path, _: "w" in path)

def create(params, is_first{default}):
    {statements}

def run():
    found = []
    for is_first in (True, False):
        optimizer = {call}
        grads = jax.tree_util.tree_map(jnp.ones_like, optimizer.target)
        found.append(optimizer.apply_gradient(grads).target)
    return found
"""
CALL = "create({'w': jnp.ones(2), 'b': jnp.ones(3)}, is_first)"
CHOICES = {
    "none of it": (
        "focus = optim.ModelParamTraversal(lambda path, _: 'w' in path) if is_first else None; "
        "return optim.Momentum(0.1).create(params, focus=focus)"
    ),
    "another one": (
        "group = (optim.ModelParamTraversal(lambda path, _: 'w' in path) if is_first else "
        "optim.ModelParamTraversal(lambda path, _: 'b' in path)); "
        "return optim.MultiOptimizer((group, optim.Adam(0.1))).create(params)"
    ),
    "no focus at all": "return optim.Adam(0.1).create(params, focus=None)",
    "a default": "return optim.Adam(0.1).create(params, focus=focus)",
}


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_is_made_at_run_time(choice: str) -> None:
    call, default = CALL, ""
    if choice == "a default":
        call = f"{CALL[:-1]}, weights()) if is_first else {CALL}"
        default = ", focus=None"
    text = CHOSEN.format(statements=CHOICES[choice], default=default, call=call)
    assert_alike(text)


@pytest.mark.usefixtures("legacy_wheel")
def test_a_step_that_is_chosen_is_in_parentheses() -> None:
    statements = (
        "optimizer = optim.Momentum(0.1).create(params); "
        "step = optimizer.apply_gradient if is_first else (lambda grads: optimizer); "
        "return step(params)"
    )
    after = assert_alike(CHOSEN.format(statements=statements, default="", call=CALL))
    assert "step = (lambda grads, " in after
