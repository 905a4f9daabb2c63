"""A transformer for ListOps written with `flax.nn`, by Adam with weight decay and a schedule."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

FLAX = "0.3.6"

SIZES = {
    "vocab_size": 16,
    "emb_dim": 8,
    "num_heads": 2,
    "num_layers": 1,
    "qkv_dim": 8,
    "mlp_dim": 16,
    "max_len": 12,
    "classifier": True,
    "num_classes": 10,
}


def train(tree: Any) -> None:
    """Take five steps on one device."""
    train = tree.module("lra_benchmarks.listops.train")
    train.FLAGS(["listops"])
    train.FLAGS.config = SimpleNamespace(weight_decay=0.1)
    jax, utils = train.jax, train.jax_utils
    key = jax.random.PRNGKey(0)
    encoder = train.transformer.TransformerEncoder
    model = train.create_model(key, encoder, (4, 12), SIZES)
    rate = train.train_utils.create_learning_rate_scheduler(
        base_learning_rate=0.05, warmup_steps=2
    )
    # The old step sets the rate anew each time.
    optimizer = train.create_optimizer(model, rate)
    tree.record(optimizer)
    step = partial(train.train_step, learning_rate_fn=rate)
    step = jax.pmap(step, axis_name="batch")
    optimizer, keys = utils.replicate(optimizer), jax.random.split(key, 1)
    for _ in range(5):
        inputs, targets = tree.integers(15, 1, 4, 12) + 1, tree.integers(10, 1, 4)
        batch = {"inputs": inputs, "targets": targets}
        optimizer, metrics, keys = step(optimizer, batch, dropout_rng=keys)
        tree.record(utils.unreplicate(optimizer), loss=metrics["loss"])
