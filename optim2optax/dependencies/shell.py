"""What commands install: in CI, Makefiles, scripts, tox, nox, a README and notebooks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Read,
    Section,
    Span,
    TextEdit,
    not_read,
)
from optim2optax.dependencies.not_edited import requirements
from optim2optax.dependencies.requirement import ABOUT, PLACE, read_requirement

INSTALL = re.compile(r"(?<![\w-])pip[\d.]*[ \t]+(?:-\S+[ \t]+)*install(?![\w-])")
GAP = re.compile(r"(?:[ \t]|\\[ \t]*(?:\r\n|\n)(?:[ \t]*#[^\r\n]*(?:\r\n|\n))*)+")
WORD = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\$\{[^}]*\}|\\[^\r\n]|[^\s\\"';&|<>()`])+"""
)
REDIRECTION = re.compile(r"\d?>{1,2}&?[ \t]*\S+|<[ \t]*\S+")
QUOTED = re.compile(r"""(?P<quote>["'])[^"'\\]*(?P=quote)""")
COMPUTED = re.compile(r"[$`{\\]")
WITH_ARGUMENT = frozenset(
    ("-r", "-c", "-f", "-i", "-t", "--requirement", "--constraint", "--find-links")
) | {"--index-url", "--extra-index-url", "--target", "--trusted-host"}
"""The options of pip whose next word is their argument, and neither package nor place of one."""


LISTS = ("tox.ini", "noxfile.py")
"""Files that name packages without a command."""


def read(text: str, path: str) -> Declarations:
    """What the commands in a file install. None is edited, and none need install everything."""
    if posixpath.basename(path) in LISTS:
        found = [*requirements(text)]
    else:
        sections = installs(text, 0, len(text))
        found = [one for section in sections for one in section.declared]
    return Declarations(told=tuple(found), is_whole=False)


class ShellWord(NamedTuple):
    """A word of a command, where it stands, and the whitespace before it."""

    text: str
    span: Span
    gap: str


def installs(text: str, start: int, end: int) -> Iterator[Section]:
    """The requirements of each `pip install` between two places of a text."""
    for found in INSTALL.finditer(text, start, end):
        line_start = max(text.rfind("\n", 0, found.start()), start - 1) + 1
        if "#" in text[line_start : found.start()]:  # a comment
            continue
        words = [*_words(text, found.end(), end)]
        read: list[Read] = []
        previous = ""
        for word in words:
            option, previous = previous, word.text
            # pip install -r requirements.txt
            if option in WITH_ARGUMENT or word.text.startswith("-"):
                continue
            requirement = _requirement(word)
            if requirement is not None:
                read.append(requirement)
        yield Section(tuple(read), base=True)


def _words(text: str, index: int, end: int) -> Iterator[ShellWord]:
    """The words from a place to the end of the command."""
    while (gap := GAP.match(text, index, end)) is not None:
        index = gap.end()
        redirection = REDIRECTION.match(text, index, end)
        if redirection is not None:
            index = redirection.end()
            continue
        word = WORD.match(text, index, end)
        if word is None or word[0].startswith("#"):
            return
        index = word.end()
        yield ShellWord(word[0], word.span(), gap[0])
        # pip install flax>=0.3 writes to a file =0.3
        redirection = REDIRECTION.match(text, index, end)
        index = redirection.end() if redirection else index


def _requirement(word: ShellWord) -> Read | None:
    quotes = 1 if QUOTED.fullmatch(word.text) else 0
    start, end = word.span
    inner = word.text[quotes : len(word.text) - quotes]
    if COMPUTED.search(inner) or (not quotes and re.search("[\"']", inner)):
        # pip install jax==$VERSION
        if ABOUT.search(inner) is not None and not PLACE.search(inner):
            return not_read(word.span, f"`{word.text}` is put together by the shell.")
        return None
    found = read_requirement(inner, start + quotes, quotes)
    if not isinstance(found, DeclaredRequirement):
        return found
    behind = partial(_word_behind, word)
    return replace(found, span=(start, end), bare=not quotes, behind=behind)


def _word_behind(word: ShellWord, name: str, version: str) -> TextEdit:
    """One more word, with the whitespace that is before the other one."""
    _, end = word.span
    quote = word.text[0]
    if quote not in "\"'":
        # a shell takes `>` without quotes for a redirection
        quote = '"' if version else ""
    gap = word.gap if "#" not in word.gap else " "
    return TextEdit(end, end, f"{gap}{quote}{name}{version}{quote}")
