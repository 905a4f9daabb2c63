"""A Gaussian process, by SGD with momentum, and a deep one written with `flax.nn`, by Adam."""

from __future__ import annotations

from typing import Any

FLAX = "0.3.6"


def train(tree: Any) -> None:
    """The whole loops of two examples, for ten epochs."""
    tree.module("ladax")
    process = tree.module("basic_gp", "examples")
    process.FLAGS(["ladax", "--num_epochs=10"])
    tree.recorded(process, "train_step", lambda result: (result[0], result[1]["loss"]))
    process.train(process.get_datasets(process.random.PRNGKey(123))[0])
