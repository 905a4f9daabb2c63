"""Parameters in bfloat16, one of them in float16, and a head in float32 that is made with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def init_params():
    rng = np.random.default_rng(0)
    return {
        'body': jnp.asarray(rng.normal(size=(4, 8)), jnp.bfloat16),
        'scale': jnp.ones(8, jnp.float16),
        'head': rng.normal(size=(8, 2)).astype(np.float32),
    }


@jax.jit
def train_step(optimizer, x, y):
    def loss_fn(params):
        hidden = jnp.tanh(x.astype(jnp.bfloat16) @ params['body']) * params['scale'].astype(jnp.bfloat16)
        return jnp.mean((hidden.astype(jnp.float32) @ params['head'] - y) ** 2)

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))


def main(steps=12):
    rng = np.random.default_rng(1)
    optimizer = optim.Momentum(0.1, beta=0.9).create(init_params())
    for _ in range(steps):
        x = rng.normal(size=(8, 4)).astype(np.float32)
        optimizer = train_step(optimizer, x, np.sin(x[:, :2]))


if __name__ == '__main__':
    main()
