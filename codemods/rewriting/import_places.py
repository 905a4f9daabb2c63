"""Where an import goes among those of a module: which cell, which section, which line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import libcst as cst

from codemods.cst.comments import is_docstring
from codemods.rewriting.import_lines import (
    ImportLine,
    is_standard,
    module_of,
    only_import,
    root_of,
)
from codemods.sources.notebook import MARKER as CELL
from codemods.vocabulary import words

NEIGHBOURS = words(
    "jax flax optax numpy chex haiku tensorflow torch absl ml_collections"
)
"""Packages whose imports stand in one section with that of optax."""

Lines = Mapping[int, ImportLine]
"""The imports of a module, by their indices in its body."""

Sections = list[list[int]]
"""The indices of the imports of each section."""

RELATED = ("flax", "jax")
"""Packages beside whose imports a new one goes, the best place first."""


def run_of_imports(module: cst.Module, imports: list[int], anchor: int) -> list[int]:
    """The first run of imports that does not end before `anchor`.

    A run ends at a statement of another kind; a docstring and guarded imports do not end it.
    """
    found = set(imports)
    run: list[int] = []
    for index, statement in enumerate(module.body):
        if index in found:
            run.append(index)
            continue
        # try: import jax
        if isinstance(statement, cst.Try | cst.If) or is_docstring(statement):
            continue
        if run and anchor <= run[-1]:
            break
        run = []
    return run


def sections_of(module: cst.Module, run: list[int]) -> Sections:
    """The imports in groups without blank lines in between, without `from __future__`."""
    sections: Sections = []
    for index in run:
        statement = module.body[index]
        if _is_future(statement):
            continue
        leading = getattr(statement, "leading_lines", ())
        separated = any(line.comment is None for line in leading)
        section = sections[-1] if sections else []
        if index - 1 in section and not separated:
            section.append(index)
        else:
            sections.append([index])
    return sections


def standard_sections(sections: Sections, lines: Lines) -> Sections:
    """The sections of the standard library, else its imports at the head of other sections."""

    def is_of_library(index: int) -> bool:
        return is_standard(lines[index])

    heads = [list(takewhile(is_of_library, section)) for section in sections]
    pairs = zip(heads, sections, strict=True)
    whole = [head for head, section in pairs if head == section]
    return whole or [head for head in heads if head]


def related_sections(sections: Sections, lines: Lines, new: ImportLine) -> Sections:
    """The sections with imports of the same package, else of its neighbours, best if sorted."""
    own: Sections = []
    near: Sections = []
    for section in sections:
        roots = {root_of(lines[index]) for index in section}
        if root_of(new) in roots:
            own.append(section)
        if not roots.isdisjoint(NEIGHBOURS):
            near.append(section)
    in_order = [section for section in near if _is_sorted(section, lines)]
    return own or in_order or near


def place_within(section: list[int], lines: Lines, new: ImportLine) -> int:
    """Where an import belongs: at its place in a sorted section, else behind related ones."""
    if _is_sorted(section, lines):
        key = _sorter(section, lines)
        for index in section:
            if key(lines[index]) > key(new):
                return index
        return section[-1] + 1
    roots = {index: root_of(lines[index]) for index in section}
    own = [index for index in section if roots[index] == root_of(new)]
    related = [index for index in section if roots[index] in RELATED]
    behind = (own or related or section)[-1]
    # past those that go on in order, as `import numpy` behind `import jax`
    while {behind, behind + 1} <= roots.keys():
        if not roots[behind] <= roots[behind + 1] <= root_of(new):
            break
        behind += 1
    return behind + 1


def _is_sorted(section: list[int], lines: Lines) -> bool:
    key = _sorter(section, lines)
    keys = [key(lines[index]) for index in section]
    return keys == sorted(keys)


def _sorter(
    section: list[int], lines: Lines
) -> Callable[[ImportLine], tuple[bool, str]]:
    """What the imports of a section are sorted by: kind, if kinds are kept apart, then module."""
    kinds = [isinstance(lines[index], cst.ImportFrom) for index in section]
    plain_first = kinds == sorted(kinds)

    def key(statement: ImportLine) -> tuple[bool, str]:
        # `import jax`, then `from absl import app`
        is_later = plain_first and isinstance(statement, cst.ImportFrom)
        return is_later, module_of(statement).lower()

    return key


def after_header(module: cst.Module) -> int:
    """The place after the docstring and `from __future__` imports."""
    place = 0
    for index, statement in enumerate(module.body):
        if _is_future(statement) or is_docstring(statement):
            place = index + 1
    return place


def _is_future(statement: cst.CSTNode) -> bool:
    """Whether this is `from __future__ import …`."""
    only = only_import(statement)
    return only is not None and module_of(only) == "__future__"


def insert(
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
        first = body[index]
        leading = list(getattr(first, "leading_lines", ()))
        if leading and index > 0:
            blank_lines = [line for line in leading if line.comment is None]
            taken = leading if whole else blank_lines
            left = [line for line in leading if line not in taken]
            statement = statement.with_changes(leading_lines=taken)
            body[index] = first.with_changes(leading_lines=left)
    if blank:
        above = [cst.EmptyLine(indent=False)] if index else []
        statement = statement.with_changes(leading_lines=above)
        following = body[index] if index < len(body) else None
        if following is not None and not getattr(following, "leading_lines", ()):
            below = [cst.EmptyLine(indent=False)]
            body[index] = following.with_changes(leading_lines=below)
    body.insert(index, statement)
    return module.with_changes(body=body)


def imports_within(module: cst.Module, cell: str) -> list[tuple[int, ImportLine]]:
    """The imports of a cell with their indices; without a cell, of the module."""
    found: list[tuple[int, ImportLine]] = []
    for index in within_cell(module, cell):
        only = only_import(module.body[index])
        if only is not None:
            found.append((index, only))
    return found


def within_cell(module: cst.Module, cell: str) -> Sequence[int]:
    """The indices of the statements of a cell, from the one that opens it; without one, of all."""
    if not cell:
        return range(len(module.body))
    body = module.body
    opened = [index for index, one in enumerate(body) if is_opening(module, one)]

    def opening(index: int) -> str:
        # __cell__ = 3
        return module.code_for_node(body[index]).strip()

    start = next(index for index in opened if opening(index) == cell)
    end = next((index for index in opened if index > start), len(body))
    return range(start, end)


def is_opening(module: cst.Module, statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    line = module.code_for_node(statement).lstrip()
    return CELL.match(line) is not None
