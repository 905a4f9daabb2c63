"""Edits of statements: of simple ones, of imports, and of the heads of functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from codemods.optimizers.base import Support
from codemods.rewriting.edits.base import Edit, Holes, Place, joined
from codemods.sources.modules import Span


@dataclass(frozen=True)
class StatementEdit(Edit):
    """An edit of a whole statement, or of the head of one, that starts where `span` does."""


@dataclass(frozen=True)
class ReplaceStatement(StatementEdit):
    """Replace the simple statement at `span` by statements made from templates.

    Without templates, the statement or whole function is removed, and its comments stay where it
    was.
    """

    templates: tuple[str, ...]
    holes: Holes = ()
    supports: tuple[Support, ...] = ()

    @property
    def removes(self) -> bool:
        return not self.templates

    def gone(self, place: Place) -> Iterable[ast.AST]:
        return ast.walk(place.node) if self.removes else ()


@dataclass(frozen=True)
class TakeBody(StatementEdit):
    """Put the body of the `if` at `span` in its place."""


@dataclass(frozen=True)
class MoveStatement(StatementEdit):
    """Move the statement at `span` to just before the one at `target`, in the same block."""

    target: Span

    def merged(self, other: Edit) -> Edit | None:
        if not isinstance(other, MoveStatement):
            return super().merged(other)
        # ahead of both targets
        return self if self.target <= other.target else other


@dataclass(frozen=True)
class ChangeParameters(StatementEdit):
    """Add, split or drop parameters of the function at `span`, in its docstring, too.

    `added` has names with the source text of their annotations, which may be empty. `split` has
    the names in the place of one. `unpacked` are the source texts of statements with which the
    body begins.
    """

    added: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    split: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unpacked: tuple[str, ...] = ()

    def merged(self, other: Edit) -> Edit | None:
        return joined(self, other)


@dataclass(frozen=True)
class DeriveState(StatementEdit):
    """Let the dataclass at `span` derive from `TrainState`, without its decorator.

    It loses the fields that are `dropped`.
    """

    dropped: tuple[str, ...]

    @property
    def needs(self) -> set[str]:
        return {"TrainState"}

    def gone(self, place: Place) -> Iterable[ast.AST]:
        if not isinstance(place.node, ast.ClassDef):
            return ()
        # @struct.dataclass
        return chain.from_iterable(map(ast.walk, place.node.decorator_list))


@dataclass(frozen=True)
class MoveImport(Edit):
    """Import the name `bound`, which the statement at `span` imports, elsewhere or no more."""

    bound: str
    statement: str
