"""A test on bytes, before anything is parsed."""

from __future__ import annotations

import re

OPTIM = re.compile(rb"\boptim\b")
STEP = re.compile(rb"\b(?:apply_gradient|ModelParamTraversal)\b")


def mentions_legacy(content: bytes) -> bool:
    """Whether a file could build or step a legacy optimizer.

    False is certain: no spelling of an import of `flax.optim`, no `apply_gradient` and no traversal is in the file. What
    modern code is full of, `apply_gradients` and `optimizer`, does not count.
    """
    return (b"flax" in content and OPTIM.search(content) is not None) or STEP.search(content) is not None
