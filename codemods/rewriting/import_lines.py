"""Single import statements: what they import, with a name more or less."""

from __future__ import annotations

import sys
from bisect import bisect

import libcst as cst
from libcst.helpers import get_full_name_for_node

from codemods.cst.comments import comments_within
from codemods.cst.spacing import NOTHING, SEPARATOR, Newline

ImportLine = cst.Import | cst.ImportFrom


def only_import(statement: cst.CSTNode) -> ImportLine | None:
    """The import that a line consists of; None for any other statement."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom() as only]):
            return only
    return None


def module_of(statement: ImportLine) -> str:
    """The module that a statement names first, relative dots included."""
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name
    # from ..training import optim, or `from . import optim`
    dots = "." * len(statement.relative)
    if statement.module is None:
        return dots
    return dots + (get_full_name_for_node(statement.module) or "")


def root_of(statement: ImportLine) -> str:
    return module_of(statement).partition(".")[0]


def is_standard(statement: ImportLine) -> bool:
    return root_of(statement) in sys.stdlib_module_names


def has_several(statement: ImportLine) -> bool:
    """Whether a statement is `from m import b, c`."""
    if not isinstance(statement, cst.ImportFrom):
        return False
    names = statement.names
    return not isinstance(names, cst.ImportStar) and len(names) > 1


def bindings(statement: ImportLine) -> set[tuple[str, str]]:
    """The full name of what a statement imports, with each name that it binds.

    `from jax import numpy as jnp` is as good as `import jax.numpy as jnp`.
    """
    names = statement.names
    module = module_of(statement)
    if isinstance(names, cst.ImportStar):
        return {(module, "*")}
    if isinstance(statement, cst.Import):
        return {(one.evaluated_name, one.evaluated_alias or "") for one in names}
    # from . import steps
    dot = "" if module.endswith(".") else "."
    return {
        (
            f"{module}{dot}{one.evaluated_name}",
            one.evaluated_alias or one.evaluated_name,
        )
        for one in names
    }


def without(statement: ImportLine, names: set[str]) -> ImportLine | None:
    """The statement without some names; None if none is left."""
    if isinstance(statement.names, cst.ImportStar):
        return None if "*" in names else statement
    # from flax import nn, optim
    kept: list[cst.ImportAlias] = []
    for alias in statement.names:
        bound = alias.evaluated_alias or alias.evaluated_name
        if bound not in names:
            kept.append(alias)
    if len(kept) == len(statement.names):
        return statement
    if not kept:
        return None
    last = statement.names[-1]
    # a list of names may end with a comma within parentheses
    if kept[-1] is last:
        return statement.with_changes(names=kept)
    comma = kept[-1].comma
    # Adam,  # used
    if isinstance(comma, cst.Comma) and comments_within(comma):
        behind = cst.ensure_type(comma.whitespace_after, Newline)
        behind = behind.with_changes(empty_lines=(), last_line=NOTHING)
        kept[-1] = kept[-1].with_changes(
            comma=comma.with_changes(whitespace_after=behind)
        )
        closed = cst.RightParen(whitespace_before=NOTHING)
        return statement.with_changes(names=kept, rpar=closed)
    kept[-1] = kept[-1].with_changes(comma=last.comma)
    return statement.with_changes(names=kept)


def joined(names: list[cst.ImportAlias], new: cst.ImportAlias) -> list[cst.ImportAlias]:
    """The names with one more, in its sorted place if they are sorted."""
    words = [alias.evaluated_name for alias in names]
    index = len(names)
    if words == sorted(words):
        index = bisect(words, new.evaluated_name)
    separator = names[0].comma if len(names) > 1 else SEPARATOR
    every = [*names]
    if index < len(names):
        every.insert(index, new.with_changes(comma=separator))
        return every
    # the new last name ends as the old one did, with or without a comma
    last = names[-1]
    every[-1] = last.with_changes(comma=separator)
    every.append(new.with_changes(comma=last.comma))
    return every
