"""Import statements of one file: dropped and added in the file's own style and place."""

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
from codemods.rewriting.lines import gap_and_comments
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
"""Packages whose imports stand in one section with that of optax."""

RELATED = ("flax", "jax")
"""Packages beside whose imports a new one goes, the best place first."""

ImportLine = cst.Import | cst.ImportFrom


@dataclass(frozen=True)
class ImportedName:
    """A name to drop.

    `line` (from 1) and `column` (from 0) are where its statement starts, `name` is what that binds.
    For `import flax.optim` that is the dotted name, for a star import `*`.
    """

    line: int
    column: int
    name: str


@dataclass(frozen=True)
class Addition:
    """A one-line import to add.

    It goes to the module's top, or beside the nested import that starts at `near`.
    """

    statement: str
    near: tuple[int, int] | None = None


class ImportEditor:
    """Edits imports while a transformer passes over a tree.

    The transformer calls `statement` and `block` when it leaves these, and `finish` at the end.
    """

    def __init__(
        self,
        positions: Mapping[cst.CSTNode, CodeRange],
        drop: Collection[ImportedName],
        add: Sequence[Addition],
        origins: Collection[tuple[int, int]] = (),
        cell: str = "",
    ) -> None:
        """Sort the imports to drop and to add by their places.

        `origins` are where the imports start that bind what is replaced. `cell` opens the first
        cell of a notebook that changes.
        """
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
            rest = _without(small, self._drop.get(place, set()))
            beside = self._nested.get(place, ())
            # import jax; from flax import optim
            if rest is None and len(beside) == 1 and len(original.body) > 1:
                line = cst.ensure_type(cst.parse_statement(beside[0]), cst.SimpleStatementLine)
                kept.append(line.body[0].with_changes(semicolon=small.semicolon))
                continue
            added.extend(beside)
            if rest is None:
                emptied = small
            else:
                kept.append(rest)
            if rest is not small or place in self._origins:
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
        return module if len(body) == len(module.body) else module.with_changes(body=body)

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
            is_led_so = list(getattr(statement, "leading_lines", ())) == leading
            kept.append(statement if is_led_so else statement.with_changes(leading_lines=leading))
            carried = []
        return kept

    def _is_emptied(self, statement: cst.CSTNode) -> bool:
        """Whether a statement is an import that is dropped at the end."""
        small = _only_import(statement)
        return any(small is emptied for emptied in self._emptied)

    # Adding

    def _cells(self, module: cst.Module) -> list[str]:
        """The cells of a notebook that import what is replaced, by what opens them.

        Each gets the new import, because it may be run without the others.
        """
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
        """The module with an import that it lacks; in one cell of a notebook, if given."""
        new = _only_import(cst.parse_statement(text))
        assert new is not None
        lines = _imports_within(module, cell)
        staying = (found for index, found in lines if not self._is_emptied(module.body[index]))
        if any(_binds_same(new, found) for found in staying):
            return module
        # from flax.training import checkpoints, train_state
        merged = self._merged(module, lines, new)
        if merged is not None:
            return merged
        anchor = self._anchor(lines)
        if anchor is None and self._cell:
            return self._into_cell(module, cst.SimpleStatementLine([new]))
        run = _run(module, [index for index, _ in lines], anchor or 0)
        return self._into_run(module, run, dict(lines), new)

    def _anchor(self, lines: list[tuple[int, ImportLine]]) -> int | None:
        """The import that shows a new one its place: the first that changes, else a related one."""
        changed = (index for index, found in lines if any(found is old for old in self._changed))
        related = (index for root in RELATED for index, found in lines if _root(found) == root)
        return next(chain(changed, related), None)

    def _into_run(
        self, module: cst.Module, run: list[int], lines: Mapping[int, ImportLine], new: ImportLine
    ) -> cst.Module:
        """The module with an import in the best section of a run of imports."""
        statement = cst.SimpleStatementLine([new])
        sections = _sections(module, run)
        if _is_standard(new):
            sections = _standard_sections(sections, lines)
        if not sections:
            start = next((index for index in run if _module(lines[index]) != "__future__"), 0)
            place = max(start, _after_header(module))
            return _insert(module, place, statement, head=False, blank=True)
        related = _related_sections(sections, lines, new)
        section = (related or sections)[-1]
        is_standard = all(_is_standard(lines[index]) for index in section)
        # the file imports nothing but the standard library: a section of its own behind that
        if not related and is_standard and not _is_standard(new):
            return _insert(module, section[-1] + 1, statement, head=False, blank=True)
        index = _place(section, lines, new)
        head = index == section[0]
        whole = head and self._is_emptied(module.body[index])
        return _insert(module, index, statement, head=head, whole=whole)

    def _into_cell(self, module: cst.Module, statement: cst.SimpleStatementLine) -> cst.Module:
        """The module with a statement at the head of the cell, behind its first imports."""
        start, *others = _within(module, self._cell)
        index = next((index for index in others if not _only_import(module.body[index])), start + 1)
        return _insert(module, index, statement, head=False)

    def _merged(
        self, module: cst.Module, lines: list[tuple[int, ImportLine]], new: ImportLine
    ) -> cst.Module | None:
        """`from m import a` joined to a `from m import b, c`, where the file writes imports so."""
        combined = any(_has_several(found) for _, found in lines)
        if not combined or not isinstance(new, cst.ImportFrom):
            return None
        if isinstance(new.names, cst.ImportStar):
            return None
        for index, found in lines:
            if not isinstance(found, cst.ImportFrom) or _module(found) != _module(new):
                continue
            if self._is_emptied(module.body[index]) or isinstance(found.names, cst.ImportStar):
                continue
            line = cst.ensure_type(module.body[index], cst.SimpleStatementLine)
            joined = found.with_changes(names=_joined(list(found.names), new.names[0]))
            body = [*module.body]
            body[index] = line.with_changes(body=[joined])
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
    lines = [cst.parse_statement(text) for text in texts]
    if is_kept:
        return cst.FlattenSentinel([line, *lines])
    first = cst.ensure_type(lines[0], cst.SimpleStatementLine).with_changes(
        leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace
    )
    return cst.FlattenSentinel([first, *lines[1:]])


def _has_several(statement: ImportLine) -> bool:
    """Whether a statement is `from m import b, c`."""
    if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
        return False
    return len(statement.names) > 1


def _imports_within(module: cst.Module, cell: str) -> list[tuple[int, ImportLine]]:
    """The imports of a cell with their indices; without a cell, of the module."""
    found: list[tuple[int, ImportLine]] = []
    for index in _within(module, cell):
        only = _only_import(module.body[index])
        if only is not None:
            found.append((index, only))
    return found


def _is_opening(module: cst.Module, statement: cst.CSTNode) -> bool:
    is_line = isinstance(statement, cst.SimpleStatementLine)
    return is_line and CELL.match(module.code_for_node(statement).lstrip()) is not None


def _within(module: cst.Module, cell: str) -> Sequence[int]:
    """The indices of the statements of a cell, from the one that opens it; without one, of all."""
    if not cell:
        return range(len(module.body))
    opened = [
        index for index, statement in enumerate(module.body) if _is_opening(module, statement)
    ]
    titles = (module.code_for_node(module.body[index]).strip() for index in opened)
    start = next(index for index, title in zip(opened, titles, strict=False) if title == cell)
    end = next((index for index in opened if index > start), len(module.body))
    return range(start, end)


def _without(statement: ImportLine, names: set[str]) -> ImportLine | None:
    """The statement without some names; None if none is left."""
    if isinstance(statement.names, cst.ImportStar):
        return None if "*" in names else statement
    # from flax import nn, optim
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
    # a list of names may end with a comma within parentheses
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
    """The import that a line consists of; None for any other statement."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom() as only]):
            return only
    return None


def _module(statement: ImportLine) -> str:
    """The module that a statement names first, relative dots included."""
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name
    # from ..training import optim
    dots = "." * len(statement.relative)
    return dots + (get_full_name_for_node(statement.module) or "" if statement.module else "")


def _root(statement: ImportLine) -> str:
    return _module(statement).partition(".")[0]


def _is_standard(statement: ImportLine) -> bool:
    return _root(statement) in sys.stdlib_module_names


def _binds_same(new: ImportLine, old: ImportLine) -> bool:
    """Whether an import binds, perhaps among others, what a new one would."""
    if type(new) is not type(old):
        return False
    if isinstance(new, cst.ImportFrom) and _module(new) != _module(old):
        return False
    if isinstance(old.names, cst.ImportStar) or isinstance(new.names, cst.ImportStar):
        return False
    wanted = (new.names[0].evaluated_name, new.names[0].evaluated_alias)
    return any((alias.evaluated_name, alias.evaluated_alias) == wanted for alias in old.names)


def _run(module: cst.Module, imports: list[int], anchor: int) -> list[int]:
    """The first run of imports that does not end before `anchor`.

    A run ends at a statement of another kind; a docstring and guarded imports do not end it.
    """
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
    """The imports in groups without blank lines in between, without `from __future__`."""
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


def _standard_sections(
    sections: list[list[int]], lines: Mapping[int, ImportLine]
) -> list[list[int]]:
    """The sections of the standard library, else its imports at the head of other sections."""

    def is_standard(index: int) -> bool:
        return _is_standard(lines[index])

    heads = [list(takewhile(is_standard, section)) for section in sections]
    whole = [head for head, section in zip(heads, sections, strict=True) if head == section]
    return whole or [head for head in heads if head]


def _related_sections(
    sections: list[list[int]], lines: Mapping[int, ImportLine], new: ImportLine
) -> list[list[int]]:
    """The sections with imports of the same package, else of its neighbours, best if sorted."""
    roots = [{_root(lines[index]) for index in section} for section in sections]
    pairs = list(zip(sections, roots, strict=True))
    own = [section for section, found in pairs if _root(new) in found]
    near = [section for section, found in pairs if not found.isdisjoint(NEIGHBOURS)]
    in_order = [section for section in near if _is_sorted(section, lines)]
    return own or in_order or near


def _sorter(
    section: list[int], lines: Mapping[int, ImportLine]
) -> Callable[[ImportLine], tuple[bool, str]]:
    """What the imports of a section are sorted by: kind, if kinds are kept apart, then module."""
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
    """Where an import belongs: at its place in a sorted section, else behind related ones."""
    if _is_sorted(section, lines):
        key = _sorter(section, lines)
        later = (index for index in section if key(lines[index]) > key(new))
        return next(later, section[-1] + 1)
    own = [index for index in section if _root(lines[index]) == _root(new)]
    related = [index for index in section if _root(lines[index]) in RELATED]
    return (own or related or section)[-1] + 1


def _after_header(module: cst.Module) -> int:
    """The place after the docstring and `from __future__` imports."""
    place = 0
    for index, statement in enumerate(module.body):
        small = _only_import(statement)
        is_future = small is not None and _module(small) == "__future__"
        if is_future or is_docstring(statement):
            place = index + 1
    return place


def _insert(
    module: cst.Module,
    index: int,
    statement: cst.SimpleStatementLine,
    head: bool,
    blank: bool = False,
    whole: bool = False,
) -> cst.Module:
    """Insert a statement.

    At the head of a section it takes over the blank lines above, and with `whole` the comments too.
    With `blank` it is set apart from what stands around it.
    """
    body = list(module.body)
    if head:
        following = body[index]
        leading = list(getattr(following, "leading_lines", ()))
        if leading and index > 0:
            taken = leading if whole else [line for line in leading if line.comment is None]
            left = [line for line in leading if line not in taken]
            statement = statement.with_changes(leading_lines=taken)
            body[index] = following.with_changes(leading_lines=left)
    if blank:
        above = [cst.EmptyLine(indent=False)] if index else []
        statement = statement.with_changes(leading_lines=above)
        if index < len(body) and not getattr(body[index], "leading_lines", ()):
            body[index] = body[index].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return module.with_changes(body=[*body[:index], statement, *body[index:]])


def _merge_leading(carried: list[cst.EmptyLine], own: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines above a removed statement and the next one: all comments, and the wider gap."""
    if any(line.comment is not None for line in carried):
        return [*carried, *own]
    return own if len(own) >= len(carried) else carried
