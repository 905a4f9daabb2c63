"""Configurations that name what `flax.optim` had: gin and YAML bind classes by their full names."""

from __future__ import annotations

import re

from codemods.rules.dependencies import NAMED
from optim2optax.dependencies.declared import Declarations, Finding

LEGACY = re.compile(r"\bflax\.optim\b[.\w]*|\bfrom flax import optim\b")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


def read(text: str, path: str) -> Declarations:
    """Where a configuration names something legacy. Nothing is declared by it."""
    del path
    # as long as before, so that all places stay right
    bare = COMMENT.sub(lambda comment: " " * len(comment[0]), text)
    return Declarations(others=tuple(map(_finding, LEGACY.finditer(bare))))


def _finding(found: re.Match[str]) -> Finding:
    message = f"`{found[0]}` is named here, and today's Flax does not have it."
    remedy = (
        "Name what the code has now, such as `optax.adam`, with the arguments of that."
    )
    return Finding(NAMED, found.span(), message, remedy=remedy)
