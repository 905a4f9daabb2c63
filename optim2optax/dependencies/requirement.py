"""One requirement as pip reads it (PEP 508): its name, and where its version stands."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Read,
    Span,
    direct,
    not_read,
)

# flax[all] (>=0.3,<0.4) ; python_version < "3.9"
HEAD = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:\s*(?P<extras>\[[^\]]*\]))?"
    r"(?:\s*\()?(?:\s*(?P<version>[<>=!~][^;()]*))?[\s)]*(?:;|$)"
)
PLACE = re.compile(r"(?i)\b(?:git|hg|svn|bzr)\+|\bhttps?://|\bfile:|@")
NEWEST = re.compile(
    r"(?i).*\bgit\+\w+://github\.com/(?:google|(?:google-)?deepmind|jax-ml)/"
    r"(?P<name>flax|jax|optax)(?:\.git)?/?(?:#[\w=&.-]*)?\s*"
)
"""What the repository of a package has now: no branch, tag or commit of it is named."""

ABOUT = re.compile(r"(?i)(?<![\w-])(?P<name>flax|jaxlib|jax|optax)(?![\w]|-[a-z])")

LONGEST = 1_000
"""No requirement is longer. A longer text was not written by a person."""


def read_requirement(text: str, start: int, quotes: int = 0) -> Read | None:
    """A requirement in a file.

    Args:
      text: the requirement as it is written in the file, without its quotes.
      start: where it begins.
      quotes: the number of quote characters on each side.

    Returns:
      None if it is not understood, and has none of the names that matter here.
    """
    stripped = text.strip()
    begin = start + len(text) - len(text.lstrip())
    span = (begin, begin + len(stripped))
    if quotes:
        span = (start - quotes, start + len(text) + quotes)
    found = HEAD.match(text) if len(text) < LONGEST else None
    if found is None or not _is_valid(text[: found.end()].rstrip(";")):
        named = ABOUT.search(text)
        if named is None:
            return None
        newest = NEWEST.fullmatch(text)
        if newest is not None:
            end = span[1] - quotes
            name = newest["name"].lower()
            return DeclaredRequirement(name, span, version=(end, end), spec="")
        if PLACE.search(text):  # flax @ git+https://github.com/google/flax
            return direct(span, named["name"].lower())
        return not_read(span, f"`{stripped}` is no requirement that is understood.")
    return _declared(found, start, span)


def _declared(found: re.Match[str], start: int, span: Span) -> DeclaredRequirement:
    """The requirement of a match of `HEAD`, in a text that begins at `start`."""
    extras: tuple[str, Span] | None = None
    head = found.end("name")
    if found["extras"]:
        head = found.end("extras")
        extras = (found["extras"], (start + found.start("extras"), start + head))
    version = (found["version"] or "").rstrip()
    first = found.start("version") if version else head
    gap = found.string[head:first]
    return DeclaredRequirement(
        name=canonicalize_name(found["name"]),
        span=span,
        version=(start + first, start + first + len(version)),
        spec=version,
        # flax (>=0.3)
        gap="" if "(" in gap else gap,
        extras=extras,
    )


def _is_valid(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
