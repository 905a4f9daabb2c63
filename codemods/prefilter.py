"""A test on bytes, before anything is parsed."""

from __future__ import annotations

import re

OPTIM = re.compile(rb"(?:\b|\\n)optim\b")
STEP = re.compile(rb"\b(?:apply_gradient|ModelParamTraversal)\b")
PARTS = re.compile(rb"(?i:opt\w*)(?:\[[^\]\n]*\]|\([^()\n]*\))*\s*\.\s*target\b|\b(?:param_states|optimizer_def)\b")
MAYBE = re.compile(rb"""\.state\.step\b|["']target["']""")


def mentions_legacy(content: bytes) -> bool:
    """Whether a file could build, step or read a legacy optimizer.

    False is certain for a file alone: no spelling of an import of `flax.optim`, no `apply_gradient`, no traversal and nothing
    that only legacy optimizers have is in it. What modern code is full of, `apply_gradients` and `optimizer`, does not count.
    """
    return (
        (b"flax" in content and OPTIM.search(content) is not None)
        or STEP.search(content) is not None
        or (uses_jax(content) and PARTS.search(content) is not None)
    )


def may_read(content: bytes) -> bool:
    """Whether a file, in a project that has legacy optimizers, could read one or its checkpoint."""
    return uses_jax(content) and MAYBE.search(content) is not None


def uses_jax(content: bytes) -> bool:
    """Whether a file says `jax` or `flax` at all."""
    return b"jax" in content or b"flax" in content
