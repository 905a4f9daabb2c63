"""A small wide ResNet written with `flax.nn`, by SAM and SGD with momentum."""

from __future__ import annotations

from functools import partial
from typing import Any

FLAX = "0.3.6"


def train(tree: Any) -> None:
    """Take five steps on one device."""
    training = tree.module("sam.sam_jax.training_utils.flax_training", "..")
    models = tree.module("sam.sam_jax.models.load_model", "..")
    jax, replicate = training.jax, training.jax_utils.replicate
    training.FLAGS(["sam", "--sam_rho=0.05"])
    model, state = models.get_model("WideResnet_mini", 4, 16, 10)
    optimizer = training.create_optimizer(model, 0.1)
    tree.record(optimizer)
    optimizer, state = replicate(optimizer), replicate(state)
    rate = training.get_cosine_schedule(2, 0.1, 40, 4)
    step = partial(training.train_step, learning_rate_fn=rate, l2_reg=1e-3)
    step = jax.pmap(step, axis_name="batch")
    for number in range(5):
        labels = jax.nn.one_hot(tree.integers(10, 1, 4), 10)
        batch = {"image": tree.uniform(1, 4, 16, 16, 3), "label": labels}
        keys = jax.random.split(jax.random.PRNGKey(number), 1)
        optimizer, state, metrics, _ = step(optimizer, state, batch, keys)
        tree.record(
            training.jax_utils.unreplicate(optimizer), loss=metrics["train_loss"]
        )
