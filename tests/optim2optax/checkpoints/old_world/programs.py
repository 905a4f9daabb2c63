"""Programs that train for a while, by parts that both the legacy and the migrated one have. Runs in the old world, too.

Of each, `fresh` gives the state before the first step, `step` the state after one more, and `restore` the state in a file, as the
program restores it. What is stored is what the program stores.
"""

import types

import flax
import jax
import numpy as np
from flax import jax_utils, serialization
from flax.training import checkpoints


DEVICES = 2
"""So many of the devices that there are."""


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def on_devices(number, *shapes):
    return [numbers(DEVICES, *shape, seed=100 + 10 * number + index) for index, shape in enumerate(shapes)]


def replicated(state):
    return jax_utils.replicate(state, jax.local_devices()[:DEVICES])


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def params_of(state):
    """The parameters of an optimizer, of a train state, or of what holds one."""
    while not hasattr(state, "target") and not hasattr(state, "params"):
        state = state["optimizer"] if isinstance(state, dict) else state.optimizer
    return state.target if hasattr(state, "target") else state.params


class ResumeFromBytes:
    params = {"w": numbers(3, 2), "b": np.zeros(2)}

    def fresh(self, module):
        return module.create_optimizer(self.params)

    def step(self, module, state, number):
        return module.train_step(state, numbers(8, 3, seed=number), numbers(8, 2, seed=number))[0]

    def store(self, module, state):
        return module.save(state)

    def restore(self, module, path):
        return module.restore(self.params, bytes_of(path))


class TrainScript:
    """Replicated for its steps, stored as one copy. Every version of JAX has its own random numbers, so none is used."""

    def fresh(self, module):
        optimizer = module.create_optimizer(0, 3e-3)
        shapes = jax.tree_util.tree_map(np.shape, flax.core.unfreeze(params_of(optimizer)))
        params = jax.tree_util.tree_map(
            lambda shape: numbers(*shape), shapes, is_leaf=lambda node: isinstance(node, tuple)
        )
        name = "target" if hasattr(optimizer, "target") else "params"
        return optimizer.replace(**{name: flax.core.freeze(params) if name == "target" else params})

    def step(self, module, state, number):
        state, _ = module.parallel_step(replicated(state), *on_devices(number, (8, 4), (8, 1)))
        return jax_utils.unreplicate(state)

    def store(self, module, state):
        return serialization.to_bytes(state)

    def restore(self, module, path):
        return module.restore(module.create_optimizer(1, 3e-3), path)


class StateAroundOptimizer:
    def __init__(self, optimizer):
        self.config = {"optimizer": optimizer, "learning_rate": 0.05}

    def fresh(self, module):
        return module.create_train_state({"w": numbers(3, 2)}, self.config)

    def step(self, module, state, number):
        x, y = on_devices(number, (8, 3), (8, 2))
        step = jax.pmap(module.train_step, axis_name="batch")
        return jax_utils.unreplicate(step(replicated(state), {"x": x, "y": y})[0])

    def store(self, module, state):
        return serialization.to_bytes(state)

    def restore(self, module, path):
        return checkpoints.restore_checkpoint(str(path), self.fresh(module))


class ReplicateMethod:
    params = {"kernel": numbers(3, 2), "bias": numbers(2)}

    def fresh(self, module):
        return module.create_optimizer(self.params)

    def step(self, module, state, number):
        x, y = on_devices(number, (4, 3), (4, 2))
        step = jax.pmap(module.train_step, axis_name="batch")
        state = state.replicate(jax.local_devices()[:DEVICES]) if hasattr(state, "replicate") else replicated(state)
        state, _, _ = step(state, {"x": x, "y": y})
        return state.unreplicate() if hasattr(state, "unreplicate") else jax_utils.unreplicate(state)

    def store(self, module, state):
        return serialization.to_bytes(state)

    def restore(self, module, path):
        return serialization.from_bytes(self.fresh(module), bytes_of(path))


class CarriedByLoops:
    """Its checkpoint has an optimizer that another function creates."""

    variables = {"params": {"w": numbers(3, 1)}}

    def fresh(self, module):
        if hasattr(module, "optim"):
            return module.optim.Adam(1e-2).create(self.variables["params"])
        tx = module.optax.adam(1e-2)
        return module.train_state.TrainState.create(apply_fn=None, params=self.variables["params"], tx=tx)

    def step(self, module, state, number):
        batch = (numbers(8, 3, seed=number), numbers(8, 1, seed=number))
        return module.train_epoch(state, jax.jit(module.train_step, static_argnums=2), [batch])[0]

    def store(self, module, state):
        return serialization.to_bytes(state)

    def restore(self, module, path):
        state = serialization.from_bytes(self.fresh(module), bytes_of(path))
        np.testing.assert_array_equal(module.restart(bytes_of(path), self.variables)["w"], params_of(state)["w"])
        return state


class PretrainAndFinetune:
    """It stores an optimizer and an epoch in a dict."""

    params = {"body": numbers(3, 5), "head": numbers(5, 2)}

    def fresh(self, module):
        if hasattr(module, "optim"):
            return {"optimizer": module.optim.Adam(learning_rate=0.02).create(self.params), "epoch": 1}
        tx = module.optax.adam(learning_rate=0.02)
        state = module.train_state.TrainState.create(apply_fn=None, params=self.params, tx=tx)
        return {"optimizer": state, "epoch": 1}

    def step(self, module, state, number):
        batch = (numbers(8, 3, seed=number), numbers(8, 2, seed=number))
        return {**state, "optimizer": module.train_step(state["optimizer"], *batch)[0]}

    def store(self, module, state):
        return serialization.to_bytes(state)

    def restore(self, module, path):
        state = serialization.from_bytes(self.fresh(module), bytes_of(path))
        params, _ = module.read_params(bytes_of(path))
        np.testing.assert_array_equal(params["body"], params_of(state)["body"])
        return state


PROGRAMS = {
    "resume_from_bytes": ResumeFromBytes(),
    "train_script": TrainScript(),
    "state_around_optimizer": StateAroundOptimizer("adam"),
    "state_around_optimizer, momentum": StateAroundOptimizer("momentum"),
    "replicate_method": ReplicateMethod(),
    "carried_by_loops": CarriedByLoops(),
    "pretrain_and_finetune": PretrainAndFinetune(),
}


class OneOptimizer:
    """A program that creates an optimizer for some parameters, and may say what a step is, fed given gradients."""

    def __init__(self):
        self.params = {
            "dense": {"kernel": numbers(6, 4), "bias": numbers(4)},
            "out": {"kernel": np.ones((4, 3))},
        }

    def fresh(self, module):
        return module.create(self.params)

    def step(self, module, state, number):
        random = np.random.default_rng(100 + number)
        grads = jax.tree_util.tree_map(
            lambda leaf: random.normal(size=leaf.shape) * 10.0 ** random.integers(-3, 2), self.params
        )
        return jax.jit(getattr(module, "step", step_of))(state, grads)


def step_of(state, grads):
    """A step of either kind."""
    return state.apply_gradient(grads) if hasattr(state, "apply_gradient") else state.apply_gradients(grads=grads)


def load(path):
    """A program as a module."""
    module = types.ModuleType(f"program_{path.parent.name}")
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module
