"""Members of an ensemble that train at once under vmap, and after that a model for each device under pmap, in functional form."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

inner_def = optim.Momentum(learning_rate=0.05, beta=0.8)


def loss_fn(params, x, y):
    return jnp.mean((jnp.sin(x @ params['w']) + params['b'] - y) ** 2)


def member_step(params, state, x, y):
    grads = jax.grad(loss_fn)(params, x, y)
    return inner_def.apply_gradient(inner_def.hyper_params, params, state, grads)


def init_params(key):
    return {'w': jax.random.normal(key, (3, 2)), 'b': jnp.zeros(2)}


def ensemble(steps, size=4):
    rng = np.random.default_rng(0)
    params = jax.vmap(init_params)(jax.random.split(jax.random.PRNGKey(0), size))
    state = jax.vmap(inner_def.init_state)(params)
    all_steps = jax.jit(jax.vmap(member_step, in_axes=(0, 0, 0, 0)))
    for _ in range(steps):
        x = rng.normal(size=(size, 8, 3))
        params, state = all_steps(params, state, x, np.cos(x[..., :2]))
    return params


def per_device(steps):
    rng = np.random.default_rng(1)
    devices = jax.local_device_count()
    optimizer = jax.pmap(lambda key: optim.Adam(0.02).create({'v': jax.random.normal(key, (2, 2))}))(
        jax.random.split(jax.random.PRNGKey(1), devices))

    @jax.pmap
    def step(optimizer, x):
        grads = jax.grad(lambda params: jnp.mean((x @ params['v'] - 1.0) ** 2))(optimizer.target)
        return optimizer.apply_gradient(grads)

    for _ in range(steps):
        optimizer = step(optimizer, rng.normal(size=(devices, 4, 2)))
    return optimizer.target


if __name__ == '__main__':
    ensemble(12)
    per_device(12)
