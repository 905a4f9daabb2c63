"""A large table of embeddings beside small layers."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def init_params():
    rng = np.random.default_rng(0)
    return {
        'table': {'kernel': jnp.asarray(0.1 * rng.normal(size=(500, 400))), 'bias': jnp.zeros(400)},
        'out': {'kernel': jnp.asarray(0.1 * rng.normal(size=(400, 3))), 'bias': jnp.zeros(3)},
    }


@jax.jit
def train_step(optimizer, words, y):
    def loss_fn(params):
        hidden = jnp.tanh(params['table']['kernel'][words] + params['table']['bias'])
        return jnp.mean((hidden @ params['out']['kernel'] + params['out']['bias'] - y) ** 2)

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))


def main(steps=12):
    rng = np.random.default_rng(1)
    optimizer = optim.Adam(0.01, weight_decay=1e-3).create(init_params())
    for _ in range(steps):
        optimizer = train_step(optimizer, rng.integers(500, size=64), rng.normal(size=(64, 3)))


main()
