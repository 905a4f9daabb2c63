"""Soft actor-critic and TD3 on made-up transitions, written with `flax.nn`, by Adam."""

from __future__ import annotations

import importlib
from typing import Any

FLAX = "0.3.6"


class Space:
    """Numbers, as `gym.spaces.Box` describes them."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


def train(tree: Any) -> None:
    """Take five updates of each algorithm."""
    spaces: Any = importlib.import_module("gym.spaces")
    spaces.Box = Space
    for name, optimizers in {
        "SAC": ("optim_actor", "optim_critic", "optim_alpha"),
        "TD3": ("optim_actor", "optim_critic"),
    }.items():
        algorithm = getattr(tree.module(f"rljax.{name.lower()}"), name)
        agent = algorithm(Space(5), Space(2), seed=0, buffer_size=100, batch_size=16)
        for _ in range(40):
            state, next_state, action = (tree.uniform(n) for n in (5, 5, 2))
            agent.buffer.append(state, action, 1.0, False, next_state, False)
        for _ in range(5):
            agent.update()
            tree.record(*(getattr(agent, optimizer) for optimizer in optimizers))
