"""A convolutional net on images of 28 by 28 pixels, by SGD with momentum."""

from __future__ import annotations

from typing import Any


def train(tree: Any) -> None:
    """Take ten steps."""
    train = tree.module("train", "examples/mnist")
    jax = train.jax
    parameters = train.get_initial_params(jax.random.PRNGKey(0))
    optimizer = train.create_optimizer(parameters, 0.1, 0.9)
    tree.record(optimizer)
    for _ in range(10):
        batch = {"image": tree.uniform(8, 28, 28, 1), "label": tree.integers(10, 8)}
        optimizer, metrics = train.train_step(optimizer, batch)
        tree.record(optimizer, loss=metrics["loss"])
