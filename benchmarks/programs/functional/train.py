"""Two models that train in turn, by definitions that never become optimizers: parameters and states are passed along by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

actor_def = optim.Adam(learning_rate=0.02, beta1=0.8)
critic_def = optim.Momentum(learning_rate=0.05)


@jax.jit
def critic_step(params, state, x, y):
    grads = jax.grad(lambda params: jnp.mean((x @ params['v'] - y) ** 2))(params)
    return critic_def.apply_gradient(critic_def.hyper_params, params, state, grads)


@jax.jit
def actor_step(params, state, critic, x):
    grads = jax.grad(lambda params: -jnp.mean(jnp.tanh(x @ params['w']) * (x @ critic['v'])))(params)
    return actor_def.apply_gradient(actor_def.hyper_params, params, state, grads)


def main(steps=12):
    rng = np.random.default_rng(0)
    actor = {'w': jnp.asarray(rng.normal(size=3))}
    critic = {'v': jnp.asarray(rng.normal(size=3))}
    actor_state, critic_state = actor_def.init_state(actor), critic_def.init_state(critic)
    for _ in range(steps):
        x = rng.normal(size=(8, 3))
        critic, critic_state = critic_step(critic, critic_state, x, x.sum(axis=-1))
        actor, actor_state = actor_step(actor, actor_state, critic, x)


if __name__ == '__main__':
    main()
