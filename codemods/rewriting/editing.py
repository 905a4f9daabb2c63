"""The planned edits of one file, carried out: its new code, or what is wrong with that."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count

import libcst as cst

from codemods.containment import Failure
from codemods.cst.alignment import realigned
from codemods.cst.breaking import limit_of_rewritten
from codemods.model import Form
from codemods.optimizers.base import (
    TRAIN_STATE,
    Support,
    called_otherwise,
    other_names,
)
from codemods.rewriting.apply import Applier
from codemods.rewriting.checking import problem_of
from codemods.rewriting.edited_file import WORD, Applied, EditedFile
from codemods.rewriting.edits import Edit
from codemods.rewriting.imports import ImportChanges, ImportEditor
from codemods.rewriting.insertion import has_support, insert_support
from codemods.rewriting.original import IrreproducibleError, Original, Positions
from codemods.rewriting.planned import Planned
from codemods.sources.modules import Unit
from codemods.sources.parsing import nests_deeply, parse, uncollected

ALIKE = ("collections.abc", "typing_extensions")
"""Modules from which names for annotations may come that helpers take from `typing`."""

TOO_DEEP = "nested too deeply"


@dataclass(frozen=True)
class Problem:
    """What is wrong with new code, what its author may do, and the exception behind it, if any."""

    text: str
    remedy: str = "Please report this file."
    failure: Failure | None = None


Outcome = tuple[str, Applied, Problem | None]
"""New code, what came of each edit, and what is wrong with it."""


@dataclass(frozen=True)
class Work:
    """All that is needed to edit one file."""

    unit: Unit
    edits: tuple[Edit, ...]
    names: dict[str, str]
    form: Form
    imports: ImportChanges
    cell: str
    markers: dict[int, list[str]]
    given: tuple[Support, ...] = ()
    """The helpers that other files import from here."""

    imported: Mapping[str, str] = field(default_factory=dict)
    """The names of helpers that new modules have, with the names of these."""

    called: Mapping[str, str] = field(default_factory=dict)
    """Other names for helpers whose own mean something else."""


@uncollected()
def edit_file(work: Work) -> Outcome:
    """Carry out the edits of one file. A file on which this tool fails does not stop the others."""
    try:
        return _edit_file(work)
    except RecursionError:
        remedy = "Divide its longest expression, and give the parts names."
        return work.unit.code, Applied(), Problem(TOO_DEEP, remedy)
    except Exception as error:  # noqa: BLE001 - an error must not keep other files from migration
        failure = Failure.of(error)
        return work.unit.code, Applied(), Problem(failure.summary, failure=failure)


def _edit_file(work: Work) -> Outcome:
    if nests_deeply(work.unit.tree):
        raise RecursionError
    original = Original(work.unit)
    try:
        _ = original.module
    except cst.ParserSyntaxError as error:
        text = f"LibCST cannot parse the code near line {error.raw_line}"
        return work.unit.code, Applied(), Problem(text, "Write it otherwise.")
    try:
        return _edited(work, original)
    except IrreproducibleError:
        text = "LibCST does not reproduce this file to the letter"
        remedy = "Let a formatter write the file anew first."
        return work.unit.code, Applied(), Problem(text, remedy)


def _edited(work: Work, original: Original) -> Outcome:
    planned = Planned(work.edits, (*work.imports.lines, *work.markers))
    positions = Positions(original, planned.touches)
    editor = ImportEditor(positions.known, work.imports, work.cell)
    code = work.unit.code
    file = EditedFile(original.module, code, work.names, work.form, work.called)
    applier = Applier(file, positions, planned, editor, work.markers)
    updated = original.module.visit(applier)
    after, applied, problem = _finished(work, original, updated, editor, file.applied)
    return positions.with_blanks(after), applied, problem


def _finished(
    work: Work,
    original: Original,
    updated: cst.Module,
    editor: ImportEditor,
    applied: Applied,
) -> Outcome:
    """The outcome once the edits are made: helpers and imports are added, and promises checked."""
    needed = (*applied.supports.values(), *work.given)
    called = {one.name: called_otherwise(one, work.called) for one in needed}
    bound = _bound_still(work)
    for name, support in called.items():
        called[name] = _with_other_imports(support, work.unit, bound)
    applied.supports = {support.name: support for support in called.values()}
    own = [one for name, one in called.items() if name not in work.imported]
    supports = {support.name: support for support in own}
    sources = {
        name: support.source.replace(TRAIN_STATE, work.names.get("TrainState", ""))
        for name, support in supports.items()
    }
    code = original.code_of(updated) if work.imported else ""
    imported = _imported(work, code, sources)
    taken = bound if sources or imported else set()
    clash = _clashes(original.module, sources, imported, taken)
    # a template names the helper itself, which cannot be called otherwise
    if fixed := sorted(applied.fixed & work.called.keys()):
        return work.unit.code, applied, _taken(fixed[0])
    if clash:
        # other files import these by their names
        given = {support.name for support in work.given}
        # what it is where legacy had the name first, and the file another later, is not clear
        dropped = {*chain.from_iterable(work.imports.drop.values())}
        fixed_names = applied.fixed | given | dropped
        renamed = _with_other_names(work, clash, taken)
        # once more, with other names for the helpers
        if renamed is not None and fixed_names.isdisjoint(clash):
            return _edited(renamed, original)
        return work.unit.code, applied, _taken(clash[0])
    other = _meant_otherwise(work.unit, supports)
    if other is not None:
        text = f"a helper needs the name `{other}`, which is something else"
        return work.unit.code, applied, Problem(text, _renaming(other))
    for support in supports.values():
        editor.require(support.imports)
    limit = limit_of_rewritten(work.unit.code, original.module.default_indent)
    editor.require(_statements(work, imported, limit))
    finished = editor.finish(updated)
    supported = insert_support(finished, list(sources.values()), original)
    if supported is None:
        text = "a helper would have to stand ahead of the imports that it needs"
        remedy = "Move the imports of the file to its top."
        return work.unit.code, applied, Problem(text, remedy)
    after = original.code_of(supported)
    return _checked(work, applied, after)


def _taken(name: str) -> Problem:
    return Problem(f"the name `{name}` is taken", _renaming(name))


def _renaming(name: str) -> str:
    return f"Give what is called `{name}` there another name."


def _meant_otherwise(unit: Unit, supports: Mapping[str, Support]) -> str | None:
    """A name that an import binds for new code, and the module to something else."""
    meanings = _meanings(unit)
    for statement in chain.from_iterable(one.imports for one in supports.values()):
        for name, full_name in _imported_by(ast.parse(statement).body[0]).items():
            if not meanings[name] <= {full_name}:
                return name
    return None


def _with_other_imports(support: Support, unit: Unit, taken: set[str]) -> Support:
    """A helper that imports under another name what the module calls something else.

    ```
    import struct
    from flax import struct as flax_struct
    ```
    """
    # new code outside of helpers calls what it needs by the name that it is given
    if not support.source:
        return support
    meanings = _meanings(unit)
    imports: list[str] = []
    names: dict[str, str] = {}
    for statement in support.imports:
        [(name, full_name)] = _imported_by(ast.parse(statement).body[0]).items()
        if meanings[name] <= {full_name}:
            imports.append(statement)
        else:
            found = [one for one in meanings if meanings[one] == {full_name}]
            word = full_name.replace(".", "_")
            numbered = (f"{word}_{number}" for number in count(2))
            free = (one for one in chain((word,), numbered) if one not in taken)
            names[name] = found[0] if found else next(free)
            package, _, last = full_name.rpartition(".")
            start = f"from {package} import" if package else "import"
            imports.append(f"{start} {last} as {names[name]}")
    return replace(called_otherwise(support, names), imports=tuple(imports))


def _meanings(unit: Unit) -> defaultdict[str, set[str]]:
    """What a module binds each name to: the full names of imports, and "" for all else."""
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    # a variable of a function hides nothing from a helper
    for name, declared, node in unit.bindings.get(unit.tree, ()):
        if not declared:
            is_import = isinstance(node, ast.alias)
            found = _imported_by(unit.parents[node]) if is_import else {}
            meanings[name].add(found.get(name, ""))
    return meanings


def _imported_by(statement: ast.AST) -> dict[str, str]:
    """The full name of what each name stands for that an import binds."""
    match statement:
        case ast.Import(names=aliases):
            found: dict[str, str] = {}
            for one in aliases:
                # import jax.numpy binds `jax`
                root = one.name.partition(".")[0]
                full_name = one.name if one.asname else root
                found[one.asname or root] = full_name
            return found
        case ast.ImportFrom(module=module, names=aliases):
            package = "typing" if module in ALIKE else module
            return {one.asname or one.name: f"{package}.{one.name}" for one in aliases}
    return {}


def _imported(work: Work, code: str, sources: Mapping[str, str]) -> dict[str, str]:
    """The modules of the helpers that new code imports, by what they are called in this file."""
    words = {*WORD.findall(code)}
    for source in sources.values():
        words.update(WORD.findall(source))
    modules: dict[str, str] = {}
    for name, module in work.imported.items():
        called = work.called.get(name, name)
        if called in words:
            modules[called] = module
    return modules


def _statements(work: Work, imported: Mapping[str, str], limit: int) -> Iterator[str]:
    """The imports of helpers from other modules: one for each module."""
    own_names = {called: name for name, called in work.called.items()}
    for module in sorted(set(imported.values())):
        names: list[str] = []
        for called in sorted(imported):
            name = own_names.get(called, called)
            if imported[called] == module:
                names.append(name if name == called else f"{name} as {called}")
        line = f"from {module} import {', '.join(names)}"
        if len(line) > limit and len(names) > 1:
            lines = "".join(f"    {name},\n" for name in names)
            line = f"from {module} import (\n{lines})"
        yield line


def _clashes(
    module: cst.Module,
    sources: Mapping[str, str],
    imported: Collection[str],
    taken: set[str],
) -> list[str]:
    """The names of helpers that mean something else in the file."""
    clashing: list[str] = []
    for name, source in sources.items():
        # an earlier run may have put the helper here
        if name in taken and not has_support(module, source):
            clashing.append(name)
    return [*clashing, *(name for name in imported if name in taken)]


def _with_other_names(work: Work, clash: list[str], taken: set[str]) -> Work | None:
    """The same work with other names for some helpers; None if there is none for one of them."""
    called = dict(work.called)
    for name in clash:
        free = [other for other in other_names(name) if other not in taken]
        if not free:
            return None
        called[name] = free[0]
    return replace(work, called=called)


def _checked(work: Work, applied: Applied, after: str) -> Outcome:
    """The outcome of new code: with a problem, if it breaks a promise or an edit was not made."""
    missed = [edit for edit in work.edits if edit.span not in applied.after]
    if missed:
        return after, applied, Problem(f"not found: {missed[0]}")
    try:
        tree = parse(after)
    except SyntaxError as error:
        return after, applied, Problem(f"does not parse: {error}")
    new = Unit(work.unit.path, after, tree)
    problem = problem_of(work.unit, new, {line for line, _ in work.imports.drop})
    if problem:
        return after, applied, Problem(problem)
    return realigned(work.unit, new), applied, None


def _bound_still(work: Work) -> set[str]:
    """The names that any scope of a file binds, other than by imports that are dropped."""
    bound = Counter(work.unit.names_bound)
    bound.subtract(chain.from_iterable(work.imports.drop.values()))
    return {name for name, count in bound.items() if count > 0}
