"""Copies of an optimizer on all devices, what is stored of them, and state dicts. More of what is left is in test_refusals."""

import pytest

from tests.codemods.programs import changes, left, migrated, result_of

BEFORE = """import jax
import jax.numpy as jnp
from flax import jax_utils, optim, serialization, traverse_util
from flax.training import checkpoints


def make(params):
    return optim.Adam(0.1).create(params)


"""
AFTER = """import jax
import jax.numpy as jnp
import optax
from flax import jax_utils, serialization, traverse_util
from flax.training import checkpoints, train_state
{more}

def make(params):
    return train_state.TrainState.create(
        apply_fn=None, params=params, tx=optax.adam(0.1)
    )


"""
ONE_COPY = '''

def one_copy(state):
    """A train state to be stored: if it has a copy for each device, one of them."""
    return jax_utils.unreplicate(state) if jnp.ndim(state.step) else state
'''
AS_MANY_COPIES = '''

def as_many_copies(state, restored):
    """A restored train state: if `state` has a copy for each device, as many."""
    if not jnp.ndim(state.step):
        return restored
    return jax_utils.replicate(restored, jax.local_devices()[: len(state.step)])
'''


def legacy(text: str) -> str:
    """A program that makes an optimizer, and goes on with this."""
    return BEFORE + text


def modern(text: str) -> str:
    """The same, migrated, with the helpers that it uses."""
    helpers = (ONE_COPY, AS_MANY_COPIES)
    used = [each for each in helpers if each.split("(")[0].split()[1] + "(" in text]
    return AFTER.format(more="".join(used)) + text


REWRITTEN = """
== one that is restored before it is replicated, and stored unreplicated
  def train(params, directory, step):
      optimizer = make(params)
      optimizer = checkpoints.restore_checkpoint(directory, optimizer)
-     optimizer = optimizer.restore_state(checkpoints.restore_checkpoint(directory, None))
-     optimizer = optimizer.replicate()
-     checkpoints.save_checkpoint(directory, optimizer.unreplicate(), step)
-     return serialization.msgpack_serialize(optimizer.unreplicate().state_dict())
+     optimizer = serialization.from_state_dict(
+         optimizer, checkpoints.restore_checkpoint(directory, None)
+     )
+     optimizer = jax_utils.replicate(optimizer)
+     checkpoints.save_checkpoint(directory, jax_utils.unreplicate(optimizer), step)
+     return serialization.msgpack_serialize(
+         serialization.to_state_dict(jax_utils.unreplicate(optimizer))
+     )
== copies on some devices
  def train(params):
-     two = make(params).replicate(jax.local_devices()[:2])
-     return two, make(params).replicate(devices=jax.devices())
+     two = jax_utils.replicate(make(params), jax.local_devices()[:2])
+     return two, jax_utils.replicate(make(params), jax.devices())
== an axis by position, over which each step averages
  def step(optimizer, grads):
-     return optimizer.apply_gradient(grads)
+     return optimizer.apply_gradients(grads=jax.lax.pmean(grads, axis_name="devices"))

  def train(params, devices, grads):
-     optimizer = make(params).replicate(devices, "devices")
+     optimizer = jax_utils.replicate(make(params), devices)
      return jax.pmap(step, axis_name="devices")(optimizer, grads)
== one copy is stored where there are several
  def train(params, directory, batches):
      optimizer = make(params)
-     optimizer = optimizer.replicate()
+     optimizer = jax_utils.replicate(optimizer)
      for step, _ in enumerate(batches):
-         checkpoints.save_checkpoint(directory, optimizer, step)
+         checkpoints.save_checkpoint(directory, one_copy(optimizer), step)
== a state dict of several copies was one of a single copy
  def train(params, file):
      optimizer = make(params)
-     optimizer = optimizer.replicate()
-     file.write(serialization.msgpack_serialize(optimizer.state_dict()))
-     return optimizer.restore_state(serialization.msgpack_restore(file.read()))
+     optimizer = jax_utils.replicate(optimizer)
+     file.write(
+         serialization.msgpack_serialize(
+             serialization.to_state_dict(one_copy(optimizer))
+         )
+     )
+     return as_many_copies(
+         optimizer,
+         serialization.from_state_dict(
+             one_copy(optimizer), serialization.msgpack_restore(file.read())
+         ),
+     )
"""


@pytest.mark.parametrize(("before", "after"), changes(REWRITTEN))
def test_copies_and_state_dicts(before: str, after: str) -> None:
    assert migrated(legacy(before)) == modern(after)


STORED = """
    {}
    from flax import optim
    from flax.training import checkpoints

    def keep(state):
        return state

    def train(params, directory, step):
        optimizer = optim.Adam(0.1).create(params)
        optimizer = optimizer.replicate()
        checkpoints.save_checkpoint(directory, {}, step)
    """


def test_what_another_function_gives_may_still_have_its_copies() -> None:
    result = result_of(STORED.format("import os", "keep(optimizer)"))
    assert "11 FO913" in left(result)


IMPORTED = {
    "from flax import jax_utils": "jax_utils.unreplicate(optimizer)",
    "from flax.jax_utils import unreplicate": "unreplicate(optimizer)",
}


@pytest.mark.parametrize(("imported", "call"), IMPORTED.items(), ids=IMPORTED)
def test_what_is_stored_unreplicated_has_none(imported: str, call: str) -> None:
    after = migrated(STORED.format(imported, call))
    assert f"checkpoints.save_checkpoint(directory, {call}, step)\n" in after


def test_a_state_dict_that_is_restored_by_its_parameters_name() -> None:
    after = migrated("""
        def load(params, stored):
            optimizer = optim.Adam(0.1).create(params)
            return optimizer.restore_state(state=stored)
        """)
    assert "return serialization.from_state_dict(optimizer, stored)" in after
