"""Soft actor-critic and TD3 on made-up transitions, by Adam."""

from __future__ import annotations

from typing import Any


class Buffer:
    """Gives other transitions each time."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def sample(self, _: Any, number: int) -> Any:
        """States, actions, next states, rewards, and whether an episode goes on."""
        draw = self.tree.uniform
        state, action, next_state = draw(number, 5), draw(number, 2), draw(number, 5)
        return state, action, next_state, draw(number, 1), 0 * draw(number, 1) + 1


def train(tree: Any) -> None:
    """Take ten updates of each algorithm."""
    tree.stub("dm_control", "pybullet_envs")
    for name, optimizers in {
        "SAC": ("actor_optimizer", "critic_optimizer", "log_alpha_optimizer"),
        "TD3": ("actor_optimizer", "critic_optimizer"),
    }.items():
        agent = getattr(tree.module(f"jax_rl.{name}"), name)(5, 2, 1.0)
        for _ in range(10):
            agent.train(Buffer(tree), 16)
            tree.record(*(getattr(agent, optimizer) for optimizer in optimizers))
