"""Traversals: one that chooses parameters for an optimizer is its predicate, any other stays what it is."""

import pytest

from tests.codemods.programs import changes, migrated

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
