"""The planned edits of one file, carried out: its new code, or what is wrong with that."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import libcst as cst
from libcst.metadata import CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from codemods.cst.alignment import realigned
from codemods.dataflow.bindings import bound_anywhere
from codemods.model import Form
from codemods.optimizers.base import Support, called_otherwise, other_names
from codemods.rewriting.apply import Applied, Applier
from codemods.rewriting.checking import problem_of
from codemods.rewriting.edits import Edit
from codemods.rewriting.imports import Addition, ImportEditor, ImportedName
from codemods.rewriting.insertion import has_support, insert_support
from codemods.rewriting.legacy_shapes import shapes_in
from codemods.sources.modules import Unit
from codemods.sources.parsing import nests_deeply, parse, uncollected

TRAIN_STATE = "{TrainState}"
TOO_DEEP = "nested too deeply"

Outcome = tuple[str, Applied, str]
"""New code, what came of each edit, and what is wrong with it (empty if nothing is)."""


@dataclass(frozen=True)
class Work:
    """All that is needed to edit one file, in this process or another."""

    path: str
    code: str
    edits: tuple[Edit, ...]
    names: dict[str, str]
    form: Form
    drop: tuple[ImportedName, ...]
    add: tuple[Addition, ...]
    origins: tuple[tuple[int, int], ...]
    cell: str
    markers: dict[int, list[str]]
    stays: Counter[str]
    """How often what looks like a legacy use may stand in the result: what is not rewritten is known to be something else, or
    left with its whole group."""

    given: tuple[Support, ...] = ()
    """The helpers that other files import from here."""

    imported: Mapping[str, str] = field(default_factory=dict)
    """The names of helpers that other files have, with the modules."""

    called: Mapping[str, str] = field(default_factory=dict)
    """Other names for helpers whose own mean something else."""


@uncollected()
def edit_file(work: Work) -> Outcome:
    """Carry out the edits of one file: its new code, what came of each edit, and what is wrong with the result, if anything."""
    try:
        return _edit_file(work)
    except RecursionError:
        return work.code, Applied(), TOO_DEEP
    except Exception as error:  # noqa: BLE001 - one file that this tool fails on must not keep the others from their migration
        return work.code, Applied(), f"{type(error).__name__} within this tool: {error}"


class Positions(PositionProvider):
    """Where each node is, without the second visit of the module that a MetadataWrapper makes for providers of other kinds."""

    def of(self, module: cst.Module) -> tuple[str, Mapping[cst.CSTNode, CodeRange]]:
        """The text of a module, and the positions of its nodes in it."""
        state = PositionProvidingCodegenState(
            module.default_indent, module.default_newline, provider=self
        )
        module._codegen(state)
        return "".join(state.tokens), cast("Mapping[cst.CSTNode, CodeRange]", self._computed)


def _edit_file(work: Work) -> Outcome:
    if nests_deeply(parse(work.code)):
        raise RecursionError
    module = cst.parse_module(work.code)
    code, positions = Positions().of(module)
    if code != work.code:
        return work.code, Applied(), "LibCST does not reproduce this file to the letter"
    editor = ImportEditor(positions, work.drop, work.add, work.origins, work.cell)
    applier = Applier(
        module,
        work.code,
        positions,
        work.edits,
        work.names,
        work.form,
        editor,
        work.markers,
        work.called,
    )
    updated = module.visit(applier)
    needed = (*applier.applied.supports.values(), *work.given)
    supports = {
        support.name: support
        for support in (called_otherwise(support, work.called) for support in needed)
    }
    applier.applied.supports = supports
    if work.imported:
        supports = {name: support for name, support in supports.items() if not support.is_shared}
    sources = {name: _named(support.source, work.names) for name, support in supports.items()}
    taken = _bound_still(work) if sources else set()
    clash = [
        name
        for name, source in sources.items()
        if name in taken and not has_support(module, source)
    ]
    clash += [
        name for name in (work.called.get(name, name) for name in work.imported) if name in taken
    ]
    if fixed := sorted(applier.applied.fixed & work.called.keys()):
        return work.code, applier.applied, f"the name `{fixed[0]}` is taken"
    shared = {name for name, support in supports.items() if support.is_shared}
    if clash and (applier.applied.fixed | work.imported.keys() | shared).isdisjoint(clash):
        free = {
            name: [other for other in other_names(name) if other not in taken] for name in clash
        }
        if all(free.values()):
            return _edit_file(
                replace(
                    work,
                    called={**work.called, **{name: other for name, (other, *_) in free.items()}},
                )
            )
    if clash:
        return work.code, applier.applied, f"the name `{clash[0]}` is taken"
    for support in supports.values():
        editor.require(support.imports)
    names = {work.called.get(name, name): source for name, source in work.imported.items()}
    editor.require(f"from {source} import {name}" for name, source in sorted(names.items()))
    supported = insert_support(editor.finish(updated), list(sources.values()))
    if supported is None:
        return (
            work.code,
            applier.applied,
            "a helper would have to stand ahead of the imports that it needs",
        )
    after = supported.code
    missed = [edit for edit in work.edits if edit.span not in applier.applied.after]
    helpers = [node for source in sources.values() for node in ast.walk(parse(source))]
    problem = (
        f"not found: {missed[0]}"
        if missed
        else problem_of(work.code, after, work.stays + shapes_in(helpers), work.drop)
    )
    return after if problem else realigned(work.code, after), applier.applied, problem


def _bound_still(work: Work) -> set[str]:
    """The names that any scope of a file binds, other than by imports that go."""
    bound = Counter(bound_anywhere(Unit(work.path, work.code, parse(work.code))))
    bound.subtract(name.name for name in work.drop)
    return {name for name, count in bound.items() if count > 0}


def _named(source: str, names: dict[str, str]) -> str:
    return source.replace(TRAIN_STATE, names.get("TrainState", ""))
