"""`setup.cfg`: `install_requires`, `python_requires` and the extras, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    Section,
    TextEdit,
    not_read,
)
from optim2optax.dependencies.placing import line_behind, start_of_line
from optim2optax.dependencies.requirement import ABOUT, LONGEST, read_requirement

LINE = re.compile(r"[^\r\n]*")
LINE_END = re.compile(r"\r\n|\n|\r")
HEADER = re.compile(r"\[(?P<name>[^\]]+)\]")
KEY = re.compile(r"(?P<key>[^\s=:#;][^=:]*?)\s*[=:][ \t]*")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
LISTS = ("install_requires", "tests_require", "setup_requires")
OPTIONS = frozenset(("options", key) for key in LISTS)
# flax; jax, but not flax; python_version < "3.9"
SEVERAL = re.compile(r";(?!\s*\(*\s*(?:python|sys_|os_|platform|implementation|extra))")
INDENT = "    "

Place = tuple[str, str]
"""A section and a key."""


def read(text: str, path: str) -> Declarations:
    """What a setup.cfg declares."""
    del path
    declared: dict[Place, list[DeclaredRequirement]] = {}
    problems: list[Finding] = []
    for place, start, value in _values(text):
        one: DeclaredRequirement | Finding | None = None
        if place == ("options", "python_requires"):
            span = (start, start + len(value))
            one = DeclaredRequirement("python", span, span, value)
        elif place[0] == "options.extras_require" or place in OPTIONS:
            one = _requirement(value, start)
        if isinstance(one, Finding):
            problems.append(one)
        elif one is not None:
            declared.setdefault(place, []).append(one)

    def insert(anchor: DeclaredRequirement, name: str, version: str) -> TextEdit:
        before = text[start_of_line(text, anchor.span[0]) : anchor.span[0]]
        # install_requires = flax, on the line of its key
        indent = INDENT if before.strip() else before
        return line_behind(text, anchor.span[1], f"{indent}{name}{version}")

    sections: list[Section] = []
    for (_, key), found in declared.items():
        sections.append(Section(tuple(found), insert, base=key == "install_requires"))
    return Declarations(tuple(sections), tuple(problems))


def _requirement(value: str, start: int) -> DeclaredRequirement | Finding | None:
    # install_requires = flax; jax
    if SEVERAL.search(value) and ABOUT.search(value):
        span = (start, start + len(value))
        return not_read(span, "Several stand in one line.")
    return read_requirement(value, start)


def _values(text: str) -> Iterator[tuple[Place, int, str]]:
    """Each line of each value, without comments: its section and key, its start, and its text."""
    section = key = ""
    for found in _lines(text):
        line = found[0]
        start = found.start()
        is_comment = line.lstrip().startswith(("#", ";"))
        if is_comment or not line.strip() or len(line) > LONGEST:
            continue
        header = HEADER.match(line)
        if header:
            section = header["name"]
            key = ""
            continue
        begin = len(line) - len(line.lstrip())
        if not begin:  # a line without indent begins a value
            named = KEY.match(line)
            key = named["key"] if named else ""
            begin = named.end() if named else len(line)
        value = COMMENT.sub("", line[begin:]).rstrip()
        if value:
            yield (section, key), start + begin, value


def _lines(text: str) -> Iterator[re.Match[str]]:
    index = 0
    while index < len(text):
        found = LINE.match(text, index)
        assert found is not None
        yield found
        end = LINE_END.match(text, found.end())
        index = end.end() if end else len(text)
