"""A neural radiance field of cones, by Adam with a schedule."""

from __future__ import annotations

from typing import Any


class Rays:
    """Batches without an end, in the place of a data set."""

    size = 1

    def __init__(self, make: Any) -> None:
        self.make = make

    def __iter__(self) -> Rays:
        return self

    def __next__(self) -> Any:
        return self.make()

    peek = __next__


def train(tree: Any) -> None:
    """The whole program, for six steps."""
    train = tree.module("train")
    utils = train.utils
    train.FLAGS(["mipnerf", f"--train_dir={tree.folder()}", "--data_dir=nowhere"])

    def batch() -> Any:
        rays = utils.Rays(
            origins=tree.uniform(1, 16, 3),
            directions=tree.uniform(1, 16, 3),
            viewdirs=tree.uniform(1, 16, 3),
            radii=tree.uniform(1, 16, 1) / 100,
            lossmult=tree.uniform(1, 16, 1),
            near=tree.uniform(1, 16, 1) + 1,
            far=tree.uniform(1, 16, 1) + 5,
        )
        return {"rays": rays, "pixels": tree.uniform(1, 16, 3)}

    train.datasets.get_dataset = lambda *_: Rays(batch)
    utils.load_config = lambda: utils.Config(
        batch_size=16, max_steps=6, print_every=100, save_every=100
    )
    train.checkpoints.restore_checkpoint = lambda _, state: state
    train.checkpoints.save_checkpoint = lambda *_, **__: None
    tree.recorded_where_mapped("train_step", lambda result: (result[0], result[1].loss))
    train.main([])
