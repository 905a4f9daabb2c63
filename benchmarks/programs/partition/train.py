"""A model of Flax whose biases have a rate of their own."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn, optim


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.tanh(nn.Dense(4)(x)))


def create_optimizer(params):
    kernels = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)
    biases = optim.ModelParamTraversal(lambda path, _: 'bias' in path)
    return optim.MultiOptimizer((kernels, optim.Adam(0.01)), (biases, optim.Momentum(0.1))).create(params)


@jax.jit
def step(optimizer, x, y):
    def loss_fn(params):
        return jnp.mean((Model().apply({'params': params}, x) - y) ** 2)

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))


def main(steps=12):
    rng = np.random.default_rng(0)
    optimizer = create_optimizer(Model().init(jax.random.PRNGKey(0), jnp.ones((1, 3)))['params'])
    for _ in range(steps):
        x = rng.normal(size=(8, 3))
        optimizer = step(optimizer, x, np.sin(x[:, :2]))


if __name__ == '__main__':
    main()
