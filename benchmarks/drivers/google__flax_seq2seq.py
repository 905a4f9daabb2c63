"""An LSTM that adds numbers, by Adam."""

from __future__ import annotations

from typing import Any


def train(tree: Any) -> None:
    """The whole program, for five steps."""
    train = tree.module("train", "examples/seq2seq")
    sizes = ["--num_train_steps=5", "--hidden_size=16", "--batch_size=8"]
    train.FLAGS(["seq2seq", "--decode_frequency=100", *sizes])
    tree.recorded(train, "train_step", lambda result: (result[0], result[1]["loss"]))
    train.decode_batch = lambda *_: None
    train.train_model()
