"""A test on bytes, before anything is parsed.

It leaves out most files of most projects, so it searches for plain words first, which is many times
faster than for patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.sources.suppression import MARKER

STEP = re.compile(rb"(?<!\w)(?:apply_gradient|ModelParamTraversal)(?!\w)")
PARTS = re.compile(rb"(?<!\w)(?:param_states|optimizer_def)(?!\w)")
MODULE = re.compile(rb"(?:(?<!\w)|\\n)$")
OWNER = re.compile(rb"(?i:opt\w*)(?:\[[^\]\n]*\]|\([^()\n]*\))*\s*\.\s*$")
USE = re.compile(
    rb"""(?<!State)\.\s*(?:create|target|state)\b|\(\s*(?:target|state)\s*=|["'](?:target|state)["']"""
    rb"""|\b(?:Ada\w+|GradientDescent|LAMB|LARS|Momentum|MultiOptimizer|RMSProp|WeightNorm)\("""
)
"""What a file may say of legacy optimizers that other files of its project name."""

MAYBE = re.compile(rb"""\.state\.step\b|["']target["']""")
NN = re.compile(rb"(?<![a-zA-Z0-9])nn(?!\w)")
REMARK = MARKER.encode()
REACH = 100
"""How far back from `.target` its owner may begin, in bytes."""


def mentions_legacy(content: bytes) -> bool:
    """Whether a file could build, step or read a legacy optimizer.

    False is certain for a file alone: no spelling of an import of `flax.optim`, no
    `apply_gradient`, no traversal and nothing that only legacy optimizers have is in it, and no
    remark of partial work. What modern code is full of, `apply_gradients` and `optimizer`, does not
    count.
    """
    says_flax = b"flax" in content
    # from flax import optim
    if says_flax and _names_module(content):
        return True
    # optimizer.apply_gradient(grads)
    may_step = b"apply_gradient" in content or b"ModelParamTraversal" in content
    if may_step and STEP.search(content) is not None:
        return True
    if (says_flax or b"jax" in content) and _reads_parts(content):
        return True
    return REMARK in content


def mentions_models(content: bytes) -> bool:
    """Whether a file could import `flax.nn`, or a copy of it. False is certain."""
    return b"flax" in content and NN.search(content) is not None


def _names_module(content: bytes) -> bool:
    ahead = _before(content, b"optim")
    return any(map(MODULE.search, ahead))


def may_read(content: bytes) -> bool:
    """Whether a file, in a project that has legacy optimizers, could read one or its checkpoint."""
    return uses_jax(content) and MAYBE.search(content) is not None


def may_use(content: bytes) -> bool:
    """Whether a file could use a legacy optimizer that others of its project make or step."""
    if mentions_legacy(content):
        return True
    return USE.search(content) is not None


def may_carry(content: bytes) -> bool:
    """Whether a notebook, in any project, could have an optimizer."""
    if uses_jax(content):
        return True
    words = (b".target", b".state", b"apply_gradient", b"%run")
    return any(word in content for word in words)


def uses_jax(content: bytes) -> bool:
    """Whether a file says `jax` or `flax` at all."""
    return b"jax" in content or b"flax" in content


def _reads_parts(content: bytes) -> bool:
    # optimizer.state.param_states
    may_have = b"param_states" in content or b"optimizer_def" in content
    if may_have and PARTS.search(content) is not None:
        return True
    # optimizer.target
    ahead = _before(content, b"target")
    return any(map(OWNER.search, ahead))


def _before(content: bytes, word: bytes) -> Iterator[bytes]:
    """What stands before each occurrence of a word, or of one that ends so.

    Of a notebook, it is JSON as it stands in the file.
    """
    index = content.find(word)
    while index >= 0:
        end = index + len(word)
        following = content[end : end + 1]
        # optimizer, optim_def
        is_in_longer_word = following.isalnum() or following == b"_"
        if not is_in_longer_word:
            start = max(0, index - REACH)
            yield content[start:index]
        index = content.find(word, end)
