"""Sources in, migrated sources and an account of every site out. Reads no disk, runs none of the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import named_classes
from codemods.analysis.origins import Origins
from codemods.analysis.removed_names import MODERNIZED, names_removed, says_package, uses_removed
from codemods.analysis.slicing import Slice
from codemods.flow.solver import EntangledError
from codemods.model import FileResult, Need, Options, Progress, Share, Site, Source, Stage, in_turn
from codemods.planning.attempts import Attempts
from codemods.planning.emitted import Emitter
from codemods.planning.importing import ImportPlan, plan_imports
from codemods.planning.plan import Decision, Plan, make_plan
from codemods.removed import row_of
from codemods.renaming import plan_renames
from codemods.renaming.writing import renamed
from codemods.rewriting.apply import Applied
from codemods.rewriting.editing import TOO_DEEP, TRAIN_STATE, Outcome, Work, edit_file
from codemods.rewriting.edits import Edit, MoveImport
from codemods.rewriting.legacy_shapes import shapes_in
from codemods.sources.modules import Unit
from codemods.sources.notebook import SUFFIX, Notebook, only_code, opening, read_notebook
from codemods.sources.parsing import parse, uncollected
from codemods.sources.prefilter import may_carry, mentions_legacy
from codemods.sources.relevance import Relevance
from codemods.sources.suppression import MARKER
from codemods.sources.text import Codes, Text, UndecodableError, decode
from codemods.sources.unread import ENTANGLED, with_sites

SMALLEST_PARALLEL = 16
"""With fewer files to edit, starting processes costs more than it saves."""


@uncollected()
def migrate(
    sources: Sequence[Source],
    options: Options | None = None,
    progress: Progress | None = None,
    share: Share = in_turn,
) -> list[FileResult]:
    """Migrate a project.

    Args:
      sources: all its files; facts flow between them, so that whether one can change depends on the others.
      options: what the user asked for.
      progress: is told of each file that is taken in, and of each that has been edited.
      share: does the work on many files, by several processes perhaps.

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
            return Unit(
                path, text.code, parse(text.code), text.places if isinstance(text, Notebook) else ()
            )
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
        errors |= {
            path: with_sites(ENTANGLED, codes[path]) for path in found.left_out - errors.keys()
        }
    except EntangledError:
        errors |= dict.fromkeys(relevance.speaking, ENTANGLED)
        facts = Facts(())
    files = {
        source.path: (source.content, texts[source.path])
        for source in sources
        if source.path in texts
    }
    results = _results(facts, files, options, share, tell)
    if options.modernize:
        others = (
            path for path, code in codes.items() if path not in results and uses_removed(code)
        )
        for unit in (
            unit for path in others if path not in errors and (unit := read(path)) is not None
        ):
            if names_removed(unit):
                results |= _results(Facts([unit]), files, options, in_turn, _say_nothing)
    unchanged = (
        FileResult(one.path, one.content, one.content, error=errors.get(one.path))
        for one in sources
    )
    return [one if one.path in errors else results.get(one.path, one) for one in unchanged]


def _results(
    facts: Facts,
    files: Mapping[str, tuple[bytes, Text | Notebook]],
    options: Options,
    share: Share,
    tell: Progress,
) -> dict[str, FileResult]:
    """What becomes of the files of a program, of which each is given as it is and as read."""
    plan, edited = _edit_all(facts, options, share, tell)
    emitter = Emitter(
        facts, plan.decisions, {unit: applied.after for unit, (_, _, applied) in edited.items()}
    )
    results = {}
    for unit, (code, sites, applied) in edited.items():
        supported = (
            support for support in applied.supports.values() if TRAIN_STATE not in support.source
        )
        supports = tuple("\n".join((*support.imports, support.source)) for support in supported)
        before, text = files[unit.path]
        after = before if code == unit.code else text.encode(code)
        optimizers = emitter.emitted(unit, supports)
        hints = tuple(
            _site(decision, ImportPlan(), applied)
            for decision in plan.hints
            if decision.use.unit is unit
        )
        unused = (
            comment.line
            for comment in plan.comments[unit]
            if (unit, comment) not in plan.used_comments
        )
        lines = tuple(map(unit.line, unused))
        needs = tuple(dict.fromkeys(_needs(plan.of(unit))))
        results[unit.path] = FileResult(
            unit.path, before, after, sites, None, lines, optimizers, hints, needs=needs
        )
    return results


def _needs(decisions: Iterable[Decision]) -> Iterator[Need]:
    """What is needed by what takes the place of removed names."""
    for use in (decision.use for decision in decisions if decision.applies):
        row = row_of(use.name) if use.kind in ("removed", "removed_import") else None
        if row is not None and row.since:
            yield Need(row.module.partition(".")[0], row.since, row.name)


def _decoded(
    sources: Iterable[Source], options: Options
) -> tuple[dict[str, Text | Notebook], dict[str, str]]:
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
                text = (
                    only_code(source.content) if is_notebook else source.content.decode("latin-1")
                )
                errors[source.path] = with_sites(str(error), text)
    return texts, errors


def _say_nothing(stage: Stage, done: int, of: int) -> None:
    del stage, done, of


def _edit_all(
    facts: Facts, options: Options, share: Share, tell: Progress
) -> tuple[Plan, dict[Unit, tuple[str, tuple[Site, ...], Applied]]]:
    """Edit every file; when one turns out invalid, once more with less that changes there, and at last without its optimizers."""
    attempts = Attempts()
    while True:
        plan = make_plan(facts, options, attempts)
        imports = plan_imports(plan)
        to_edit = (unit for unit in imports if unit not in attempts.failed)
        work = {
            unit: found
            for unit in to_edit
            if (found := _work(unit, plan, imports[unit])) is not None
        }
        outcomes: dict[Unit, Outcome] = {
            unit: (unit.code, Applied(), "") for unit in imports if unit not in work
        }
        tell("Rewriting", 0, len(work))
        for done, (unit, outcome) in enumerate(
            zip(work, _run(list(work.values()), share), strict=True), 1
        ):
            outcomes[unit] = outcome
            tell("Rewriting", done, len(work))
        invalid = {unit: problem for unit, (_, _, problem) in outcomes.items() if problem}
        if not invalid:
            codes = {unit: code for unit, (code, _, _) in outcomes.items()}
            if options.rename:
                codes |= _renamed(plan, codes)
            return plan, {
                unit: (
                    codes[unit],
                    tuple(_site(one, imports[unit], applied) for one in plan.of(unit)),
                    applied,
                )
                for unit, (_, applied, _) in outcomes.items()
            }
        modernized = {
            one.use.unit for one in plan.decisions if one.applies and one.use.kind in MODERNIZED
        }
        attempts.follow(invalid, modernized)


def _renamed(plan: Plan, codes: Mapping[Unit, str]) -> dict[Unit, str]:
    """The files in which variables that hold train states now are called so."""
    migrated = (
        thing for decision in plan.decisions if decision.applies for thing in decision.use.things
    )
    renames = plan_renames(plan.facts, Origins(plan.facts), migrated)
    new = {unit: renamed(unit.path, codes[unit], found) for unit, found in renames.items()}
    return (
        {unit: code for unit, code in new.items() if code is not None}
        if None not in new.values()
        else {}
    )


def _run(work: Sequence[Work], share: Share) -> Iterator[Outcome]:
    yield from (share if len(work) >= SMALLEST_PARALLEL else in_turn)(edit_file, work)


def _work(unit: Unit, plan: Plan, imports: ImportPlan) -> Work | None:
    """The work on a file; None if nothing changes in it."""
    decisions = plan.of(unit)
    markers = _markers(decisions, plan)
    applied = (decision.edit for decision in decisions if decision.applies)
    edits = tuple(
        edit for edit in applied if isinstance(edit, Edit) and not isinstance(edit, MoveImport)
    )
    given, imported = plan.shared.given.get(unit, {}), plan.shared.imported.get(unit, {})
    if not (edits or imports.drop or markers or given):
        return None
    names = {key: name.expression for key, name in plan.names[unit].items()}
    first = min((edit.span[0] for edit in edits), default=1)
    rewritten = {
        _use_of(decision)
        for decision in decisions
        if decision.applies and not _stays_in_shape(decision)
    }
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
    return (
        isinstance(use.node, ast.Attribute)
        and isinstance(edit, Edit)
        and edit.span == use.unit.span(use.owner)
    )


def _use_of(decision: Decision) -> ast.AST:
    """What a decision is about: of `replace`, the call."""
    use = decision.use
    return (
        use.parent
        if use.kind == "optimizer.replace" and isinstance(use.parent, ast.Call)
        else use.node
    )


def _markers(decisions: Sequence[Decision], plan: Plan) -> dict[int, list[str]]:
    """The comments that partial work leaves at unresolved sites, by line."""
    markers: dict[int, list[str]] = defaultdict(list)
    if plan.options.partial:
        for decision in decisions:
            if (
                decision.status == "unresolved"
                and decision.refusal is not None
                and decision.use.kind != "import"
            ):
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
        after = applied.after.get(
            decision.edit.span if isinstance(decision.edit, Edit) else span, ""
        )
    told = refusal if status in ("unresolved", "hint") else None
    cell, message = (
        use.unit.cell(span[0]),
        refusal.reason if refusal is not None else decision.rule.summary,
    )
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
