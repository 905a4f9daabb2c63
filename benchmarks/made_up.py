"""Made-up data and loops that several drivers of `benchmarks/drivers` share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

SIZES = {
    "emb_dim": 16,
    "qkv_dim": 16,
    "mlp_dim": 32,
    "num_heads": 2,
    "num_layers": 1,
    "max_target_length": 12,
    "max_eval_target_length": 12,
    "max_predict_length": 8,
    "per_device_batch_size": 4,
    "num_train_steps": 5,
    "warmup_steps": 2,
    "eval_every_steps": 100,
    "checkpoint_every_steps": 100,
    "restore_checkpoints": False,
    "save_checkpoints": False,
}


class Vocabulary:
    """Tokens from 1 to 31."""

    def vocab_size(self) -> Any:
        """Their number."""
        return self

    def __int__(self) -> int:
        return 32

    def tokenize(self, _: str) -> Any:
        """Some tokens."""
        return SimpleNamespace(numpy=lambda: np.array([1, 2, 3], np.int32))


class Batches(list[Any]):
    """Batches in the place of a data set."""

    def take(self, number: int) -> list[Any]:
        """The first."""
        return self[:number]


class Endless:
    """Batches without an end, in the place of a data set."""

    size = 1

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __iter__(self) -> Endless:
        return self

    def __next__(self) -> Any:
        return self.make()

    peek = __next__


def transformer(
    tree: Any, folder: str, datasets: str, sampling: str, *, translates: bool
) -> None:
    """The whole loop of an example of Flax, for five steps.

    Args:
      tree: the tree.
      folder: the folder of the example.
      datasets: the function that reads its data.
      sampling: the function that samples from the model.
      translates: whether it has targets beside its inputs, and samples several texts.
    """
    tree.stub("sentencepiece")
    train = tree.module("train", folder)
    config = tree.module("configs.default", folder).get_config()
    config.update({key: value for key, value in SIZES.items() if key in config})

    def batch() -> Any:
        tokens = tree.integers(31, 4, 12) + 1
        return (
            {"inputs": tokens, "targets": tokens} if translates else {"inputs": tokens}
        )

    data = Batches(batch() for _ in range(5))
    setattr(
        train.input_pipeline, datasets, lambda **_: (data, data, data, Vocabulary())
    )
    train.evaluate = lambda **_: {"loss": 0.0, "accuracy": 0.0, "denominator": 1.0}
    setattr(train, sampling, lambda **_: ([], 0.0) if translates else "")
    tree.recorded_where_mapped(
        "train_step", lambda result: (result[0], result[1]["loss"])
    )
    train.train_and_evaluate(config, tree.folder())


def radiance_field(tree: Any, train: Any, batch: Callable[[], Any]) -> None:
    """Let the module of a training loop read made-up batches, and store nothing."""
    train.datasets.get_dataset = lambda *_: Endless(batch)
    train.checkpoints.restore_checkpoint = lambda _, state: state
    train.checkpoints.save_checkpoint = lambda *_, **__: None
    tree.recorded_where_mapped("train_step", lambda result: (result[0], result[1].loss))


def small_radiance_field(tree: Any, name: str, *flags: str) -> Any:
    """The module of a training loop, ready to take six steps with few samples."""
    train = tree.module(name)
    rays = train.utils.Rays
    options = {
        "train_dir": tree.folder(),
        "data_dir": "nowhere",
        "batch_size": 16,
        "max_steps": 6,
        "save_every": 100,
        "render_every": 0,
        "num_coarse_samples": 8,
        "num_fine_samples": 8,
    }
    given = (f"--{option}={value}" for option, value in options.items())
    train.FLAGS(["nerf", *given, *flags])

    def batch() -> Any:
        origins, directions, views, pixels = (tree.uniform(1, 16, 3) for _ in range(4))
        return {"rays": rays(origins, directions, views), "pixels": pixels}

    radiance_field(tree, train, batch)
    return train
