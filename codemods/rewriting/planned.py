"""The planned edits of one file, by kind and place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from codemods.rewriting.edits import (
    Edit,
    MoveStatement,
    ReplaceStatement,
    StatementEdit,
)
from codemods.sources.modules import Span

StatementEditT = TypeVar("StatementEditT", bound=StatementEdit)
Start = tuple[int, int]


class Planned:
    """The edits of one file.

    Those of expressions go by their span, those of statements, which may be decorated, by their
    start. Of two edits of one expression that do not go together, the later one counts.
    """

    def __init__(self, planned: Sequence[Edit], others: Iterable[int]) -> None:
        """`others` are lines that change beside those of the edits."""
        self.of_expressions: dict[Span, Edit] = {}
        self.moves: list[MoveStatement] = []
        self.wanted: set[Span] = set()
        self._of_statements: dict[type, dict[Start, StatementEdit]] = defaultdict(dict)
        for edit in planned:
            self.wanted.update(span for _, span in edit.holes)
            if isinstance(edit, MoveStatement):
                self.moves.append(edit)
            elif isinstance(edit, StatementEdit):
                self._of_statements[type(edit)][edit.span[:2]] = edit
            else:
                # joined to the one that is there, if they go together
                other = self.of_expressions.get(edit.span)
                both = None if other is None else other.merged(edit)
                self.of_expressions[edit.span] = both or edit
        # where a statement has to be looked into
        self.spans = {*self.of_expressions, *self.wanted}
        self._lines = sorted({span[0] for span in self.spans})
        # and where one changes at all
        starts = [edit.span[0] for edit in planned]
        starts += [move.target[0] for move in self.moves]
        self._touched = sorted({*self._lines, *starts, *others})

    def at(self, kind: type[StatementEditT], start: Start) -> StatementEditT | None:
        """The edit of a kind of the statement that starts somewhere."""
        edit = self._of_statements[kind].get(start)
        # for mypy: what is found by a kind is of that kind
        return edit if isinstance(edit, kind) else None

    def removal(self, start: Start) -> ReplaceStatement | None:
        """The edit that removes the statement that starts somewhere."""
        edit = self.at(ReplaceStatement, start)
        return edit if edit is not None and edit.removes else None

    def touches(self, first: int, last: int) -> bool:
        """Whether anything changes on one of some lines."""
        return _has_between(self._touched, first, last)

    def change_within(self, first: int, last: int) -> bool:
        """Whether the edit of an expression, or what a hole takes, begins on one of some lines."""
        return _has_between(self._lines, first, last)


def _has_between(numbers: Sequence[int], first: int, last: int) -> bool:
    """Whether one of some sorted numbers is neither below `first` nor above `last`."""
    return bisect_right(numbers, last) > bisect_left(numbers, first)
