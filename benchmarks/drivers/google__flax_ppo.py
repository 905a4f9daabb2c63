"""Proximal policy optimization of an actor and critic on frames of Atari, by Adam."""

from __future__ import annotations

from typing import Any


def train(tree: Any) -> None:
    """Take five steps, the rate falling."""
    ppo = tree.module("ppo_lib", "examples/ppo")
    models = tree.module("models", "examples/ppo")
    model = models.ActorCritic(num_outputs=4)
    parameters = models.get_initial_params(ppo.jax.random.PRNGKey(0), model)
    optimizer = models.create_optimizer(parameters, 1e-3)
    tree.record(optimizer)
    for step in range(5):
        states = 255 * tree.uniform(8, 84, 84, 4)
        actions, log_probs = tree.integers(4, 8), -tree.uniform(8)
        returns, advantages = tree.uniform(8), tree.uniform(8)
        batch = (states, actions, log_probs, returns, advantages)
        rate = 1e-3 * (1 - step / 10)
        optimizer, loss = ppo.train_step(
            model, optimizer, batch, 0.1, 0.5, 0.01, rate, 4
        )
        tree.record(optimizer, loss=loss)
