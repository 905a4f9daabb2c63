"""A model of Flax whose biases have a rate of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn, traverse_util
from flax.training.train_state import TrainState


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.tanh(nn.Dense(4)(x)))


def create_optimizer(params):
    labels = traverse_util.path_aware_map(lambda path, _: path[-1], params)
    tx = optax.partition({'kernel': optax.adam(0.01), 'bias': optax.sgd(0.1, momentum=0.9)}, labels)
    return TrainState.create(apply_fn=Model().apply, params=params, tx=tx)


@jax.jit
def step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({'params': params}, x) - y) ** 2)

    return state.apply_gradients(grads=jax.grad(loss_fn)(state.params))


def main(steps=12):
    rng = np.random.default_rng(0)
    state = create_optimizer(Model().init(jax.random.PRNGKey(0), jnp.ones((1, 3)))['params'])
    for _ in range(steps):
        x = rng.normal(size=(8, 3))
        state = step(state, x, np.sin(x[:, :2]))


if __name__ == '__main__':
    main()
