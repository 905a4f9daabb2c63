"""A small mixer, by an optimizer of the project: momentum with clipping."""

from __future__ import annotations

from typing import Any


def train(tree: Any) -> None:
    """Take five steps on one device."""
    train = tree.module("mlpmixer_flax.train")
    models = tree.module("mlpmixer_flax.models")
    utils = tree.module("mlpmixer_flax.train_utils")
    jax, replicate = train.jax, utils.flax.jax_utils.replicate
    config = tree.module("ml_collections").ConfigDict
    sizes = {"num_blocks": 1, "hidden_dim": 8, "tokens_mlp_dim": 8}
    patches = config({"size": (4, 4)})
    model = models.MlpMixer(patches, num_classes=5, channels_mlp_dim=8, **sizes)
    key = jax.random.PRNGKey(0)
    params = model.init(key, tree.uniform(1, 8, 8, 3), train=False)["params"]
    optimizer = utils.Optimizer(dtype="float32", grad_norm_clip=1.0).create(params)
    rate = utils.create_learning_rate_schedule(10, 0.1, "cosine", 2)
    step = train.make_update_fn(apply_fn=model.apply, accum_steps=1, lr_fn=rate)
    optimizer, keys = replicate(optimizer), jax.random.split(key, 1)
    for number in range(5):
        batch = {"image": tree.uniform(1, 4, 8, 8, 3), "label": tree.uniform(1, 4, 5)}
        where = replicate(jax.numpy.array(number))
        optimizer, loss, keys = step(optimizer, where, batch, keys)
        tree.record(optimizer, loss=loss)
