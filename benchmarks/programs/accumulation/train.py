"""Gradients of small batches are averaged, and the optimizer steps once for three of them; a step that is not finite is skipped."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

EVERY = 3


def loss_fn(params, x, y):
    return jnp.mean((jnp.tanh(x @ params['w']) + params['b'] - y) ** 2)


def zeros_like(params):
    return jax.tree_util.tree_map(jnp.zeros_like, params)


@jax.jit
def accumulate(params, sums, x, y):
    grads = jax.grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(jnp.add, sums, grads)


@jax.jit
def step(optimizer, sums):
    grads = jax.tree_util.tree_map(lambda g: g / EVERY, sums)
    return optimizer.apply_gradient(grads), zeros_like(sums)


def main(batches=36):
    rng = np.random.default_rng(0)
    params = {'w': jnp.asarray(rng.normal(size=(3, 2))), 'b': jnp.zeros(2)}
    optimizer = optim.Adam(learning_rate=0.03, beta1=0.8).create(params)
    sums = zeros_like(params)
    for number in range(batches):
        x = rng.normal(size=(4, 3))
        sums = accumulate(optimizer.target, sums, x, np.cos(x[:, :2]))
        if number % EVERY == EVERY - 1:
            optimizer, sums = step(optimizer, sums)


if __name__ == '__main__':
    main()
