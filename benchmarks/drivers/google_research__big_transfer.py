"""A ResNet with standardized weights written with `flax.nn`, by SGD with momentum."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

FLAX = "0.3.6"


def train(tree: Any) -> None:
    """The whole program, for four steps."""
    train = tree.module("bit_jax.train")
    train.models._block_sizes[2] = [1, 1]
    model = train.models.ResNet.partial(num_layers=2)
    train.models.KNOWN_MODELS = {"small": model}
    path = SimpleNamespace(join=lambda *_: __file__, exists=lambda _: True)
    train.os = SimpleNamespace(path=path)
    train.np = SimpleNamespace(load=lambda _: {}, mean=sum, argmax=train.np.argmax)
    train.tf2jax.transform_params = lambda *_, **__: None

    def batches() -> Any:
        for _ in range(4):
            labels = tree.uniform(1, 2, 5)
            yield {"image": tree.uniform(1, 2, 32, 32, 3), "label": labels}

    rule, pipeline = train.bit_hyperrule, train.input_pipeline
    rule.get_resolution_from_dataset = lambda _: (32, 32)
    pipeline.get_dataset_info = lambda *_: {"num_classes": 5, "num_examples": 100}
    pipeline.get_data = lambda mode, **_: SimpleNamespace(
        as_numpy_iterator=batches if mode == "train" else tuple
    )
    tree.recorded_where_mapped("update_fn", lambda optimizer: (optimizer, None))
    options = {"model": "small", "dataset": "", "eval_every": 0, "base_lr": 0.1}
    paths = {"bit_pretrained_dir": "", "tfds_manual_dir": ""}
    sizes = {"batch": 2, "batch_eval": 2, "examples_per_class": None}
    rest = {"examples_per_class_seed": 0, "logdir": tree.folder(), "name": "run"}
    train.main(SimpleNamespace(**options, **paths, **sizes, **rest))
