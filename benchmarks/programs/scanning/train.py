"""The whole of training as one scan, then a loop until the loss is small, and steps that do nothing at first."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def loss_fn(params, x, y):
    return jnp.mean((x @ params['w'] + params['b'] - y) ** 2)


@jax.jit
def train(optimizer, xs, ys):
    def body(carry, batch):
        optimizer, count = carry
        loss, grads = jax.value_and_grad(loss_fn)(optimizer.target, *batch)
        stepped = optimizer.apply_gradient(grads)
        active = count >= 2
        optimizer = jax.tree_util.tree_map(lambda new, old: jnp.where(active, new, old), stepped, optimizer)
        return (optimizer, count + 1), loss

    (optimizer, _), losses = jax.lax.scan(body, (optimizer, np.int32(0)), (xs, ys))
    return optimizer, losses


@jax.jit
def polish(optimizer, x, y):
    def unfinished(optimizer):
        return (loss_fn(optimizer.target, x, y) > 0.5) & (optimizer.state.step < 24)

    def improve(optimizer):
        return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target, x, y))

    return jax.lax.while_loop(unfinished, improve, optimizer)


def main(steps=16):
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(steps, 8, 3))
    ys = 2.0 + np.stack([xs[..., 0] - xs[..., 1], xs[..., 2]], axis=-1)
    params = {'w': jnp.zeros((3, 2)), 'b': jnp.zeros(2)}
    optimizer = optim.Adam(0.05, beta1=0.7, eps=1e-6).create(params)
    optimizer, _ = train(optimizer, xs, ys)
    polish(optimizer, xs[0], ys[0])


if __name__ == '__main__':
    main()
