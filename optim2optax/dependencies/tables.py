"""Tables of TOML with a requirement in each line, for Poetry and Pipenv: `flax = "^0.3.4"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Finding,
    Section,
    Syntax,
    TextEdit,
    direct,
)
from optim2optax.dependencies.placing import line_behind, quoted_like, start_of_line
from optim2optax.dependencies.requirement import ABOUT
from optim2optax.dependencies.toml import Path, TomlString

PLACES = ("git", "path", "url", "file")
LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<key>[\w\"'.-]+)(?P<padding>[ \t]*)=(?P<space>[ \t]*)"
)


def of_tables(
    text: str,
    values: Sequence[TomlString],
    table_of: Callable[[Path], Path | None],
    syntax: Syntax,
    base: Path,
) -> tuple[list[Section], list[Finding]]:
    """The sections of some tables, and the requirements in them that name a place.

    Args:
      text: the text of the file.
      values: the strings in the tables, in order.
      table_of: gives the keys of the table that a string is in.
      syntax: how versions are written in them.
      base: the keys of the table that is always installed.
    """
    sections: list[Section] = []
    problems: list[Finding] = []
    # a table may be written in several parts
    in_order = sorted(values, key=lambda value: str(table_of(value.path)))
    for table, group in groupby(in_order, lambda value: table_of(value.path)):
        assert table is not None
        declared: list[DeclaredRequirement] = []
        for value in group:
            name = canonicalize_name(str(value.path[len(table)]))
            keys = value.path[len(table) + 1 :]
            if keys and keys[-1] in PLACES and ABOUT.fullmatch(name):
                # flax = { git = "…" }
                problems.append(direct(value.span, name))
            elif not keys or keys[-1] == "version":
                # flax = "^0.3.4", flax = { version = "^0.3.4" }
                declared.append(_declared(value, name, syntax))
        sections.append(Section(tuple(declared), _insert(text), base=table == base))
    return sections, problems


def _declared(value: TomlString, name: str, syntax: Syntax) -> DeclaredRequirement:
    start, end = value.span
    is_python = name == "python" and syntax == "poetry"
    return DeclaredRequirement(
        name=name,
        span=value.span,
        version=(start + 1, end - 1),
        spec=value.text,
        syntax=syntax,
        whole_range=is_python,
    )


def _insert(text: str) -> Callable[[DeclaredRequirement, str, str], TextEdit | None]:
    def insert(anchor: DeclaredRequirement, name: str, version: str) -> TextEdit | None:
        """A line behind that of another requirement.

        Its equals sign is in the same column if there is room.
        """
        start = start_of_line(text, anchor.span[0])
        found = LINE.match(text, start)
        if found is None or canonicalize_name(found["key"].strip("\"'")) != anchor.name:
            return None
        padding = found["padding"]
        column = 0
        if len(padding) > 1:  # the equals signs are aligned
            column = len(found["key"]) + len(padding)
        width = max(column, len(name) + min(len(padding), 1))
        value = quoted_like(text, anchor.span, version or "*")
        line = f"{found['indent']}{name:{width}}={found['space']}{value}"
        return line_behind(text, anchor.span[1], line)

    return insert
