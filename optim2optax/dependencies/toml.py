"""Where the values of a TOML file stand in its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import String

from optim2optax.dependencies.declared import Declared, Finding, Span, UnreadableError
from optim2optax.dependencies.requirement import read_requirement

LONG_QUOTES = ('"""', "'''")
STAND_IN = re.compile(r'"optim2optax stands in (\d+)"')
Path = tuple[str | int, ...]


class Value(NamedTuple):
    """A string of a file: the keys that lead to it, what it says, and where it stands, with its quotes."""

    path: Path
    text: str
    span: Span

    def inner(self, text: str) -> tuple[str, int]:
        """What stands between its quotes, as it is written, and where that begins."""
        start, end = self.span
        return text[start + 1 : end - 1], start + 1


def strings(text: str, is_wanted: Callable[[Path], bool]) -> list[Value]:
    """The strings of a file below some keys, in order.

    Each is exchanged for a mark, so that the text that results tells where it stood.

    Raises:
      UnreadableError: if this is no TOML.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UnreadableError(
            f"cannot be parsed as TOML: {error}", getattr(error, "line", 1)
        ) from error
    found: list[tuple[Path, String]] = []
    for container, key, path in [*_places(document, ())]:
        if is_wanted(path):
            found.append((path, container[key]))
            container[key] = f"optim2optax stands in {len(found) - 1}"
    values: list[Value] = []
    whole = ""
    parts = STAND_IN.split(tomlkit.dumps(document))
    for before, number in zip(parts[::2], (*parts[1::2], None), strict=True):
        whole += before
        if number is not None:
            path, item = found[int(number)]
            start = len(whole)
            whole += item.as_string()
            values.append(Value(path, str(item), (start, len(whole))))
    if whole != text:
        raise UnreadableError("cannot be read to the letter", 1)
    return [value for value in values if not text.startswith(LONG_QUOTES, value.span[0])]


def requirements(
    text: str, values: Sequence[Value]
) -> tuple[list[Declared], list[Finding], list[Span]]:
    """The requirements of an array, what cannot be read of it, and where its elements stand."""
    read = [read_requirement(*value.inner(text), quotes=1) for value in values]
    declared = [one for one in read if isinstance(one, Declared)]
    return (
        declared,
        [one for one in read if isinstance(one, Finding)],
        [value.span for value in values],
    )


def _places(container: Any, path: Path) -> Iterator[tuple[Any, str | int, Path]]:
    """All strings, with what holds them."""
    keys: Sequence[Any] = range(len(container)) if isinstance(container, list) else list(container)
    for key in keys:
        item = container[key]
        if isinstance(item, String):
            yield container, key, (*path, key)
        elif isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))
