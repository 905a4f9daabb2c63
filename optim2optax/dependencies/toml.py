"""Where the values of a TOML file stand in its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import String

from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Finding,
    FormatError,
    Span,
)
from optim2optax.dependencies.requirement import read_requirement

LONG_QUOTES = ('"""', "'''")
STAND_IN = re.compile(r'"optim2optax stands in (\d+)"')
"""The string that stands in for one of the file, to find where it stood."""

Path = tuple[str | int, ...]


class TomlString(NamedTuple):
    """A string of a file: the keys that lead to it, its text, and its span, with its quotes."""

    path: Path
    text: str
    span: Span

    def inner(self, text: str) -> tuple[str, int]:
        """The source between its quotes, and where that begins."""
        start, end = self.span
        return text[start + 1 : end - 1], start + 1


def strings(text: str, is_wanted: Callable[[Path], bool]) -> list[TomlString]:
    """The strings of a file below some keys, in order.

    Each is replaced by a mark, so that the resulting text tells where it stood.

    Raises:
      UnreadableError: if this is not TOML.
    """
    document = _parsed(text)
    found: list[tuple[Path, String]] = []
    for container, key, path in [*_places(document, ())]:
        if is_wanted(path):
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
        value for value in values if not text.startswith(LONG_QUOTES, value.span[0])
    ]


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        line = getattr(error, "line", 1)
        raise FormatError(f"cannot be parsed as TOML: {error}", line) from error


def requirements(
    text: str, values: Sequence[TomlString]
) -> tuple[list[DeclaredRequirement], list[Finding], list[Span]]:
    """The requirements of an array, the findings of reading it, and the spans of its elements."""
    declared: list[DeclaredRequirement] = []
    problems: list[Finding] = []
    for value in values:
        one = read_requirement(*value.inner(text), quotes=1)
        if isinstance(one, DeclaredRequirement):
            declared.append(one)
        elif one is not None:
            problems.append(one)
    return declared, problems, [value.span for value in values]


def _places(container: Any, path: Path) -> Iterator[tuple[Any, str | int, Path]]:
    """All strings, with their containers, and their keys in these."""
    keys: Sequence[Any] = list(container)
    if isinstance(container, list):
        keys = range(len(container))
    for key in keys:
        item = container[key]
        if isinstance(item, String):
            yield container, key, (*path, key)
        elif isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))
