"""The ImageNet submission with a made-up model, by SGD with momentum and a schedule."""

from __future__ import annotations

from functools import partial
from typing import Any


def train(tree: Any) -> None:
    """Take five steps on one device."""
    tree.module("spec")
    name = "workloads.imagenet.imagenet_jax.submission"
    submission = tree.module(name)
    jax, jnp = submission.jax, submission.jnp
    parameters = {"weights": tree.uniform(12, 5), "bias": tree.uniform(5)}
    optimizer = submission.init_optimizer_state(None, parameters, None, None, None)
    tree.record(optimizer)

    def model(params: Any, batch: Any, *_: Any, **__: Any) -> Any:
        return batch["image"] @ params["weights"] + params["bias"], {}

    def loss(labels: Any, logits: Any, _: Any) -> Any:
        one_hot = jax.nn.one_hot(labels, 5)
        return -jnp.mean(jnp.sum(one_hot * jax.nn.log_softmax(logits), axis=-1))

    step = partial(
        submission.train_step,
        None,
        learning_rate_fn=lambda step: 0.1 / (step + 1),
        model_fn=model,
        compute_metrics=lambda logits, labels: {"loss": loss(labels, logits, None)},
        loss_fn=loss,
        loss_type=None,
    )
    step = jax.pmap(step, axis_name="batch")
    for number in range(5):
        batch = {"image": tree.uniform(1, 4, 12), "label": tree.integers(5, 1, 4)}
        _, optimizer, metrics = step({}, optimizer, jnp.array([number]), batch)
        tree.record(optimizer, loss=metrics["loss"])
