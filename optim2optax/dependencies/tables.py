"""Tables of TOML with a requirement in each line, as Poetry and Pipenv have them: `flax = "^0.3.4"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import Declared, Edit, Finding, Section, Syntax, direct
from optim2optax.dependencies.placing import line_behind, quoted_like, start_of_line
from optim2optax.dependencies.requirement import ABOUT
from optim2optax.dependencies.toml import Path, Value

PLACES = ("git", "path", "url", "file")
LINE = re.compile(r"(?P<indent>[ \t]*)(?P<key>[\w\"'.-]+)(?P<padding>[ \t]*)=(?P<space>[ \t]*)")


def of_tables(
    text: str,
    values: Sequence[Value],
    table_of: Callable[[Path], Path | None],
    syntax: Syntax,
    base: Path,
) -> tuple[list[Section], list[Finding]]:
    """The sections that some tables are, and what in them comes from elsewhere.

    Args:
      text: that of the file.
      values: the strings in the tables, in order.
      table_of: gives the keys of the table that a string is in.
      syntax: how versions are written in them.
      base: the keys of the table that is always installed.
    """
    sections: list[Section] = []
    problems: list[Finding] = []
    for table, group in groupby(
        sorted(values, key=lambda value: str(table_of(value.path))), lambda v: table_of(v.path)
    ):
        assert table is not None
        declared: list[Declared] = []
        for value in group:
            name, keys = (
                canonicalize_name(str(value.path[len(table)])),
                value.path[len(table) + 1 :],
            )
            if keys and keys[-1] in PLACES and ABOUT.fullmatch(name):
                problems.append(direct(value.span, name))
            elif not keys or keys[-1] == "version":
                declared.append(_declared(value, name, syntax))
        sections.append(Section(tuple(declared), _insert(text), base=table == base))
    return sections, problems


def _declared(value: Value, name: str, syntax: Syntax) -> Declared:
    start, end = value.span
    is_python = name == "python" and syntax == "poetry"
    return Declared(
        name, value.span, (start + 1, end - 1), value.text, syntax=syntax, whole_range=is_python
    )


def _insert(text: str) -> Callable[[Declared, str, str], Edit | None]:
    def insert(anchor: Declared, name: str, version: str) -> Edit | None:
        """A line behind that of another requirement, with its equals sign in the same column if there is room."""
        start = start_of_line(text, anchor.span[0])
        found = LINE.match(text, start)
        if found is None or canonicalize_name(found["key"].strip("\"'")) != anchor.name:
            return None
        padding = found["padding"]
        column = len(found["key"]) + len(padding) if len(padding) > 1 else 0
        width = max(column, len(name) + min(len(padding), 1))
        value = quoted_like(text, anchor.span, version or "*")
        return line_behind(
            text, anchor.span[1], f"{found['indent']}{name:{width}}={found['space']}{value}"
        )

    return insert
