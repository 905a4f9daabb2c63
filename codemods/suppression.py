"""Comments that leave a site alone: `# optim2optax: ignore[FO202]`, or without codes for any."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

COMMENT = re.compile(r"#\s*optim2optax:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")


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
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT and (match := COMMENT.search(token.string)):
            codes = tuple(word.strip().upper() for word in (match[1] or "").split(",") if word.strip())
            found.append(Suppression(token.start[0], codes))
    return tuple(found)
