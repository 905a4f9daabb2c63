"""A classifier with BatchNorm on all devices: donated buffers, clipping, momentum, an accuracy, a checkpoint that is read back."""

import functools
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from flax import jax_utils, linen as nn, optim, serialization

try:
    from optim2optax.parity import observe
except ImportError:
    def observe(name, tree):
        pass


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(4, (3, 3), use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9, axis_name='batch')(x)
        x = nn.relu(x).mean(axis=(1, 2))
        return nn.Dense(3)(x)


def create():
    variables = Net().init(jax.random.PRNGKey(0), jnp.ones((1, 6, 6, 1)), False)
    optimizer = optim.Momentum(learning_rate=0.1, beta=0.9, weight_decay=1e-3, nesterov=True).create(variables['params'])
    return optimizer, variables['batch_stats']


@functools.partial(jax.pmap, axis_name='batch', donate_argnums=(0, 1))
def train_step(optimizer, batch_stats, images, labels):
    def loss_fn(params):
        variables = {'params': params, 'batch_stats': batch_stats}
        logits, updated = Net().apply(variables, images, True, mutable=['batch_stats'])
        log_probs = nn.log_softmax(logits)
        loss = -jnp.mean(jnp.take_along_axis(log_probs, labels[:, None], axis=-1))
        return loss, (updated['batch_stats'], logits)

    (_, (batch_stats, logits)), grads = jax.value_and_grad(loss_fn, has_aux=True)(optimizer.target)
    grads = jax.lax.pmean(grads, axis_name='batch')
    norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree_util.tree_leaves(grads)))
    grads = jax.tree_util.tree_map(lambda g: g * jnp.minimum(1.0, 0.5 / norm), grads)
    optimizer = optimizer.apply_gradient(grads)
    correct = jax.lax.pmean(jnp.mean(logits.argmax(-1) == labels), axis_name='batch')
    return optimizer, batch_stats, correct


def batches(steps):
    rng = np.random.default_rng(0)
    devices = jax.local_device_count()
    for _ in range(steps):
        labels = rng.integers(3, size=(devices, 8))
        yield rng.normal(size=(devices, 8, 6, 6, 1)) + labels[..., None, None, None], labels


def main(steps=12):
    optimizer, batch_stats = jax_utils.replicate(create())
    path = os.path.join(tempfile.mkdtemp(), 'checkpoint')
    for step, (images, labels) in enumerate(batches(steps)):
        if step == 6:
            with open(path, 'wb') as file:
                file.write(serialization.to_bytes(jax_utils.unreplicate(optimizer)))
            with open(path, 'rb') as file:
                optimizer = jax_utils.replicate(serialization.from_bytes(create()[0], file.read()))
        optimizer, batch_stats, accuracy = train_step(optimizer, batch_stats, images, labels)
        observe('accuracy', accuracy[0])
        observe('statistics', jax_utils.unreplicate(batch_stats))
        print(f'step {step}: accuracy {float(accuracy[0]):.3f}')


if __name__ == '__main__':
    main()
