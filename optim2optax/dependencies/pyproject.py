"""`pyproject.toml`: the dependencies of PEP 621, the groups of PEP 735, and Poetry's tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import tomlkit
from packaging.utils import canonicalize_name
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import String

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    FormatError,
    Read,
    Section,
    Span,
    TextEdit,
    direct,
)
from optim2optax.dependencies.lists import (
    element_behind,
    line_behind,
    start_of_line,
)
from optim2optax.dependencies.requirement import ABOUT, read_requirement

Path = tuple[str | int, ...]
PYTHON = ("project", "requires-python")
SOURCES = ("tool", "uv", "sources")
BASES = (("project", "dependencies"), ("tool", "poetry", "dependencies"))
PLACES = ("git", "path", "url", "file")
LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<key>[\w\"'.-]+)(?P<padding>[ \t]*)=(?P<space>[ \t]*)"
)
STAND_IN = re.compile(r'"optim2optax stands in (\d+)"')
"""The string that stands in for one of the file, to find where it stood."""


class TomlString(NamedTuple):
    """A string of a file: the keys that lead to it, its text, and its span, with its quotes."""

    path: Path
    text: str
    span: Span

    @property
    def inner(self) -> Span:
        """The span between its quotes."""
        return self.span[0] + 1, self.span[1] - 1


def read(text: str, path: str) -> Declarations:
    """What a project declares. Raises FormatError."""
    del path
    by_section: dict[Path, list[TomlString]] = defaultdict(list)
    for value in _strings(text):
        by_section[_section(value.path)].append(value)
    sections: list[Section] = []
    others: list[Finding] = []
    for name, values in by_section.items():
        if name == PYTHON:
            [python] = values
            whole = DeclaredRequirement(
                "python", python.span, python.inner, python.text, whole_range=True
            )
            sections.append(Section((whole,)))
        elif name == SOURCES:
            # jax = { git = "…", tag = "…" } has several strings
            places = {str(value.path[3]): value.span for value in values}
            known = (name for name in places if ABOUT.fullmatch(name))
            others += [direct(places[name], name) for name in known]
        else:
            is_table = name[0] == "tool"
            read = partial(_of_table, name) if is_table else _of_list
            sections.append(Section(tuple(read(text, values)), base=name in BASES))
    return Declarations(tuple(sections), tuple(others))


def _section(keys: Path) -> Path:
    """The list or table of requirements that a string is in; empty if it is in none."""
    match keys:
        case ("project", "requires-python"):
            return keys
        # [project] dependencies = ["flax"], [dependency-groups] dev = ["flax"]
        case (
            ("project", "dependencies", int())
            | ("project", "optional-dependencies", str(), int())
            | ("dependency-groups", str(), int())
        ):
            return keys[:-1]
        # flax = "^0.3.4", flax = { git = "…" }
        case ("tool", "poetry", "dependencies" | "dev-dependencies", str(), *_) | (
            "tool",
            "uv",
            "sources",
            str(),
            *_,
        ):
            return keys[:3]
        # [tool.poetry.group.dev.dependencies] flax = "^0.3.4"
        case ("tool", "poetry", "group", str(), "dependencies", str(), *_):
            return keys[:5]
    return ()


def _of_list(text: str, values: Sequence[TomlString]) -> Iterator[Read]:
    for value in values:
        found = read_requirement(text[slice(*value.inner)], value.inner[0], quotes=1)
        if isinstance(found, DeclaredRequirement):
            is_last = value is values[-1]
            behind = partial(element_behind, text, value.span, is_last)
            found = replace(found, behind=behind)
        if found is not None:
            yield found


def _of_table(table: Path, text: str, values: Sequence[TomlString]) -> Iterator[Read]:
    for value in values:
        name = canonicalize_name(str(value.path[len(table)]))
        keys = value.path[len(table) + 1 :]
        if keys and keys[-1] in PLACES and ABOUT.fullmatch(name):
            # flax = { git = "…" }
            yield direct(value.span, name)
        elif not keys or keys[-1] == "version":
            # flax = "^0.3.4", flax = { version = "^0.3.4" }
            behind = None
            line = LINE.match(text, start_of_line(text, value.span[0]))
            if line and canonicalize_name(line["key"].strip("\"'")) == name:
                behind = partial(_key_behind, text, line, value.span)
            yield DeclaredRequirement(
                name,
                value.span,
                value.inner,
                value.text,
                syntax="poetry",
                whole_range=name == "python",
                behind=behind,
            )


def _key_behind(
    text: str, line: re.Match[str], span: Span, name: str, version: str
) -> TextEdit:
    """A line behind that of another requirement, its equals sign below if there is room."""
    padding = len(line["padding"])
    # equals signs are aligned if there is more than a space before them
    column = len(line["key"]) + padding if padding > 1 else 0
    width = max(column, len(name) + min(padding, 1))
    quote = text[span[0]]
    value = f"={line['space']}{quote}{version or '*'}{quote}"
    return line_behind(text, line.end("indent"), span[1], f"{name:{width}}", value)


def _strings(text: str) -> list[TomlString]:
    """The strings of the sections, in order.

    Each is replaced by a mark, so that the resulting text tells where it stood.

    Raises:
      FormatError: if this is not TOML.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        line = getattr(error, "line", 1)
        raise FormatError(f"cannot be parsed as TOML: {error}", line) from error
    found: list[tuple[Path, String]] = []
    for container, key, path in [*_places(document, ())]:
        if _section(path):
            found.append((path, container[key]))
            container[key] = f"optim2optax stands in {len(found) - 1}"
    values: list[TomlString] = []
    whole = ""
    parts = STAND_IN.split(tomlkit.dumps(document))
    # text, number, text, …, number, text
    for before, number in zip(parts[::2], (*parts[1::2], None), strict=True):
        whole += before
        if number is not None:
            path, item = found[int(number)]
            start = len(whole)
            whole += item.as_string()
            values.append(TomlString(path, str(item), (start, len(whole))))
    # tomlkit may lose text of odd files, and then all places are wrong
    if whole != text:
        raise FormatError("cannot be read to the letter", 1)
    # a requirement has one quote on each side
    return [
        value for value in values if not text.startswith(('"""', "'''"), value.span[0])
    ]


def _places(container: Any, path: Path) -> Iterator[tuple[Any, str | int, Path]]:
    """All strings, with their containers, and their keys in these."""
    is_list = isinstance(container, list)
    keys: Sequence[Any] = range(len(container)) if is_list else list(container)
    for key in keys:
        item = container[key]
        if isinstance(item, String):
            yield container, key, (*path, key)
        elif isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))
