"""Import statements of one file: names dropped, statements added, in the file's own style and place."""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import CodeRange

from codemods.cst.layout import is_docstring
from codemods.cst.pieces import SEPARATOR
from codemods.rewriting.movement import gap_and_comments
from codemods.sources.notebook import MARKER as CELL

NEIGHBOURS = (
    "jax",
    "flax",
    "optax",
    "numpy",
    "chex",
    "haiku",
    "tensorflow",
    "torch",
    "absl",
    "ml_collections",
)
RELATED = ("flax", "jax")
ImportLine = cst.Import | cst.ImportFrom


@dataclass(frozen=True)
class ImportedName:
    """A name to drop: where its statement starts (line from 1, column from 0), and the name as that binds it.

    For `import flax.optim` that is the dotted name, for a star import `*`.
    """

    line: int
    column: int
    name: str


@dataclass(frozen=True)
class Addition:
    """A one-line import to add: at the module's top, or beside the nested import that starts at `near`."""

    statement: str
    near: tuple[int, int] | None = None


class ImportEditor:
    """Edits imports while a transformer passes over a tree: `statement` and `block` on leaving these, `finish` at the end."""

    def __init__(
        self,
        positions: Mapping[cst.CSTNode, CodeRange],
        drop: Collection[ImportedName],
        add: Sequence[Addition],
        origins: Collection[tuple[int, int]] = (),
        cell: str = "",
    ) -> None:
        """`origins` are where the imports start that bind what is replaced; `cell` opens the first cell that changes."""
        self._positions = positions
        self._origins = origins
        self._cell = cell
        self._drop: dict[tuple[int, int], set[str]] = {}
        for name in drop:
            self._drop.setdefault((name.line, name.column), set()).add(name.name)
        self._top = [addition.statement for addition in add if addition.near is None]
        self._nested: dict[tuple[int, int], list[str]] = {}
        for addition in add:
            if addition.near is not None:
                self._nested.setdefault(addition.near, []).append(addition.statement)
        self._emptied: list[ImportLine] = []
        self._changed: list[ImportLine] = []

    def require(self, statements: Iterable[str]) -> None:
        """Add more imports at the module's top."""
        self._top.extend(statements)

    def statement(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        """The statement without the names to drop, and beside it the imports that are to stand there."""
        kept: list[cst.BaseSmallStatement] = []
        added: list[str] = []
        emptied: ImportLine | None = None
        for before, small in zip(original.body, updated.body, strict=True):
            if not isinstance(small, ImportLine):
                kept.append(small)
                continue
            start = self._positions[before].start
            rest = _without(small, self._drop.get((start.line, start.column), set()))
            beside = self._nested.get((start.line, start.column), ())
            if rest is None and len(beside) == 1 and len(original.body) > 1:
                new = cst.ensure_type(cst.parse_statement(beside[0]), cst.SimpleStatementLine).body[
                    0
                ]
                kept.append(new.with_changes(semicolon=small.semicolon))
                continue
            added.extend(beside)
            if rest is None:
                emptied = small
            else:
                kept.append(rest)
            if rest is not small or (start.line, start.column) in self._origins:
                self._changed.append(rest or small)
        if kept and kept != list(updated.body):
            if isinstance(kept[-1].semicolon, cst.Semicolon):
                kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            updated = updated.with_changes(body=kept)
        if not added:
            if not kept and emptied is not None:
                self._emptied.append(emptied)
                return updated.with_changes(body=[emptied])
            return updated
        lines = [cst.parse_statement(text) for text in added]
        if kept:
            return cst.FlattenSentinel([updated, *lines])
        first = cst.ensure_type(lines[0], cst.SimpleStatementLine).with_changes(
            leading_lines=updated.leading_lines, trailing_whitespace=updated.trailing_whitespace
        )
        return cst.FlattenSentinel([first, *lines[1:]])

    def block(self, block: cst.IndentedBlock) -> cst.IndentedBlock:
        """A block without the statements that dropping has emptied; `pass` if nothing else is left."""
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
        return module if len(body) == len(module.body) else module.with_changes(body=body)

    def _tidy(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        kept: list[cst.BaseStatement] = []
        carried: list[cst.EmptyLine] = []
        for statement in body:
            leading = list(getattr(statement, "leading_lines", ()))
            if self._is_emptied(statement):
                has_comment = any(line.comment is not None for line in leading)
                carried = (
                    [*carried, *leading] if has_comment or not kept or not carried else carried
                )
                if not has_comment and not carried:
                    carried = leading
                continue
            if carried:
                leading = _merge_leading(carried, leading)
            elif not kept and statement is not body[0]:
                leading = gap_and_comments(statement)[1]
            is_led_so = list(getattr(statement, "leading_lines", ())) == leading
            kept.append(statement if is_led_so else statement.with_changes(leading_lines=leading))
            carried = []
        return kept

    def _is_emptied(self, statement: cst.CSTNode) -> bool:
        """Whether a statement is one that is to go: until the end it stands as it was, to show the new ones their place."""
        small = _only_import(statement)
        return any(small is emptied for emptied in self._emptied)

    # Adding

    def _cells(self, module: cst.Module) -> list[str]:
        """The cells of a notebook that import what is replaced, by what opens them: each may be run without the others."""
        found: dict[str, None] = {}
        cell = ""
        for statement in module.body if self._cell else ():
            small = _only_import(statement)
            if small is None and _is_opening(module, statement):
                cell = module.code_for_node(statement).strip()
            elif any(small is changed for changed in self._changed):
                found[cell] = None
        return list(found)

    def _add(self, module: cst.Module, text: str, cell: str = "") -> cst.Module:
        """The module with an import that it lacks; of a notebook, within one cell, if that is told."""
        new = _only_import(cst.parse_statement(text))
        assert new is not None
        lines = [
            (index, found)
            for index in _within(module, cell)
            if (found := _only_import(module.body[index]))
        ]
        if any(
            _binds_same(new, found)
            for index, found in lines
            if not self._is_emptied(module.body[index])
        ):
            return module
        merged = self._merged(module, lines, new)
        if merged is not None:
            return merged
        changed = (index for index, found in lines if any(found is old for old in self._changed))
        related = (index for root in RELATED for index, found in lines if _root(found) == root)
        anchor = next(chain(changed, related), None)
        if anchor is None and self._cell:
            return self._into_cell(module, cst.SimpleStatementLine([new]))
        run = _run(module, [index for index, _ in lines], anchor or 0)
        sections = _sections(module, run)
        statement = cst.SimpleStatementLine([new])
        roots = dict(lines)
        if _is_standard(new):
            first = [
                list(takewhile(lambda index: _is_standard(roots[index]), found))
                for found in sections
            ]
            sections = [
                own for own, whole in zip(first, sections, strict=True) if own == whole
            ] or list(filter(None, first))
        if not sections:
            start = next((index for index in run if _module(roots[index]) != "__future__"), 0)
            return _insert(
                module, max(start, _after_header(module)), statement, head=False, blank=True
            )
        own = [
            found for found in sections if any(_root(roots[index]) == _root(new) for index in found)
        ]
        near = [
            found for found in sections if any(_root(roots[index]) in NEIGHBOURS for index in found)
        ]
        in_order = [found for found in near if _is_sorted(found, roots)]
        section = (own or in_order or near or sections)[-1]
        if (
            not (own or near)
            and not _is_standard(new)
            and all(_is_standard(roots[index]) for index in section)
        ):
            return _insert(module, section[-1] + 1, statement, head=False, blank=True)
        index = _place(section, roots, new)
        head = index == section[0]
        return _insert(
            module, index, statement, head=head, whole=head and self._is_emptied(module.body[index])
        )

    def _into_cell(self, module: cst.Module, statement: cst.SimpleStatementLine) -> cst.Module:
        """The module with a statement at the head of the cell, behind those that are there already."""
        start, *others = _within(module, self._cell)
        index = next((index for index in others if not _only_import(module.body[index])), start + 1)
        return _insert(module, index, statement, head=False)

    def _merged(
        self, module: cst.Module, lines: list[tuple[int, ImportLine]], new: ImportLine
    ) -> cst.Module | None:
        """`from m import a` joined to an existing `from m import b, c`, where the file writes imports so."""
        several = (found.names for _, found in lines if isinstance(found, cst.ImportFrom))
        combined = any(
            not isinstance(names, cst.ImportStar) and len(names) > 1 for names in several
        )
        if (
            not combined
            or not isinstance(new, cst.ImportFrom)
            or isinstance(new.names, cst.ImportStar)
        ):
            return None
        for index, found in lines:
            same = isinstance(found, cst.ImportFrom) and _module(found) == _module(new)
            if (
                not same
                or self._is_emptied(module.body[index])
                or isinstance(found.names, cst.ImportStar)
            ):
                continue
            assert isinstance(found, cst.ImportFrom)
            line = cst.ensure_type(module.body[index], cst.SimpleStatementLine)
            joined = found.with_changes(names=_joined(list(found.names), new.names[0]))
            body = [
                *module.body[:index],
                line.with_changes(body=[joined]),
                *module.body[index + 1 :],
            ]
            return module.with_changes(body=body)
        return None


def _is_opening(module: cst.Module, statement: cst.CSTNode) -> bool:
    is_line = isinstance(statement, cst.SimpleStatementLine)
    return is_line and CELL.match(module.code_for_node(statement).lstrip()) is not None


def _within(module: cst.Module, cell: str) -> Sequence[int]:
    """The indices of the statements of a cell, from the one that opens it; without a cell, of all."""
    if not cell:
        return range(len(module.body))
    opened = [
        index for index, statement in enumerate(module.body) if _is_opening(module, statement)
    ]
    start = next(
        index for index in opened if module.code_for_node(module.body[index]).strip() == cell
    )
    return range(start, next((index for index in opened if index > start), len(module.body)))


def _without(statement: ImportLine, names: set[str]) -> ImportLine | None:
    """The statement without some names; None if none is left."""
    if isinstance(statement.names, cst.ImportStar):
        return None if "*" in names else statement
    kept = [
        alias
        for alias in statement.names
        if (alias.evaluated_alias or alias.evaluated_name) not in names
    ]
    if len(kept) == len(statement.names):
        return statement
    if not kept:
        return None
    last = statement.names[-1]
    if kept[-1] is not last:
        kept[-1] = kept[-1].with_changes(comma=last.comma)
    return statement.with_changes(names=kept)


def _joined(names: list[cst.ImportAlias], new: cst.ImportAlias) -> list[cst.ImportAlias]:
    """The names with one more, in its sorted place if they are sorted."""
    words = [alias.evaluated_name for alias in names]
    index = bisect(words, new.evaluated_name) if words == sorted(words) else len(names)
    separator = names[0].comma if len(names) > 1 else SEPARATOR
    if index < len(names):
        return [*names[:index], new.with_changes(comma=separator), *names[index:]]
    return [
        *names[:-1],
        names[-1].with_changes(comma=separator),
        new.with_changes(comma=names[-1].comma),
    ]


def _only_import(statement: cst.CSTNode) -> ImportLine | None:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom() as only]):
            return only
    return None


def _module(statement: ImportLine) -> str:
    """The module that a statement names first, relative dots included."""
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name
    dots = "." * len(statement.relative)
    return dots + (get_full_name_for_node(statement.module) or "" if statement.module else "")


def _root(statement: ImportLine) -> str:
    return _module(statement).partition(".")[0]


def _is_standard(statement: ImportLine) -> bool:
    return _root(statement) in sys.stdlib_module_names


def _binds_same(new: ImportLine, old: ImportLine) -> bool:
    if type(new) is not type(old) or (
        isinstance(new, cst.ImportFrom) and _module(new) != _module(old)
    ):
        return False
    if isinstance(old.names, cst.ImportStar) or isinstance(new.names, cst.ImportStar):
        return False
    wanted = (new.names[0].evaluated_name, new.names[0].evaluated_alias)
    return any((alias.evaluated_name, alias.evaluated_alias) == wanted for alias in old.names)


def _run(module: cst.Module, imports: list[int], anchor: int) -> list[int]:
    """Imports up to a statement that is none, docstring and guarded imports aside: the first run not before `anchor`."""
    found = set(imports)
    run: list[int] = []
    for index, statement in enumerate(module.body):
        if index in found:
            run.append(index)
        elif not (isinstance(statement, cst.Try | cst.If) or is_docstring(statement)) and run:
            if anchor <= run[-1]:
                break
            run = []
    return run


def _sections(module: cst.Module, run: list[int]) -> list[list[int]]:
    """The imports in groups without blank lines in between; `from __future__` stands outside of them."""
    sections: list[list[int]] = []
    for index in run:
        statement = module.body[index]
        small = _only_import(statement)
        if small is not None and _module(small) == "__future__":
            continue
        leading = getattr(statement, "leading_lines", ())
        separated = any(line.comment is None for line in leading)
        if sections and not separated and sections[-1][-1] == index - 1:
            sections[-1].append(index)
        else:
            sections.append([index])
    return sections


def _sorter(
    section: list[int], lines: Mapping[int, ImportLine]
) -> Callable[[ImportLine], tuple[bool, str]]:
    """What the imports of a section are sorted by: their modules, behind their kinds if these are kept apart."""
    kinds = [isinstance(lines[index], cst.ImportFrom) for index in section]
    plain_first = kinds == sorted(kinds)
    return lambda statement: (
        plain_first and isinstance(statement, cst.ImportFrom),
        _module(statement).lower(),
    )


def _is_sorted(section: list[int], lines: Mapping[int, ImportLine]) -> bool:
    keys = [*map(_sorter(section, lines), (lines[index] for index in section))]
    return keys == sorted(keys)


def _place(section: list[int], lines: Mapping[int, ImportLine], new: ImportLine) -> int:
    """Where in a section an import belongs: at its sorted place by the section's own order, else behind its relatives."""
    if _is_sorted(section, lines):
        key = _sorter(section, lines)
        return next((index for index in section if key(lines[index]) > key(new)), section[-1] + 1)
    own = [index for index in section if _root(lines[index]) == _root(new)]
    related = [index for index in section if _root(lines[index]) in RELATED]
    return (own or related or section)[-1] + 1


def _after_header(module: cst.Module) -> int:
    """The place after the docstring and `from __future__` imports."""
    header = [
        is_docstring(statement)
        or ((small := _only_import(statement)) is not None and _module(small) == "__future__")
        for statement in module.body
    ]
    return max((index + 1 for index, is_header in enumerate(header) if is_header), default=0)


def _insert(
    module: cst.Module,
    index: int,
    statement: cst.SimpleStatementLine,
    head: bool,
    blank: bool = False,
    whole: bool = False,
) -> cst.Module:
    """Insert a statement. At the head of a section it takes over the blank lines above, and the comments if `whole`."""
    body = list(module.body)
    if head:
        following = body[index]
        leading = list(getattr(following, "leading_lines", ()))
        if leading and index > 0:
            taken = leading if whole else [line for line in leading if line.comment is None]
            statement = statement.with_changes(leading_lines=taken)
            body[index] = following.with_changes(
                leading_lines=[line for line in leading if line not in taken]
            )
    if blank:
        statement = statement.with_changes(
            leading_lines=[cst.EmptyLine(indent=False)] if index else []
        )
        if index < len(body) and not getattr(body[index], "leading_lines", ()):
            body[index] = body[index].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return module.with_changes(body=[*body[:index], statement, *body[index:]])


def _merge_leading(carried: list[cst.EmptyLine], own: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines above a removed statement and those above the next: the comments of both, the wider gap of the two."""
    if any(line.comment is not None for line in carried):
        return [*carried, *own]
    return own if len(own) >= len(carried) else carried
