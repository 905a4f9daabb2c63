"""Comments that leave a site alone: `# optim2optax: ignore[FO202]`, or without codes for any.

Also the comments that partial work leaves.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

COMMENT = re.compile(r"#\s*optim2optax:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")
MARKER = "# TODO(optim2optax): "
"""Begins the comments that partial work leaves above a statement: a code and a reason."""


@dataclass(frozen=True)
class Suppression:
    """A comment on a line, with the codes (or prefixes of codes) it names; none means any."""

    line: int
    codes: tuple[str, ...]

    def covers(self, code: str) -> bool:
        return not self.codes or code.startswith(self.codes)


def suppressions(code: str) -> tuple[Suppression, ...]:
    """The suppression comments of a file, in order."""
    if "optim2optax" not in code:
        return ()
    found = []
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        suppression = suppression_of(token.string, token.start[0])
        if suppression is not None:
            found.append(suppression)
    return tuple(found)


def suppression_of(text: str, line: int = 0) -> Suppression | None:
    """The suppression in a comment on a line, or in any text with one."""
    match = COMMENT.search(text)
    if match is None:
        return None
    # ignore[FO202, FO3], or `ignore` alone
    words = map(str.strip, (match[1] or "").split(","))
    return Suppression(line, tuple(word.upper() for word in words if word))


def left(code: str) -> dict[int, tuple[str, str]]:
    """The comments of partial work: a code and a reason, by the line of the statement below."""
    found: dict[int, tuple[str, str]] = {}
    above = ""
    lines = map(str.strip, code.split("\n"))
    for number, line in enumerate(lines, start=1):
        # The first marker of a block of comments counts, others may follow it.
        if line.startswith("#"):
            above = above or line.partition(MARKER)[2]
        elif line and above:
            name, _, reason = above.partition(" ")
            found[number] = (name, reason)
            above = ""
    return found
