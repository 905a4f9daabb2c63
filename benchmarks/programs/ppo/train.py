"""Several models in turn, in functional form: a policy and a value function, with several epochs on each batch."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def policy_loss(params, x, action, old, advantage):
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(x @ params['pi']), action[:, None], axis=-1)[:, 0]
    ratio = jnp.exp(log_prob - old)
    return -jnp.mean(jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage))


def value_loss(params, x, returns):
    return 0.5 * jnp.mean((x @ params['v'] - returns) ** 2)


@jax.jit
def update_policy(optimizer, *batch):
    grads = jax.grad(policy_loss)(optimizer.target, *batch)
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)))
    grads = jax.tree_util.tree_map(lambda g: g / jnp.maximum(1.0, norm / 0.05), grads)
    return optimizer.apply_gradient(grads)


@jax.jit
def update_value(optimizer, *batch):
    return optimizer.apply_gradient(jax.grad(value_loss)(optimizer.target, *batch))


def create(rng):
    policy = optim.Adam(learning_rate=3e-2, eps=1e-5).create({'pi': jnp.asarray(rng.normal(size=(3, 2)))})
    value = optim.Adam(learning_rate=1e-2, eps=1e-5).create({'v': jnp.asarray(rng.normal(size=3))})
    return policy, value


def main(rounds=5, epochs=3, entropy_rate=0.01):
    rng = np.random.default_rng(0)
    policy, value = create(rng)
    for number in range(rounds):
        x = rng.normal(size=(16, 3))
        action = rng.integers(2, size=16)
        log_probs = np.asarray(jax.nn.log_softmax(x @ policy.target['pi']))
        old = log_probs[np.arange(16), action]
        returns = x[:, 0] + 0.1 * number
        advantage = returns - np.asarray(x @ value.target['v'])
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(epochs):
            policy = update_policy(policy, x, action, old, advantage)
            value = update_value(value, x, returns)


if __name__ == '__main__':
    main()
