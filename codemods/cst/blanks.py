"""Blanks that LibCST loses, as ahead of the colon in `except KeyError :`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher


def blanks_lost(text: str, reproduced: str) -> Mapping[int, str] | None:
    """The lines that LibCST gives other blanks, by their index; None if anything else differs."""
    if text == reproduced:
        return {}
    lines, others = text.split("\n"), reproduced.split("\n")
    if [_solid(line) for line in lines] != [_solid(line) for line in others]:
        return None
    pairs = enumerate(zip(lines, others, strict=True))
    return {index: line for index, (line, other) in pairs if line != other}


def with_blanks(after: str, before: str, lost: Mapping[int, str]) -> str:
    """New code in which lines that are as they were have the blanks again that were lost."""
    old, new = before.split("\n"), after.split("\n")
    for start, at, size in SequenceMatcher(
        a=old, b=new, autojunk=False
    ).get_matching_blocks():
        for index in range(start, start + size):
            if index in lost:
                new[at + index - start] = lost[index]
    return "\n".join(new)


def _solid(line: str) -> str:
    """A line without blanks."""
    return line.replace(" ", "").replace("\t", "")
