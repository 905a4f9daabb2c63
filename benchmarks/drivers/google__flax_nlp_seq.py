"""A transformer that tags words, by Adam with weight decay and a schedule."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any


def train(tree: Any) -> None:
    """The whole program, for five steps."""
    train = tree.module("train", "examples/nlp_seq")
    sizes = ["--batch_size=4", "--max_length=12", "--num_train_steps=5"]
    train.FLAGS(["nlp_seq", "--train=nowhere", "--dev=nowhere", *sizes])
    train.models.TransformerConfig = partial(
        train.models.TransformerConfig,
        emb_dim=8,
        num_heads=2,
        num_layers=1,
        qkv_dim=8,
        mlp_dim=16,
    )

    def batch() -> Any:
        parts = {key: tree.integers(9, 4, 12) + 1 for key in ("inputs", "targets")}
        # What has this method stands for a tensor of TensorFlow.
        return {
            key: SimpleNamespace(_numpy=partial(lambda array: array, array))
            for key, array in parts.items()
        }

    pipeline = train.input_pipeline
    pipeline.create_vocabs = lambda _: {"forms": range(10), "xpos": range(10)}
    pipeline.sentence_dataset_dict = lambda *_, **__: [batch() for _ in range(5)]
    tree.recorded_where_mapped(
        "train_step", lambda result: (result[0], result[1]["loss"])
    )
    train.main([])
