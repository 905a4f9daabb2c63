"""A transformer that translates, by Adam with weight decay and a schedule."""

from __future__ import annotations

from typing import Any

from benchmarks.made_up import transformer


def train(tree: Any) -> None:
    """The whole loop, for five steps."""
    sampling = "translate_and_calculate_bleu"
    transformer(tree, "examples/wmt", "get_wmt_datasets", sampling, translates=True)
