"""Examples written with `flax.nn`: a graph network, a convolutional net and a variational autoencoder."""

from __future__ import annotations

from typing import Any

FLAX = "0.3.6"


def train(tree: Any) -> None:
    """Take some steps with each."""
    graph(tree)
    mnist(tree)


def graph(tree: Any) -> None:
    """The whole loop that the example has, on the data that it has, by Adam."""
    train = tree.module("train", "examples/graph")
    tree.recorded(train, "train_step", lambda result: result)
    train.train()


def mnist(tree: Any) -> None:
    """Ten steps of SGD with momentum."""
    library = tree.module("mnist_lib", "examples/mnist")
    model = library.create_model(library.random.PRNGKey(0))
    optimizer = library.create_optimizer(model, 0.1, 0.9)
    for _ in range(10):
        batch = {"image": tree.uniform(8, 28, 28, 1), "label": tree.integers(10, 8)}
        optimizer, metrics = library.train_step(optimizer, batch)
        tree.record(optimizer, loss=metrics["loss"])
