"""Files that are not analysed: where their text speaks of optimizers, as far as words tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

NAMED = re.compile(
    r"""(?P<whole>^[ \t]*(?:from|import)[ \t].*(?<!\w)optim(?!\w).* | (?<!\w)(?:flax\.)?optim\.\w+)
    |(?<!\w)(?:apply_gradient|optimizer_def|param_states|ModelParamTraversal
        |(?P<target>target)|(?P<step>step))(?!\w)""",
    re.VERBOSE,
)
# What a name is an attribute of, read from the right. A pattern that began at the left would try
# each name of a long chain.
OWNER = re.compile(r"\s*\.\s*(?:\][^\[\]\n]*\[|\)[^()\n]*\()*[\w.]*")
LONGEST_OWNER = 200
OPTIMIZER = re.compile(r"(?:^|\.)_?(?i:opt\w*)(?:\[[^\]\n]*\])?\s*\.\s*$")
STATE = re.compile(r"\w\.state\.$")
COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
LINE_END = re.compile("\r\n|\r|\n")


def with_sites(problem: str, text: str) -> str:
    """A problem of a text, and the places in it of which nothing more is known for that reason."""
    found = [f"line {number}: {site}" for number, site in sites_in(text)]
    if not found:
        return problem
    listed = ", ".join(found)
    return f"{problem}; not seen: {listed}"


def sites_in(text: str) -> Iterator[tuple[int, str]]:
    """The uses of legacy optimizers that a text seems to have, each with its line, from 1."""
    for number, line in enumerate(LINE_END.split(text), 1):
        code = COMMENT.sub("", line)
        for found in NAMED.finditer(code):
            end = found.start()
            start = max(0, end - LONGEST_OWNER)
            backwards = code[start:end][::-1]
            before = OWNER.match(backwards)
            owner = ""
            # `optimizer.` of `optimizer.target`
            if before and not found["whole"]:
                owner = before[0][::-1]
            # `target` and `step` are common words: `optimizer.target` and `x.state.step` count.
            if found["target"] and not OPTIMIZER.search(owner):
                continue
            if found["step"] and not STATE.search(owner):
                continue
            yield number, f"{owner}{found[0]}".strip()
