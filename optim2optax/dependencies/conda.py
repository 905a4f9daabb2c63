"""One requirement as conda reads it: `flax=0.3.4`, `conda-forge::jax >=0.2,<0.3`."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import Declared, Finding, Span, not_read
from optim2optax.dependencies.requirement import LONGEST

MATCH = re.compile(
    r"\s*(?:[\w./-]+::)?(?P<name>[A-Za-z0-9][\w.-]*?)(?P<gap>[ \t]*)(?P<version>(?:[=<>!~]|(?<=\s)[\d*]).*?)?\s*$"
)
BUILD = re.compile(r"=?=[^=<>!~,|]+=[^=]")
KNOWN = ("flax", "jax", "jaxlib", "optax")


def read_match(text: str, start: int, span: Span) -> Declared | Finding | None:
    """What a requirement says that stands in a file, without its quotes, from `start` on; `span` includes them."""
    found = MATCH.match(text) if len(text) < LONGEST else None
    if found is None:
        named = next((name for name in KNOWN if text.rpartition("::")[2].startswith(name)), None)
        return not_read(span, f"`{text}` is no requirement that is understood.") if named else None
    name, version = canonicalize_name(found["name"]), found["version"] or ""
    if BUILD.match(version.replace(" ", "")):
        if name in KNOWN:
            return not_read(
                span,
                f"`{text}` is one build of one version.",
                "Require a version that has what is needed.",
            )
        return None
    end = start + found.end("name")
    where = (
        (start + found.start("version"), start + found.end("version")) if version else (end, end)
    )
    return Declared(name, span, where, version, found["gap"] if version else "", syntax="conda")
