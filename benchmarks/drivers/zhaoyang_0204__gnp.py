"""A small wide ResNet with a penalty on its gradient's norm, by an SGD of the project with clipping."""

from __future__ import annotations

from functools import partial
from typing import Any


def train(tree: Any) -> None:
    """Take four steps on one device."""
    core = tree.module("gnp.training.training_core", "..")
    models = tree.module("gnp.models.load_model", "..")
    optimizers = tree.module("gnp.optimizer.get_optimizer", "..")
    network = tree.module("gnp.models.available_models.wrn", "..").WideResNet
    core.flags.DEFINE_string("config", None, "")
    core.FLAGS(["gnp"])
    core.FLAGS.config = tree.module("gnp.config.train_config", "..").get_config()
    core.FLAGS.config.unlock()
    core.FLAGS.config.update({"has_true_gradient": False, "gradient_clipping": 1.0})
    core.FLAGS.config.gnp.update({"r": 0.05, "alpha": 0.6})
    optimizers.manage_optimizer_config()
    model = network(block_per_group=1, channel_multiplier=1, num_outputs=10)
    jax, replicate = core.jax, tree.module("flax.jax_utils").replicate
    key = jax.random.PRNGKey(0)
    params, state = models.init_image_model(key, 4, 16, model)
    optimizer = optimizers.get_optimizer(params, 0.1)
    tree.record(optimizer)
    options = {"l2_reg": 1e-3, "apply_fn": model.apply}
    step = partial(
        core.train_step, learning_rate_fn=lambda step: 0.1 / (step + 1), **options
    )
    step = jax.pmap(step, axis_name="batch")
    optimizer, state = replicate(optimizer), replicate(state)
    keys = jax.random.split(key, 1)
    for _ in range(4):
        labels = jax.nn.one_hot(tree.integers(10, 1, 4), 10)
        batch = {"image": tree.uniform(1, 4, 16, 16, 3), "label": labels}
        optimizer, state, metrics, _ = step(optimizer, state, batch, keys)
        first = jax.tree_util.tree_map(lambda leaf: leaf[0], optimizer)
        tree.record(first, loss=metrics["train_loss"])
