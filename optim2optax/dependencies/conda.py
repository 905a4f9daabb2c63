"""One requirement as conda reads it: `flax=0.3.4`, `conda-forge::jax >=0.2,<0.3`."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Finding,
    Span,
    not_read,
)
from optim2optax.dependencies.requirement import LONGEST

MATCH = re.compile(
    r"\s*(?:[\w./-]+::)?(?P<name>[A-Za-z0-9][\w.-]*?)(?P<gap>[ \t]*)"
    r"(?P<version>(?:[=<>!~]|(?<=\s)[\d*]).*?)?\s*$"
)
BUILD = re.compile(r"=?=[^=<>!~,|]+=[^=]")
KNOWN = ("flax", "jax", "jaxlib", "optax")


def read_match(
    text: str, start: int, span: Span
) -> DeclaredRequirement | Finding | None:
    """A requirement in a file: its text without quotes begins at `start`, `span` includes them."""
    found = MATCH.match(text) if len(text) < LONGEST else None
    if found is None:
        if text.rpartition("::")[2].startswith(KNOWN):
            return not_read(span, f"`{text}` is no requirement that is understood.")
        return None
    name = canonicalize_name(found["name"])
    version = found["version"] or ""
    if BUILD.match(version.replace(" ", "")):  # jaxlib=0.1.71=cuda111
        if name not in KNOWN:
            return None
        why = f"`{text}` is one build of one version."
        return not_read(span, why, "Require a version that has what is needed.")
    if not version:
        end = start + found.end("name")
        return DeclaredRequirement(name, span, (end, end), syntax="conda")
    where = (start + found.start("version"), start + found.end("version"))
    return DeclaredRequirement(name, span, where, version, found["gap"], syntax="conda")
