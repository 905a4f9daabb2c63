"""A Gaussian process, by SGD with momentum."""

from __future__ import annotations

from typing import Any

FLAX = "0.3.6"


def train(tree: Any) -> None:
    """The whole loop of an example, for ten epochs."""
    tree.module("ladax")
    process = tree.module("basic_gp", "examples")
    process.FLAGS(["ladax", "--num_epochs=10"])
    first = process.get_initial_params
    process.get_initial_params = lambda key: tree.like(first(key))
    tree.recorded(process, "train_step", lambda result: (result[0], result[1]["loss"]))
    process.train(process.get_datasets(process.random.PRNGKey(123))[0])
