"""A small vision transformer, by an optimizer of the project: momentum in half precision, with clipping."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace
from typing import Any


def train(tree: Any) -> None:
    """The whole loop, for five steps."""
    tree.stub("flaxformer", "pandas")
    train = tree.module("vit_jax.train")
    config = tree.module("vit_jax.configs.common").get_config()
    model = tree.module("vit_jax.configs.models").MODEL_CONFIGS["testing"]
    config.unlock()
    config.update(
        {"dataset": "made up", "model": model, "total_steps": 5, "warmup_steps": 2}
    )
    config.update({"accum_steps": 1, "base_lr": 0.1})

    def batches() -> Any:
        one_hot = train.jax.nn.one_hot
        for _ in repeat(None):
            labels = one_hot(tree.integers(10, 1, 4), 10)
            yield {"image": tree.uniform(1, 4, 32, 32, 3), "label": labels}

    pipeline = train.input_pipeline
    pipeline.get_dataset_info = lambda *_: {"num_classes": 10}
    tests = SimpleNamespace(cardinality=lambda: SimpleNamespace(numpy=lambda: 0))
    pipeline.get_datasets = lambda *_: (batches(), tests)
    pipeline.prefetch = lambda data, _: () if data is tests else data
    train.checkpoint.load_pretrained = lambda init_params, **_: init_params
    train.flax_checkpoints.restore_checkpoint = lambda _, target: target
    train.flax_checkpoints.save_checkpoint = lambda *_: None
    tree.recorded_where_mapped("update_fn", lambda result: result[:2])
    train.train_and_evaluate(config, tree.folder())
