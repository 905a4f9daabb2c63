"""Files that are not analysed: where their text speaks of optimizers, as far as words tell."""

from __future__ import annotations

import re

from codemods.sources.prefilter import mentions_legacy
from codemods.sources.text import LINE_END

IN_JSON = re.compile(r'^\s*"(.*?)(?:\\n)?",?$')
"""A line of code in the JSON of a notebook."""

COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
STEP = re.compile(r"\w\.state\.step\b")
LONGEST = 80


def with_sites(problem: str, text: str) -> str:
    """A problem of a text, and the lines that seem to use legacy optimizers, from 1."""
    found: list[str] = []
    for number, line in enumerate(LINE_END.split(text), 1):
        code = COMMENT.sub("", IN_JSON.sub(r"\1", line)).strip()
        # the imports may be in any other line
        if STEP.search(code) or mentions_legacy(
            f"flax {code}".encode(errors="replace")
        ):
            found.append(f"line {number} `{code[:LONGEST]}`")
    return f"{problem}; not seen: {', '.join(found)}" if found else problem
