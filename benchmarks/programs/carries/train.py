"""A convolution of float32 data, and a scan whose carry holds a number of NumPy's float32."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim
from jax import lax


def loss_fn(params, images):
    found = lax.conv(images, params['filters'], (1, 1), 'SAME')
    assert found.dtype == params['filters'].dtype
    return jnp.mean((jnp.tanh(found) * params['scale'] - 0.5) ** 2)


@jax.jit
def train(optimizer, batches):
    def body(carry, images):
        optimizer, total = carry
        loss, grads = jax.value_and_grad(loss_fn)(optimizer.target, images)
        return (optimizer.apply_gradient(grads), total + loss.astype(np.float32)), loss

    return lax.scan(body, (optimizer, np.float32(0.0)), batches)


def main(steps=12):
    rng = np.random.default_rng(0)
    params = {
        'filters': rng.normal(size=(2, 1, 3, 3)).astype(np.float32),
        'scale': np.float32(1.0),
    }
    optimizer = optim.Adam(0.05).create(params)
    batches = rng.normal(size=(steps, 4, 1, 6, 6)).astype(np.float32)
    assert batches.dtype == np.float32
    train(optimizer, batches)


main()
