"""Import statements of one file: dropped and added in the file's own style and place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange

from codemods.rewriting.import_lines import (
    ImportLine,
    bindings,
    has_several,
    is_standard,
    joined,
    module_of,
    only_import,
    root_of,
    without,
)
from codemods.rewriting.import_places import (
    RELATED,
    after_header,
    imports_within,
    insert,
    is_opening,
    place_within,
    related_sections,
    run_of_imports,
    sections_of,
    standard_sections,
    within_cell,
)
from codemods.rewriting.lines import gap_and_comments

Place = tuple[int, int]
"""The line (from 1) and the column (from 0) at which a statement starts."""


@dataclass
class ImportChanges:
    """The names to drop from import statements, and the statements to add, by place.

    Of `import flax.optim` the dotted name is dropped, of a star import `*`. What is added goes
    beside the nested import at its place, or without one to the module's top. `origins` are where
    the statements start that bind what is replaced.
    """

    drop: dict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    add: dict[Place | None, list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    origins: list[Place] = field(default_factory=list)

    @property
    def lines(self) -> list[int]:
        """The lines of statements that change or show new ones their place."""
        places = (*self.add, *self.origins, *self.drop)
        return [place[0] for place in places if place is not None]


class ImportEditor:
    """Edits imports while a transformer passes over a tree.

    The transformer calls `statement` and `block` when it leaves these, and `finish` at the end.
    """

    def __init__(
        self,
        positions: Mapping[cst.CSTNode, CodeRange],
        changes: ImportChanges,
        cell: str = "",
    ) -> None:
        """`cell` opens the first cell of a notebook with any change."""
        self._positions = positions
        self._changes = changes
        self._cell = cell
        self._top = [*changes.add.get(None, ())]
        self._emptied: list[ImportLine] = []
        self._changed: list[ImportLine] = []

    def require(self, statements: Iterable[str]) -> None:
        """Add more imports at the module's top."""
        self._top.extend(statements)

    def statement(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        """The statement without the names to drop, and beside it the imports to add there."""
        kept: list[cst.BaseSmallStatement] = []
        added: list[str] = []
        emptied: ImportLine | None = None
        for before, small in zip(original.body, updated.body, strict=True):
            if not isinstance(small, ImportLine):
                kept.append(small)
                continue
            start = self._positions[before].start
            place = (start.line, start.column)
            rest = without(small, self._changes.drop.get(place, set()))
            # import optax, within the function that had `from flax import optim`
            beside = self._changes.add.get(place, ())
            shares_line = len(original.body) > 1
            # import jax; from flax import optim
            if rest is None and shares_line and len(beside) == 1:
                new = _parsed(beside[0]).body[0]
                kept.append(new.with_changes(semicolon=small.semicolon))
                continue
            added.extend(beside)
            if rest is None:
                emptied = small
            else:
                kept.append(rest)
            if rest is not small or place in self._changes.origins:
                self._changed.append(rest or small)
        if kept and kept != list(updated.body):
            updated = updated.with_changes(body=_ended(kept))
        if added:
            return _with_beside(updated, added, is_kept=bool(kept))
        # a whole import that is dropped stays until `finish`, to show new imports their place
        if not kept and emptied is not None:
            self._emptied.append(emptied)
            return updated.with_changes(body=[emptied])
        return updated

    def block(self, block: cst.IndentedBlock) -> cst.IndentedBlock:
        """A block without emptied statements; `pass` if nothing else is left."""
        body = self._tidy(block.body)
        if len(body) == len(block.body):
            return block
        return block.with_changes(body=body or [cst.parse_statement("pass")])

    def finish(self, module: cst.Module) -> cst.Module:
        """The module with its new top-level imports, and without emptied statements."""
        for statement in dict.fromkeys(self._top):
            for cell in self._cells(module) or [""]:
                module = self._add(module, statement, cell)
        body = self._tidy(module.body)
        if len(body) == len(module.body):
            return module
        return module.with_changes(body=body)

    def _tidy(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Statements without the emptied ones, whose comments and gaps go to those that follow."""
        kept: list[cst.BaseStatement] = []
        carried: list[cst.EmptyLine] = []
        for statement in body:
            leading = list(getattr(statement, "leading_lines", ()))
            if self._is_emptied(statement):
                has_comment = any(line.comment is not None for line in leading)
                if has_comment or not kept or not carried:
                    carried = [*carried, *leading]
                continue
            if carried:
                leading = _merge_leading(carried, leading)
            # the first statement of a block has no blank lines above
            elif not kept and statement is not body[0]:
                leading = gap_and_comments(statement)[1]
            kept.append(_led_by(statement, leading))
            carried = []
        return kept

    def _is_emptied(self, statement: cst.CSTNode) -> bool:
        """Whether a statement is an import that is dropped at the end."""
        small = only_import(statement)
        return any(small is emptied for emptied in self._emptied)

    # Adding

    def _cells(self, module: cst.Module) -> list[str]:
        """The cells of a notebook that import what is replaced: each gets the new import."""
        found: dict[str, None] = {}
        cell = ""
        for statement in module.body if self._cell else ():
            small = only_import(statement)
            # __cell__ = 3
            if small is None and is_opening(module, statement):
                cell = module.code_for_node(statement).strip()
            elif any(small is changed for changed in self._changed):
                found[cell] = None
        return list(found)

    def _add(self, module: cst.Module, text: str, cell: str = "") -> cst.Module:
        """The module with an import that it lacks; in one cell of a notebook, if given."""
        new = only_import(cst.parse_statement(text))
        assert new is not None
        lines = imports_within(module, cell)
        for index, found in lines:
            is_staying = not self._is_emptied(module.body[index])
            if is_staying and bindings(new) <= bindings(found):
                return module
        # from flax.training import checkpoints, train_state
        merged = self._merged(module, lines, new)
        if merged is not None:
            return merged
        anchor = self._anchor(lines)
        if anchor is None and self._cell:
            return self._into_cell(module, cst.SimpleStatementLine([new]))
        by_index = dict(lines)
        run = run_of_imports(module, list(by_index), anchor or 0)
        return self._into_run(module, run, by_index, new)

    def _anchor(self, lines: list[tuple[int, ImportLine]]) -> int | None:
        """The import that shows a new one its place: the first that changes, else a related one."""
        for index, found in lines:
            if any(found is old for old in self._changed):
                return index
        # import flax, else `import jax`
        for root in RELATED:
            for index, found in lines:
                if root_of(found) == root:
                    return index
        return None

    def _into_run(
        self,
        module: cst.Module,
        run: list[int],
        lines: Mapping[int, ImportLine],
        new: ImportLine,
    ) -> cst.Module:
        """The module with an import in the best section of a run of imports."""
        statement = cst.SimpleStatementLine([new])
        sections = sections_of(module, run)
        if is_standard(new):
            sections = standard_sections(sections, lines)
        if not sections:
            # ahead of the first import that is not from `__future__`
            usual = (index for index in run if module_of(lines[index]) != "__future__")
            start = next(usual, 0)
            place = max(start, after_header(module))
            return insert(module, place, statement, head=False, blank=True)
        # from ..optax_compat import Adam: what is relative comes last, and apart as others are
        if not root_of(new) and all(root_of(lines[index]) for index in run):
            is_apart = len(sections) > 1
            return insert(module, run[-1] + 1, statement, head=False, blank=is_apart)
        related = related_sections(sections, lines, new)
        section = (related or sections)[-1]
        is_of_library = all(is_standard(lines[index]) for index in section)
        # the file imports nothing but the standard library: a section of its own behind that
        if not related and is_of_library and not is_standard(new):
            place = section[-1] + 1
            return insert(module, place, statement, head=False, blank=True)
        index = place_within(section, lines, new)
        head = index == section[0]
        whole = head and self._is_emptied(module.body[index])
        return insert(module, index, statement, head=head, whole=whole)

    def _into_cell(
        self, module: cst.Module, statement: cst.SimpleStatementLine
    ) -> cst.Module:
        """The module with a statement at the head of the cell, behind its first imports."""
        start, *others = within_cell(module, self._cell)
        behind = (index for index in others if not only_import(module.body[index]))
        index = next(behind, start + 1)
        return insert(module, index, statement, head=False)

    def _merged(
        self, module: cst.Module, lines: list[tuple[int, ImportLine]], new: ImportLine
    ) -> cst.Module | None:
        """`from m import a` joined to a `from m import b, c`, where the file writes imports so."""
        combined = any(has_several(found) for _, found in lines)
        if not combined or not isinstance(new, cst.ImportFrom):
            return None
        if isinstance(new.names, cst.ImportStar):
            return None
        for index, found in lines:
            if not isinstance(found, cst.ImportFrom):
                continue
            if module_of(found) != module_of(new):
                continue
            names = found.names
            if isinstance(names, cst.ImportStar):
                continue
            if self._is_emptied(module.body[index]):
                continue
            line = cst.ensure_type(module.body[index], cst.SimpleStatementLine)
            more_names = joined(list(names), new.names[0])
            whole = found.with_changes(names=more_names)
            body = [*module.body]
            body[index] = line.with_changes(body=[whole])
            return module.with_changes(body=body)
        return None


def _ended(small: list[cst.BaseSmallStatement]) -> list[cst.BaseSmallStatement]:
    """The statements of a line without a semicolon at its end, as `import jax;` would have one."""
    *others, last = small
    if not isinstance(last.semicolon, cst.Semicolon):
        return small
    return [*others, last.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]


def _with_beside(
    line: cst.SimpleStatementLine, texts: Sequence[str], is_kept: bool
) -> cst.FlattenSentinel[cst.BaseStatement]:
    """A statement with some more behind it; unless it is kept, they take its place and comments."""
    lines = [_parsed(text) for text in texts]
    if is_kept:
        return cst.FlattenSentinel([line, *lines])
    lines[0] = lines[0].with_changes(
        leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace
    )
    return cst.FlattenSentinel(lines)


def _parsed(text: str) -> cst.SimpleStatementLine:
    return cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine)


def _led_by(
    statement: cst.BaseStatement, lines: list[cst.EmptyLine]
) -> cst.BaseStatement:
    """A statement below some lines; the same node if it is there already."""
    if list(getattr(statement, "leading_lines", ())) == lines:
        return statement
    return statement.with_changes(leading_lines=lines)


def _merge_leading(
    carried: list[cst.EmptyLine], own: list[cst.EmptyLine]
) -> list[cst.EmptyLine]:
    """The lines above a removed statement and the next one: all comments, and the wider gap."""
    if any(line.comment is not None for line in carried):
        return [*carried, *own]
    return own if len(own) >= len(carried) else carried
