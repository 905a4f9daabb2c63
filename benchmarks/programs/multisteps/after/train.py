"""Gradients of two batches are averaged by optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


def loss_fn(params, x):
    return jnp.mean((jnp.tanh(x @ params['w']) + params['b'] - 1.0) ** 2)


gradient = jax.jit(jax.grad(loss_fn))


def init_params(rng):
    return {'w': jnp.asarray(rng.normal(size=(3, 2))), 'b': jnp.zeros(2)}


def main(steps=12):
    rng = np.random.default_rng(0)
    params = init_params(rng)
    tx = optax.MultiSteps(optax.adam(0.05), every_k_schedule=2)
    state = tx.init(params)
    for _ in range(2 * steps):
        updates, state = tx.update(gradient(params, rng.normal(size=(4, 3))), state, params)
        params = optax.apply_updates(params, updates)


main()
