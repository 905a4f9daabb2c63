"""Two networks of the same shape that step in turn, by optimizers with the same text; samples are written to a file."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

try:
    from optim2optax.parity import observe
except ImportError:
    def observe(name, tree):
        pass


def network(params, x):
    return jnp.tanh(x @ params['w']) @ params['v']


def init_params(seed):
    rng = np.random.default_rng(seed)
    return {'w': jnp.asarray(rng.normal(size=(2, 6))), 'v': jnp.asarray(rng.normal(size=(6, 2)))}


def create_optimizers():
    generator = optim.Adam(learning_rate=0.01, beta1=0.5).create(init_params(0))
    critic = optim.Adam(learning_rate=0.01, beta1=0.5).create(init_params(1))
    return generator, critic


@jax.jit
def train_step(generator, critic, real, noise):
    def critic_loss(params):
        fake = network(generator.target, noise)
        return jnp.mean(jax.nn.softplus(-network(params, real)) + jax.nn.softplus(network(params, fake)))

    critic = critic.apply_gradient(jax.grad(critic_loss)(critic.target))

    def generator_loss(params):
        return jnp.mean(jax.nn.softplus(-network(critic.target, network(params, noise))))

    generator = generator.apply_gradient(jax.grad(generator_loss)(generator.target))
    return generator, critic


def main(steps=15):
    rng = np.random.default_rng(2)
    generator, critic = create_optimizers()
    for step in range(steps):
        real = rng.normal(loc=1.0, size=(8, 2))
        generator, critic = train_step(generator, critic, real, rng.normal(size=(8, 2)))
        if step % 2:
            critic = critic.replace(target=jax.tree_util.tree_map(lambda p: jnp.clip(p, -2.0, 2.0), critic.target))
    samples = np.asarray(network(generator.target, rng.normal(size=(4, 2))))
    np.save('samples.npy', samples)
    observe('samples', samples)


main()
