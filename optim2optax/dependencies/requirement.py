"""One requirement as pip reads it (PEP 508): what it is about, and where its version stands."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import Declared, Finding, direct, not_read

HEAD = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:\s*(?P<extras>\[[^\]]*\]))?"
    r"(?:\s*\()?(?:\s*(?P<version>[<>=!~][^;()]*))?[\s)]*(?:;|$)"
)
PLACE = re.compile(r"(?i)\b(?:git|hg|svn|bzr)\+|\bhttps?://|\bfile:|@")
ABOUT = re.compile(r"(?i)(?<![\w-])(?P<name>flax|jaxlib|jax|optax)(?![\w]|-[a-z])")

LONGEST = 1_000
"""No requirement is longer; what is, is no text that a person wrote."""


def read_requirement(text: str, start: int, quotes: int = 0) -> Declared | Finding | None:
    """What a requirement says that stands in a file.

    Args:
      text: the requirement as it is written in the file, without its quotes.
      start: where it begins.
      quotes: the number of letters around it on each side.

    Returns:
      None if it is not understood, and says nothing of what matters here.
    """
    stripped = text.strip()
    begin = start + len(text) - len(text.lstrip())
    span = (
        (begin, begin + len(stripped))
        if not quotes
        else (start - quotes, start + len(text) + quotes)
    )
    found = HEAD.match(text) if len(text) < LONGEST else None
    if found is None or not _is_valid(text[: found.end()].rstrip(";")):
        named = ABOUT.search(text)
        if named is None:
            return None
        if PLACE.search(text):
            return direct(span, named["name"].lower())
        return not_read(span, f"`{stripped}` is no requirement that is understood.")
    extras = found["extras"]
    head = found.end("extras") if extras else found.end("name")
    version = (found["version"] or "").rstrip()
    first = found.start("version") if version else head
    gap = text[head:first]
    return Declared(
        canonicalize_name(found["name"]),
        span,
        (start + first, start + first + len(version)),
        version,
        "" if "(" in gap else gap,
        (extras, (start + found.start("extras"), start + found.end("extras"))) if extras else None,
    )


def _is_valid(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
