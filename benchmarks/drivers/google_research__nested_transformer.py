"""A small wide ResNet, by SGD with momentum and by Adam in two groups of parameters."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any


def train(tree: Any) -> None:
    """Take five steps with each optimizer on one device."""
    train = tree.module("train")
    config = tree.module("configs.cifar_nest").get_config()
    config.model_name = "nest_tiny_s16_32"
    train.TrainMetrics = SimpleNamespace(
        gather_from_model_output=lambda **values: values["loss"]
    )
    for optim in ("sgd", "adamw"):
        config.optim = optim
        config.sgd_momentum = 0.9
        steps(tree, train, config)


def steps(tree: Any, train: Any, config: Any) -> None:
    """Take five steps."""
    jax, utils = train.jax, train.flax_utils
    key = jax.random.PRNGKey(0)
    model, state = train.create_train_state(config, key, (1, 32, 32, 3), 10)
    tree.record(state)
    step = partial(
        train.train_step,
        model,
        learning_rate_fn=lambda step: 0.1 / step,
        weight_decay=1e-4,
        grad_clip_max_norm=1.0,
    )
    step = jax.pmap(step, axis_name="batch")
    state, keys = utils.replicate(state), jax.random.split(key, 1)
    for _ in range(5):
        labels = jax.nn.one_hot(tree.integers(10, 1, 2), 10)
        batch = {"image": tree.uniform(1, 2, 32, 32, 3), "label": labels}
        state, loss = step(state, batch, keys)
        tree.record(utils.unreplicate(state), loss=loss)
