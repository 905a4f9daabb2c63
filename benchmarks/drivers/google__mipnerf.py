"""A neural radiance field of cones, by Adam with a schedule."""

from __future__ import annotations

from typing import Any

from benchmarks.made_up import radiance_field


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

    utils.load_config = lambda: utils.Config(
        batch_size=16, max_steps=6, print_every=100, save_every=100
    )
    radiance_field(tree, train, batch)
    train.main([])
