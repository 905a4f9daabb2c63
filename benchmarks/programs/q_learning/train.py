"""Q-learning with a target network that is renewed now and then, a replay memory, and noise that fades."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

try:
    from optim2optax.parity import observe
except ImportError:
    def observe(name, tree):
        pass

PERIOD = 5
State = collections.namedtuple('State', ['optimizer', 'target_params', 'steps'])


def q_values(params, x):
    return jnp.tanh(x @ params['hidden']) @ params['out']


def create():
    keys = jax.random.split(jax.random.PRNGKey(0))
    params = {
        'hidden': 0.5 * jax.random.normal(keys[0], (4, 8)),
        'out': 0.5 * jax.random.normal(keys[1], (8, 2)),
    }
    optimizer = optim.RMSProp(learning_rate=0.01, beta2=0.95, eps=1e-4).create(params)
    return State(optimizer, params, 0)


@jax.jit
def learn(state, x, action, reward, next_x, discount=0.9):
    best = jnp.max(q_values(state.target_params, next_x), axis=-1)
    wanted = reward + discount * best

    def loss_fn(params):
        q = jnp.take_along_axis(q_values(params, x), action[:, None], axis=-1)[:, 0]
        error = q - wanted
        return jnp.mean(jnp.where(jnp.abs(error) < 1.0, 0.5 * error ** 2, jnp.abs(error) - 0.5))

    grads = jax.grad(loss_fn)(state.optimizer.target)
    optimizer = state.optimizer.apply_gradient(grads)
    steps = state.steps + 1
    target_params = jax.tree_util.tree_map(
        lambda new, old: jnp.where(steps % PERIOD == 0, new, old), optimizer.target, state.target_params)
    return State(optimizer, target_params, steps)


def main(steps=18):
    rng = np.random.default_rng(0)
    state = create()
    for step in range(steps):
        x = rng.normal(size=(8, 4))
        explored = rng.integers(2, size=8)
        greedy = np.asarray(q_values(state.optimizer.target, x)).argmax(-1)
        action = np.where(rng.random(8) < 0.9 ** step, explored, greedy)
        reward = x[np.arange(8), action]
        state = learn(state, x, action, reward, np.roll(x, 1, axis=0))
        observe('value', q_values(state.optimizer.target, x).mean())
    observe('steps', state.optimizer.state.step)


if __name__ == '__main__':
    main()
