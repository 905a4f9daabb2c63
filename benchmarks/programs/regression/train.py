"""A small network on NumPy data in float32: warm-up, decay for kernels alone, a moving average, metrics in a file."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

try:
    from optim2optax.parity import observe
except ImportError:
    def observe(name, tree):
        pass

STEPS = 16


def init_params():
    rng = np.random.default_rng(0)
    return {
        'hidden': {'kernel': rng.normal(size=(3, 8)).astype(np.float32), 'bias': np.zeros(8, np.float32)},
        'out': {'kernel': rng.normal(size=(8, 1)).astype(np.float32), 'bias': np.zeros(1, np.float32)},
    }


def schedule(step, base=0.05, warmup=4, drop_at=10):
    rate = base * jnp.minimum(1.0, (step + 1) / warmup)
    return jnp.where(step >= drop_at, 0.1 * rate, rate)


def create_optimizer(params):
    decayed = optim.ModelParamTraversal(lambda path, _: 'kernel' in path)
    others = optim.ModelParamTraversal(lambda path, _: 'kernel' not in path)
    optimizer_def = optim.MultiOptimizer(
        (decayed, optim.Adam(learning_rate=0.05, beta2=0.99, weight_decay=0.01)),
        (others, optim.Adam(learning_rate=0.05, beta2=0.99)),
    )
    return optimizer_def.create(params)


def apply(params, x, key, rate=0.2):
    hidden = jnp.tanh(x @ params['hidden']['kernel'] + params['hidden']['bias'])
    keep = jax.random.bernoulli(key, 1 - rate, hidden.shape)
    hidden = jnp.where(keep, hidden / (1 - rate), 0.0)
    return hidden @ params['out']['kernel'] + params['out']['bias']


@jax.jit
def train_step(optimizer, ema, x, y, key):
    def loss_fn(params):
        return jnp.mean((apply(params, x, key) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(optimizer.target)
    optimizer = optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))
    ema = jax.tree_util.tree_map(lambda mean, new: 0.9 * mean + 0.1 * new, ema, optimizer.target)
    return optimizer, ema, loss


def main():
    rng = np.random.default_rng(1)
    optimizer = create_optimizer(init_params())
    ema, key, losses = optimizer.target, jax.random.PRNGKey(0), []
    for _ in range(STEPS):
        x = rng.normal(size=(16, 3)).astype(np.float32)
        assert x.dtype == np.float32
        key, dropout_key = jax.random.split(key)
        optimizer, ema, loss = train_step(optimizer, ema, x, np.sin(x[:, :1]), dropout_key)
        losses.append(float(loss))
        observe('average', ema)
    observe('loss', np.asarray(losses))
    with open('metrics.json', 'w') as file:
        json.dump({'loss': losses[-1]}, file)


if __name__ == '__main__':
    main()
    sys.exit(0)
