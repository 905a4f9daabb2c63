"""A ResNet of 18 layers on small images, by SGD with momentum and a schedule."""

from __future__ import annotations

from functools import partial
from typing import Any


def train(tree: Any) -> None:
    """Take five steps on one device."""
    train = tree.module("train", "examples/imagenet")
    models = tree.module("models", "examples/imagenet")
    config = tree.module("configs.default", "examples/imagenet").get_config()
    jax, utils = train.jax, train.jax_utils
    model = train.create_model(model_cls=models.ResNet18, half_precision=False)
    state = train.create_train_state(jax.random.PRNGKey(0), config, model, 32)
    tree.record(state)
    rate = train.create_learning_rate_fn(config, 0.1, 2)
    step = partial(train.train_step, model.apply, learning_rate_fn=rate)
    step = jax.pmap(step, axis_name="batch")
    state = utils.replicate(state)
    for _ in range(5):
        batch = {
            "image": tree.uniform(1, 4, 32, 32, 3),
            "label": tree.integers(1000, 1, 4),
        }
        state, metrics = step(state, batch)
        tree.record(utils.unreplicate(state), loss=metrics["loss"])
