"""`setup.cfg`: `install_requires`, `python_requires` and the extras, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Read,
    Section,
    not_read,
)
from optim2optax.dependencies.lists import line_behind
from optim2optax.dependencies.requirement import ABOUT, LONGEST, read_requirement

LINE = re.compile(r"[^\r\n]+")
HEADER = re.compile(r"\[(?P<name>[^\]]+)\]")
KEY = re.compile(r"(?P<key>[^\s=:#;][^=:]*?)\s*[=:][ \t]*")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
LISTS = ("install_requires", "tests_require", "setup_requires")
# flax; jax, but not flax; python_version < "3.9"
SEVERAL = re.compile(r";(?!\s*\(*\s*(?:python|sys_|os_|platform|implementation|extra))")


def read(text: str, path: str) -> Declarations:
    """What a setup.cfg declares."""
    del path
    read: dict[tuple[str, str], list[Read]] = {}
    for section, key, start, value in _values(text):
        span = (start, start + len(value))
        one: Read | None = None
        if (section, key) == ("options", "python_requires"):
            one = DeclaredRequirement("python", span, span, value)
        elif section == "options.extras_require" or (
            section == "options" and key in LISTS
        ):
            one = read_requirement(value, start)
            # install_requires = flax; jax
            if SEVERAL.search(value) and ABOUT.search(value):
                one = not_read(span, "Several stand in one line.")
        if isinstance(one, DeclaredRequirement):
            one = replace(one, behind=partial(line_behind, text, *one.span))
        if one is not None:
            read.setdefault((section, key), []).append(one)
    sections = [
        Section(tuple(found), base=key == LISTS[0]) for (_, key), found in read.items()
    ]
    return Declarations(tuple(sections))


def _values(text: str) -> Iterator[tuple[str, str, int, str]]:
    """Each line of each value, without comments: its section and key, its start, and its text."""
    section = key = ""
    for found in LINE.finditer(text):
        line = found[0]
        stripped = line.lstrip()
        if not stripped or stripped.startswith(("#", ";")) or len(line) > LONGEST:
            continue
        header = HEADER.match(line)
        if header:
            section, key = header["name"], ""
            continue
        begin = len(line) - len(stripped)
        if not begin:  # a line without indent begins a value
            named = KEY.match(line)
            key = named["key"] if named else ""
            begin = named.end() if named else len(line)
        value = COMMENT.sub("", line[begin:]).rstrip()
        if value:
            yield section, key, found.start() + begin, value
