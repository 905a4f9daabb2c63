"""A language model in miniature: one scheduled optimizer, gradients clipped by value, perplexity in a table."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn, optim

try:
    from optim2optax.parity import observe
except ImportError:
    def observe(name, tree):
        pass

VOCABULARY, WARMUP, TOTAL = 11, 5, 15


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens, train, key):
        x = nn.Embed(VOCABULARY, 8)(tokens)
        x = nn.Dropout(0.1, deterministic=not train)(x, rng=key)
        x = nn.LayerNorm()(x + nn.tanh(nn.Dense(8)(x)))
        return nn.Dense(VOCABULARY)(x)


def learning_rate_fn(step):
    warm = step / WARMUP
    cold = 0.5 * (1 + jnp.cos(jnp.pi * (step - WARMUP) / (TOTAL - WARMUP)))
    return 0.02 * jnp.where(step < WARMUP, warm, cold)


def is_decayed(path):
    return path.endswith('kernel') or 'embedding' in path


def create_optimizer(params):
    matrices = optim.ModelParamTraversal(lambda path, _: is_decayed(path))
    vectors = optim.ModelParamTraversal(lambda path, _: not is_decayed(path))
    return optim.MultiOptimizer(
        (matrices, optim.Adam(0.02, beta2=0.98, eps=1e-9, weight_decay=0.1)),
        (vectors, optim.Adam(0.02, beta2=0.98, eps=1e-9)),
    ).create(params)


def cross_entropy(logits, targets):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), targets[..., None], axis=-1))


@jax.jit
def train_step(optimizer, tokens, key):
    def loss_fn(params):
        logits = Model().apply({'params': params}, tokens[:, :-1], True, key)
        return cross_entropy(logits, tokens[:, 1:])

    loss, grads = jax.value_and_grad(loss_fn)(optimizer.target)
    grads = jax.tree_util.tree_map(lambda g: jnp.clip(g, -0.1, 0.1), grads)
    rate = learning_rate_fn(optimizer.state.step)
    return optimizer.apply_gradient(grads, learning_rate=rate), {'loss': loss, 'rate': rate}


def main():
    rng = np.random.default_rng(0)
    key = jax.random.PRNGKey(0)
    params = Model().init(key, jnp.zeros((1, 4), int), False, key)['params']
    optimizer = create_optimizer(params)
    with open('log.csv', 'w', newline='') as file:
        table = csv.writer(file)
        for step in range(TOTAL):
            step_key = jax.random.fold_in(key, step)
            optimizer, metrics = train_step(optimizer, rng.integers(VOCABULARY, size=(6, 5)), step_key)
            perplexity = float(jnp.exp(metrics['loss']))
            table.writerow([step, perplexity, float(metrics['rate'])])
            observe('perplexity', perplexity)


if __name__ == '__main__':
    main()
