"""A neural radiance field with spherical harmonics, by Adam with a schedule."""

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
    """The whole loop, for six steps."""
    train = tree.module("nerf_sh.train")
    rays = train.utils.Rays
    train.FLAGS(
        [
            "nerf",
            f"--train_dir={tree.folder()}",
            "--data_dir=nowhere",
            "--batch_size=16",
            "--max_steps=6",
            "--save_every=100",
            "--render_every=0",
            "--num_coarse_samples=8",
            "--num_fine_samples=8",
            "--nouse_viewdirs",
            "--sh_deg=1",
        ]
    )

    def batch() -> Any:
        origins, directions, views, pixels = (tree.uniform(1, 16, 3) for _ in range(4))
        return {"rays": rays(origins, directions, views), "pixels": pixels}

    train.datasets.get_dataset = lambda *_: Rays(batch)
    train.checkpoints.restore_checkpoint = lambda _, state: state
    train.checkpoints.save_checkpoint = lambda *_, **__: None
    tree.recorded_where_mapped("train_step", lambda result: (result[0], result[1].loss))
    train.main([])
