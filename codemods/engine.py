"""Sources in, migrated sources and an account of every site out. Reads no disk, runs none of the code."""

from __future__ import annotations

import ast
import builtins
import gc
import io
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import libcst as cst
from libcst.metadata import CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from codemods.alignment import realigned
from codemods.apply import Applied, Applier
from codemods.attempts import Attempts
from codemods.edits import Edit, MoveImport
from codemods.emitted import Emitter
from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.solver import EntangledError
from codemods.importing import ImportPlan, plan_imports
from codemods.imports import Addition, ImportEditor, ImportedName
from codemods.insertion import has_support, insert_support
from codemods.legacy import named_classes
from codemods.legacy_shapes import shapes_in, too_many
from codemods.model import FileResult, Form, Need, Options, Progress, Site, Source, Stage
from codemods.names import Scopes, bound_anywhere
from codemods.notebook import SUFFIX, Notebook, only_code, opening, read_notebook
from codemods.optimizers.base import Support, called_otherwise, other_names
from codemods.origins import Origins
from codemods.plan import Decision, Plan, make_plan
from codemods.prefilter import may_carry, mentions_legacy
from codemods.processes import share
from codemods.relevance import Relevance
from codemods.removed import MODERNIZED, names_removed, row_of, says_package, uses_removed
from codemods.renaming import plan_renames
from codemods.renaming.writing import renamed
from codemods.slicing import Slice
from codemods.suppression import MARKER
from codemods.text import Codes, Text, UndecodableError, decode
from codemods.unread import ENTANGLED, with_sites

TRAIN_STATE = "{TrainState}"
TOO_DEEP = "nested too deeply"
DEEPEST = 1_000
OF_MODULES = ("__file__", "__name__", "__doc__")
SMALLEST_PARALLEL = 16
"""With fewer files to edit, starting processes costs more than it saves."""

Outcome = tuple[str, Applied, str]
"""New code, what came of each edit, and what is wrong with it (empty if nothing is)."""


@contextmanager
def _uncollected() -> Iterator[None]:
    """Do without the search for cycles of garbage, which takes a third of a run and finds next to none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_uncollected()
def migrate(
    sources: Sequence[Source],
    options: Options | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
) -> list[FileResult]:
    """Migrate a project.

    Args:
      sources: all its files; facts flow between them, so that whether one can change depends on the others.
      options: what the user asked for.
      progress: is told of each file that is taken in, and of each that has been edited.
      jobs: the number of processes that edit files.

    Returns:
      A result for each source, in the same order. A file that cannot be read as Python has its `error` set.
    """
    options = options or Options()
    tell = progress or _say_nothing
    tell("Analysing", 0, 0)
    texts, errors = _decoded(sources, options)
    codes = Codes(texts)
    relevance = Relevance(codes)
    begun: set[str] = set()
    program = Codes(texts, relevance.paths)

    def read(path: str) -> Unit | None:
        text = texts[path]
        begun.add(path)
        tell("Analysing", len(begun), 0)
        try:
            return Unit(path, text.code, parse(text.code), text.places if isinstance(text, Notebook) else ())
        except SyntaxError as error:
            problem = f"line {error.lineno}: cannot be parsed as Python 3: {error.msg}"
            errors[path] = with_sites(problem, text.code)
        except (RecursionError, MemoryError):
            errors[path] = with_sites(TOO_DEEP, text.code)
        return None

    named = {name for code in codes.values() for name in named_classes(code)}
    try:
        found = Slice(program, read, relevance, named, options.budget)
        facts = found.facts
        errors |= {path: with_sites(TOO_DEEP, codes[path]) for path in found.too_deep}
        errors |= {path: with_sites(ENTANGLED, codes[path]) for path in found.left_out - errors.keys()}
    except EntangledError:
        errors |= dict.fromkeys(relevance.speaking, ENTANGLED)
        facts = Facts(())
    files = {source.path: (source.content, texts[source.path]) for source in sources if source.path in texts}
    results = _results(facts, files, options, jobs, tell)
    if options.modernize:
        others = (path for path, code in codes.items() if path not in results and uses_removed(code))
        for unit in (unit for path in others if path not in errors and (unit := read(path)) is not None):
            if names_removed(unit):
                results |= _results(Facts([unit]), files, options, 1, _say_nothing)
    unchanged = (FileResult(one.path, one.content, one.content, error=errors.get(one.path)) for one in sources)
    return [one if one.path in errors else results.get(one.path, one) for one in unchanged]


def _results(
    facts: Facts, files: Mapping[str, tuple[bytes, Text | Notebook]], options: Options, jobs: int, tell: Progress
) -> dict[str, FileResult]:
    """What becomes of the files of a program, of which each is given as it is and as read."""
    plan, edited = _edit_all(facts, options, jobs, tell)
    emitter = Emitter(facts, plan.decisions, {unit: applied.after for unit, (_, _, applied) in edited.items()})
    results = {}
    for unit, (code, sites, applied) in edited.items():
        supported = (support for support in applied.supports.values() if TRAIN_STATE not in support.source)
        supports = tuple("\n".join((*support.imports, support.source)) for support in supported)
        before, text = files[unit.path]
        after = before if code == unit.code else text.encode(code)
        optimizers = emitter.emitted(unit, supports)
        hints = tuple(_site(decision, ImportPlan(), applied) for decision in plan.hints if decision.use.unit is unit)
        unused = (comment.line for comment in plan.comments[unit] if (unit, comment) not in plan.used_comments)
        lines = tuple(map(unit.line, unused))
        needs = tuple(dict.fromkeys(_needs(plan.of(unit))))
        results[unit.path] = FileResult(unit.path, before, after, sites, None, lines, optimizers, hints, needs=needs)
    return results


def _needs(decisions: Iterable[Decision]) -> Iterator[Need]:
    """What is needed by what takes the place of removed names."""
    for use in (decision.use for decision in decisions if decision.applies):
        row = row_of(use.name) if use.kind in ("removed", "removed_import") else None
        if row is not None and row.since:
            yield Need(row.module.partition(".")[0], row.since, row.name)


def _decoded(sources: Iterable[Source], options: Options) -> tuple[dict[str, Text | Notebook], dict[str, str]]:
    """The texts of all files, and what is wrong with those that are none and yet speak of optimizers."""
    texts: dict[str, Text | Notebook] = {}
    errors: dict[str, str] = {}
    for source in sources:
        try:
            if not source.path.endswith(SUFFIX):
                texts[source.path] = decode(source.content)
            elif may_carry(source.content) or (options.modernize and says_package(source.content)):
                texts[source.path] = read_notebook(source.content)
        except UndecodableError as error:
            if mentions_legacy(source.content):
                is_notebook = source.path.endswith(SUFFIX)
                text = only_code(source.content) if is_notebook else source.content.decode("latin-1")
                errors[source.path] = with_sites(str(error), text)
    return texts, errors


def _say_nothing(stage: Stage, done: int, of: int) -> None:
    del stage, done, of


def parse(code: str) -> ast.Module:
    """The syntax tree, without the warnings that the compiler has about somebody's strings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


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


def _edit_all(
    facts: Facts, options: Options, jobs: int, tell: Progress
) -> tuple[Plan, dict[Unit, tuple[str, tuple[Site, ...], Applied]]]:
    """Edit every file; when one turns out invalid, once more with less that changes there, and at last without its optimizers."""
    attempts = Attempts()
    while True:
        plan = make_plan(facts, options, attempts)
        imports = plan_imports(plan)
        to_edit = (unit for unit in imports if unit not in attempts.failed)
        work = {unit: found for unit in to_edit if (found := _work(unit, plan, imports[unit])) is not None}
        outcomes: dict[Unit, Outcome] = {unit: (unit.code, Applied(), "") for unit in imports if unit not in work}
        tell("Rewriting", 0, len(work))
        for done, (unit, outcome) in enumerate(zip(work, _run(list(work.values()), jobs), strict=True), 1):
            outcomes[unit] = outcome
            tell("Rewriting", done, len(work))
        invalid = {unit: problem for unit, (_, _, problem) in outcomes.items() if problem}
        if not invalid:
            codes = {unit: code for unit, (code, _, _) in outcomes.items()}
            if options.rename:
                codes |= _renamed(plan, codes)
            return plan, {
                unit: (codes[unit], tuple(_site(one, imports[unit], applied) for one in plan.of(unit)), applied)
                for unit, (_, applied, _) in outcomes.items()
            }
        modernized = {one.use.unit for one in plan.decisions if one.applies and one.use.kind in MODERNIZED}
        attempts.follow(invalid, modernized)


def _renamed(plan: Plan, codes: Mapping[Unit, str]) -> dict[Unit, str]:
    """The files in which variables that hold train states now are called so."""
    migrated = (thing for decision in plan.decisions if decision.applies for thing in decision.use.things)
    renames = plan_renames(plan.facts, Origins(plan.facts), migrated)
    new = {unit: renamed(unit.path, codes[unit], found) for unit, found in renames.items()}
    return {unit: code for unit, code in new.items() if code is not None} if None not in new.values() else {}


def _run(work: Sequence[Work], jobs: int) -> Iterator[Outcome]:
    yield from share(edit_file, work, jobs if len(work) >= SMALLEST_PARALLEL else 1, chunksize=4)


def _work(unit: Unit, plan: Plan, imports: ImportPlan) -> Work | None:
    """The work on a file; None if nothing changes in it."""
    decisions = plan.of(unit)
    markers = _markers(decisions, plan)
    applied = (decision.edit for decision in decisions if decision.applies)
    edits = tuple(edit for edit in applied if isinstance(edit, Edit) and not isinstance(edit, MoveImport))
    given, imported = plan.shared.given.get(unit, {}), plan.shared.imported.get(unit, {})
    if not (edits or imports.drop or markers or given):
        return None
    names = {key: name.expression for key, name in plan.names[unit].items()}
    first = min((edit.span[0] for edit in edits), default=1)
    rewritten = {_use_of(decision) for decision in decisions if decision.applies and not _stays_in_shape(decision)}
    return Work(
        unit.path,
        unit.code,
        edits,
        names,
        plan.options.form,
        tuple(imports.drop),
        tuple(imports.add),
        tuple(imports.origins),
        opening(unit.places[first - 1][0]) if unit.places else "",
        markers,
        shapes_in(node for node in unit.nodes if node not in rewritten),
        tuple(given.values()),
        imported,
        plan.shared.called.get(unit, {}),
    )


def _stays_in_shape(decision: Decision) -> bool:
    """Whether nothing changes of an attribute but what it is read from: a legacy state that is made for it."""
    use, edit = decision.use, decision.edit
    return isinstance(use.node, ast.Attribute) and isinstance(edit, Edit) and edit.span == use.unit.span(use.owner)


def _use_of(decision: Decision) -> ast.AST:
    """What a decision is about: of `replace`, the call."""
    use = decision.use
    return use.parent if use.kind == "optimizer.replace" and isinstance(use.parent, ast.Call) else use.node


@_uncollected()
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
        state = PositionProvidingCodegenState(module.default_indent, module.default_newline, provider=self)
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
        module, work.code, positions, work.edits, work.names, work.form, editor, work.markers, work.called
    )
    updated = module.visit(applier)
    needed = (*applier.applied.supports.values(), *work.given)
    supports = {support.name: support for support in (called_otherwise(support, work.called) for support in needed)}
    applier.applied.supports = supports
    if work.imported:
        supports = {name: support for name, support in supports.items() if not support.is_shared}
    sources = {name: _named(support.source, work.names) for name, support in supports.items()}
    taken = _bound_still(work) if sources else set()
    clash = [name for name, source in sources.items() if name in taken and not has_support(module, source)]
    clash += [name for name in (work.called.get(name, name) for name in work.imported) if name in taken]
    if fixed := sorted(applier.applied.fixed & work.called.keys()):
        return work.code, applier.applied, f"the name `{fixed[0]}` is taken"
    shared = {name for name, support in supports.items() if support.is_shared}
    if clash and (applier.applied.fixed | work.imported.keys() | shared).isdisjoint(clash):
        free = {name: [other for other in other_names(name) if other not in taken] for name in clash}
        if all(free.values()):
            return _edit_file(
                replace(work, called={**work.called, **{name: other for name, (other, *_) in free.items()}})
            )
    if clash:
        return work.code, applier.applied, f"the name `{clash[0]}` is taken"
    for support in supports.values():
        editor.require(support.imports)
    names = {work.called.get(name, name): source for name, source in work.imported.items()}
    editor.require(f"from {source} import {name}" for name, source in sorted(names.items()))
    supported = insert_support(editor.finish(updated), list(sources.values()))
    if supported is None:
        return work.code, applier.applied, "a helper would have to stand ahead of the imports that it needs"
    after = supported.code
    missed = [edit for edit in work.edits if edit.span not in applier.applied.after]
    helpers = [node for source in sources.values() for node in ast.walk(parse(source))]
    problem = f"not found: {missed[0]}" if missed else _problem(work, after, shapes_in(helpers))
    return after if problem else realigned(work.code, after), applier.applied, problem


def _bound_still(work: Work) -> set[str]:
    """The names that any scope of a file binds, other than by imports that go."""
    bound = Counter(bound_anywhere(Unit(work.path, work.code, parse(work.code))))
    bound.subtract(name.name for name in work.drop)
    return {name for name, count in bound.items() if count > 0}


def nests_deeply(tree: ast.Module) -> bool:
    """Whether the parser of LibCST, which is native and recursive, might overflow the stack: some is flat for `ast` alone."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if any(map(_is_long, level)):
            return True
    return depth > DEEPEST


def _is_long(node: ast.AST) -> bool:
    match node:
        case ast.BoolOp(values=values):
            return len(values) > DEEPEST
        case ast.alias(name=str(name)) | ast.ImportFrom(module=str(name)):
            return name.count(".") > DEEPEST
    return False


def _named(source: str, names: dict[str, str]) -> str:
    return source.replace(TRAIN_STATE, names.get("TrainState", ""))


def _markers(decisions: Sequence[Decision], plan: Plan) -> dict[int, list[str]]:
    """The comments that partial work leaves at unresolved sites, by line."""
    markers: dict[int, list[str]] = defaultdict(list)
    if plan.options.partial:
        for decision in decisions:
            if decision.status == "unresolved" and decision.refusal is not None and decision.use.kind != "import":
                line = decision.use.node.lineno
                markers[line].append(f"{MARKER}{decision.refusal.code} {decision.refusal.reason}")
    return markers


def _site(decision: Decision, imports: ImportPlan, applied: Applied) -> Site:
    use = decision.use
    span = use.span
    status, refusal, after = decision.status, decision.refusal, None
    if use.kind == "import" and decision.applies and use.node in imports.kept:
        status, refusal = imports.kept[use.node]
    elif isinstance(decision.edit, MoveImport) and decision.applies:
        after = decision.edit.statement
    elif use.kind == "import" and decision.applies:
        after = "\n".join(imports.statements)
    elif decision.applies:
        after = applied.after.get(decision.edit.span if isinstance(decision.edit, Edit) else span, "")
    told = refusal if status in ("unresolved", "hint") else None
    cell, message = use.unit.cell(span[0]), refusal.reason if refusal is not None else decision.rule.summary
    return Site(
        code=told.code if told is not None else decision.rule.code,
        line=use.unit.line(span[0]),
        column=span[1] + 1,
        end_line=use.unit.line(span[2]),
        end_column=span[3] + 1,
        status=status,
        evidence=use.evidence,
        message=f"{cell}: {message}" if cell else message,
        before=use.unit.source(use.node),
        after=after,
        remedy=told.remedy if told is not None else None,
        note=decision.note if status == "rewritten" else "",
    )


def _comments(code: str, without: set[int]) -> Counter[str]:
    """The comments of a file, apart from those of some statements, by their first lines."""
    if "#" not in code:
        return Counter()
    last = {line: node.end_lineno or line for node in parse(code).body for line in [node.lineno] if line in without}
    skipped = {line for start, end in last.items() for line in range(start, end + 1)} | without
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT and token.start[0] not in skipped)


def _problem(work: Work, after: str, helped: Counter[str]) -> str:
    """What breaks a promise of the result: empty if it holds all.

    It parses, no name is undefined that was not before, no comment is lost, and nothing is used as only a legacy object can be
    but what was left for a reason, and what helpers do, as `helped` counts it.
    """
    try:
        tree = parse(after)
    except SyntaxError as error:
        return f"does not parse: {error}"
    undefined = undefined_names(Unit(work.path, after, tree))
    if undefined and (new := undefined - undefined_names(Unit(work.path, work.code, parse(work.code)))):
        return f"undefined: {', '.join(sorted(new))}"
    if shape := too_many(work.stays + helped, shapes_in(ast.walk(tree))):
        return f"something is still used as a legacy object is: `{shape}`"
    lost = _comments(work.code, {name.line for name in work.drop}) - _comments(after, set())
    return f"the comment `{min(lost)}` would be lost" if lost else ""


def undefined_names(unit: Unit) -> set[str]:
    """The names that a module reads and neither binds nor finds among the builtins; none if it has a star import."""
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in unit.nodes):
        return set()
    scopes = Scopes(unit)
    known = {*dir(builtins), *OF_MODULES, *scopes.outermost.names}
    loads = (node for node in unit.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {node.id for node in loads if node.id not in known and scopes.around(node).binding(node.id) is None}
