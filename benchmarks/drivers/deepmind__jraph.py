"""A graph network for molecules, by Adam."""

from __future__ import annotations

from typing import Any


def train(tree: Any) -> None:
    """The whole program, for five steps."""
    tree.stub("pandas")
    jraph = tree.module("jraph")
    train = tree.module("jraph.ogb_examples.train_flax")
    jnp = train.jnp

    def graph() -> Any:
        return jraph.GraphsTuple(
            nodes=tree.uniform(4, 9),
            edges=tree.uniform(6, 3),
            senders=jnp.array(tree.integers(4, 6)),
            receivers=jnp.array(tree.integers(4, 6)),
            globals=None,
            n_node=jnp.array([4]),
            n_edge=jnp.array([6]),
        )

    class Reader:
        """Graphs in the place of a data set."""

        def repeat(self) -> None:
            """There is no end."""

        def get_graph_by_idx(self, _: int) -> Any:
            """A graph, and its label."""
            return graph(), jnp.array([0])

        def __next__(self) -> Any:
            return graph(), jnp.array(tree.integers(2, 1))

    train.data_utils.DataReader = lambda **_: Reader()
    tree.recorded(train, "train_step", lambda result: (result[0], result[1]["loss"]))
    train.train(None, None, None, 1, 5, None)
