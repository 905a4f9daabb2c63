"""A neural radiance field, by Adam with a schedule."""

from __future__ import annotations

from typing import Any

from benchmarks.made_up import small_radiance_field


def train(tree: Any) -> None:
    """The whole loop, for six steps."""
    small_radiance_field(tree, "train").train(6)
