"""A transformer as a language model, by Adam with weight decay and a schedule."""

from __future__ import annotations

from typing import Any

from benchmarks.made_up import transformer


def train(tree: Any) -> None:
    """The whole loop, for five steps."""
    sampling = "generate_prediction"
    transformer(tree, "examples/lm1b", "get_datasets", sampling, translates=False)
