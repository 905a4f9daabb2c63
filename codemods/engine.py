"""Sources in, migrated sources and an account of every site out.

Reads no disk, and runs none of the code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from codemods.analysis.changed import KIND as CHANGED
from codemods.analysis.facts import Facts
from codemods.analysis.legacy import named_classes
from codemods.analysis.origins import Origins
from codemods.analysis.removed_names import (
    MODERNIZED,
    names_removed,
    says_package,
    uses_removed,
)
from codemods.containment import Failure, contained
from codemods.inference.objects import LegacyObject
from codemods.messages import text_of
from codemods.model import (
    FileResult,
    Need,
    Options,
    Progress,
    Source,
    Stage,
)
from codemods.optimizers.base import TRAIN_STATE
from codemods.planning.accounting import Accounting
from codemods.planning.decisions import Attempts, Decision, Plan
from codemods.planning.emitted import Emitter
from codemods.planning.escaping import escaping
from codemods.planning.importing import ImportPlan, plan_imports
from codemods.planning.plan import make_plan
from codemods.removed import row_of
from codemods.removed.table import changed
from codemods.renaming import plan_renames
from codemods.renaming.applying import renamed
from codemods.rewriting.edited_file import Applied
from codemods.rewriting.editing import TOO_DEEP, Outcome, Work, edit_file
from codemods.rewriting.edits import MoveImport
from codemods.rewriting.insertion import INDENT, module_of
from codemods.sources.modules import Unit
from codemods.sources.notebook import (
    SUFFIX,
    Notebook,
    only_code,
    opening,
    read,
)
from codemods.sources.parsing import parse, uncollected
from codemods.sources.prefilter import may_carry, mentions_legacy
from codemods.sources.relevance import Relevance
from codemods.sources.suppression import MARKER
from codemods.sources.text import Codes, Text, UndecodableError
from codemods.sources.unread import with_sites

Files = Mapping[str, tuple[bytes, Text | Notebook]]
"""The files of a project by path, each as it is and as read."""

Found = tuple[dict[str, FileResult], dict[str, str]]
"""The results of files that were analysed, and what is wrong with others."""

Edited = tuple[str, ImportPlan, Applied]
"""A file's new code, and what came of its imports and of each edit."""


@uncollected()
def migrate(
    sources: Sequence[Source],
    options: Options | None = None,
    progress: Progress | None = None,
) -> list[FileResult]:
    """Migrate a project.

    Args:
      sources: all its files. Facts flow between them, so whether one can change depends on others,
        also on those that are not writable.
      options: what the user asked for.
      progress: is called for each file that is taken in, and for each that was edited.

    Returns:
      A result for each source, in the same order, and one for each new module of helpers. A file
      that is not Python has its `error` set.
    """
    options = options or Options()
    report = progress or _no_progress
    report("Analysing", 0, 0)
    texts, errors, failures = _decoded(sources, options)
    writable = {source.path for source in sources if source.writable}
    has_context = len(writable) < len(sources)
    files: dict[str, tuple[bytes, Text | Notebook]] = {}
    shown: dict[str, str] = {}
    for source in sources:
        if source.path in texts:
            files[source.path] = (source.content, texts[source.path])
        if source.shown is not None:
            shown[source.path] = source.shown

    def program(paths: Iterable[str], aside: Collection[str]) -> Found:
        chosen = {*paths, *aside}
        codes = Codes(texts, (path for path in texts if path in chosen))
        relevance = Relevance(codes, writable if has_context else None)
        read = _Parser(texts, {}, writable, report)
        facts = _analysed(codes, read, relevance, aside)
        return _results(facts, files, shown, options, report), read.errors

    def alone(paths: Iterable[str], _: Collection[str]) -> Found:
        read = _Parser(texts, {}, writable, _no_progress)
        parsed = [read(path) for path in paths if uses_removed(texts[path].code)]
        units = [unit for unit in parsed if unit is not None and names_removed(unit)]
        if not units:
            return {}, read.errors
        facts = Facts(units)
        results = _results(facts, files, shown, options, _no_progress)
        return results, read.errors

    (results, problems), failing = contained(texts, program)
    errors |= problems
    failures |= failing
    for path in texts if options.modernize else ():
        # files that no optimizer can get to: jax.tree_map(f, params)
        is_done = path in results or path in errors or path in failures
        if path in writable and not is_done:
            (own, problems), failing = contained([path], alone)
            results |= own
            errors |= problems
            failures |= failing
    new = [result for result in results.values() if result.kind == "new"]
    return [*(_result(one, results, errors, failures) for one in sources), *new]


class _Parser:
    """Parses files. What is wrong with a file is added to `errors`."""

    def __init__(
        self,
        texts: Mapping[str, Text | Notebook],
        errors: dict[str, str],
        writable: Collection[str],
        report: Progress,
    ) -> None:
        self.texts = texts
        self.errors = errors
        self._writable = writable
        self._report = report
        self._begun: set[str] = set()

    def __call__(self, path: str) -> Unit | None:
        text = self.texts[path]
        self._begun.add(path)
        self._report("Analysing", len(self._begun), 0)
        try:
            tree = parse(text.code)
            return Unit(path, text.code, tree, text.places, path in self._writable)
        except SyntaxError as error:
            problem = f"line {error.lineno}: cannot be parsed as Python 3: {error.msg}"
            self.errors[path] = with_sites(problem, text.code)
        except (RecursionError, MemoryError):
            self.errors[path] = with_sites(TOO_DEEP, text.code)
        return None


def _analysed(
    codes: Codes,
    read: _Parser,
    relevance: Relevance,
    aside: Collection[str],
) -> Facts:
    """The facts of a program, without the files set aside."""
    program = Codes(read.texts, relevance.paths)
    named = {name for code in codes.values() for name in named_classes(code)}
    parsed = [read(path) for path in program if path not in aside]
    found = [unit for unit in parsed if unit is not None]
    asked = relevance.asked_about(program)
    units = [unit for unit in found if unit.path in asked]
    around = [unit for unit in found if unit.path not in asked]
    others = program.without({unit.path: unit for unit in found})
    graphs = relevance.imports, relevance.importers
    paths = read.texts.keys()
    return Facts(units, named, others, graphs, around, aside, paths)


def _result(
    source: Source,
    results: Mapping[str, FileResult],
    errors: Mapping[str, str],
    failures: Mapping[str, Failure],
) -> FileResult:
    path, content = source.path, source.content
    unchanged = FileResult(path, content, content, error=errors.get(path))
    if path in failures:
        problem = with_sites(failures[path].of_file(), content.decode(errors="replace"))
        tracebacks = (failures[path].traceback,)
        return unchanged._replace(error=problem, tracebacks=tracebacks)
    if unchanged.error is None and path in results:
        return results[path]
    return unchanged


def _results(
    facts: Facts,
    files: Files,
    shown: Mapping[str, str],
    options: Options,
    report: Progress,
) -> dict[str, FileResult]:
    """The results for the files of a program; messages have paths as `shown` has them."""
    plan, edited = _edit_all(facts, options, report)
    after = {unit: applied.after for unit, (_, _, applied) in edited.items()}
    emitter = Emitter(facts, plan.decisions, after)
    accounting = Accounting(plan, shown)
    results = {}
    for unit, (code, imports, applied) in edited.items():
        before, text = files[unit.path]
        sites = tuple(accounting.site(one, imports, applied) for one in plan.of(unit))
        # what `modernize` would have done, which needs no imports now
        own = (hint for hint in plan.hints if hint.use.unit is unit)
        hints = tuple(accounting.site(hint, ImportPlan(), applied) for hint in own)
        comments = plan.comments[unit]
        unused = [
            unit.line(one.line)
            for one in comments
            if (unit, one) not in plan.used_comments
            # jax.tree_map(f, x)  # optim2optax: ignore, without `modernize`
            and not any(
                hint.line == unit.line(one.line) and one.covers(hint.code)
                for hint in hints
            )
        ]
        refusals = (one.refusal for one in plan.of(unit) if one.refusal is not None)
        tracebacks = dict.fromkeys(refusal.traceback for refusal in refusals)
        results[unit.path] = FileResult(
            unit.path,
            before,
            before if code == unit.code else text.encode(code),
            sites,
            None,
            tuple(unused),
            emitter.emitted(unit, _sources_of_supports(applied)),
            hints,
            needs=tuple(dict.fromkeys(_needs(plan.of(unit)))),
            analysed=True,
            tracebacks=tuple(filter(None, tracebacks)),
        )
    for place, supports in plan.shared.modules.items():
        indent = "  " if place in plan.shared.narrow else INDENT
        module = module_of(supports.values(), indent)
        path = f"{place}.py"
        results[path] = FileResult(path, b"", module.encode(), kind="new")
    return results


def _sources_of_supports(applied: Applied) -> tuple[str, ...]:
    """The sources of the helpers that were added to a file, except for its train state."""
    sources = []
    for support in applied.supports.values():
        if TRAIN_STATE not in support.source:
            lines = (*support.imports, support.source)
            sources.append("\n".join(lines))
    return tuple(sources)


def _needs(decisions: Iterable[Decision]) -> Iterator[Need]:
    """The packages that the replacements of removed names need."""
    for decision in decisions:
        use = decision.use
        is_removed = use.kind in ("removed", "removed_import", CHANGED)
        if not decision.applies or not is_removed:
            continue
        row = changed().get(use.name) or row_of(use.name)
        if row is not None and row.since:
            package = row.module.partition(".")[0]
            yield Need(package, row.since, row.name)


def _decoded(
    sources: Iterable[Source], options: Options
) -> tuple[dict[str, Text | Notebook], dict[str, str], dict[str, Failure]]:
    """The texts of all files, and the errors of those without that speak of optimizers."""
    texts: dict[str, Text | Notebook] = {}
    errors: dict[str, str] = {}
    failures: dict[str, Failure] = {}
    for source in sources:
        content = source.content
        is_notebook = source.path.endswith(SUFFIX)
        try:
            # a notebook without JAX is left out before its JSON is read
            is_asked = not is_notebook or may_carry(content)
            if is_asked or (options.modernize and says_package(content)):
                texts[source.path] = read(source.path, content)
        except UndecodableError as error:
            if mentions_legacy(content):
                text = only_code(content) if is_notebook else content.decode("latin-1")
                errors[source.path] = with_sites(str(error), text)
        except Exception as error:  # noqa: BLE001 - whatever it is, other files go on
            failures[source.path] = Failure.of(error)
    return texts, errors, failures


def _no_progress(stage: Stage, done: int, of: int) -> None:
    del stage, done, of


def _edit_all(
    facts: Facts, options: Options, report: Progress
) -> tuple[Plan, dict[Unit, Edited]]:
    """Edit every file.

    When the result of one is not valid, all are edited once more with fewer changes there, and at
    last without its optimizers.
    """
    attempts = Attempts()
    while True:
        plan = make_plan(facts, options, attempts)
        imports = plan_imports(plan)
        to_edit = [
            unit for unit in imports if unit.writable and unit not in attempts.failed
        ]
        outcomes = _outcomes(plan, imports, to_edit, report)
        invalid = {
            unit: problem for unit, (_, _, problem) in outcomes.items() if problem
        }
        if not invalid:
            codes = {unit: code for unit, (code, _, _) in outcomes.items()}
            if options.rename:
                codes |= _renamed(plan, codes)
            edited = {
                unit: (codes[unit], imports[unit], applied)
                for unit, (_, applied, _) in outcomes.items()
            }
            plan.hints += escaping(plan)
            return plan, edited
        for unit, problem in invalid.items():
            rewritten = (one.use.kind for one in plan.of(unit) if one.applies)
            # perhaps the fault is in what has to do with no optimizer
            is_modernized = any(kind in MODERNIZED for kind in rewritten)
            (attempts.unmodernized if is_modernized else attempts.failed)[unit] = (
                problem
            )


def _outcomes(
    plan: Plan,
    imports: Mapping[Unit, ImportPlan],
    to_edit: Iterable[Unit],
    report: Progress,
) -> dict[Unit, Outcome]:
    """Edit some files, and leave the others as they are."""
    work: dict[Unit, Work] = {}
    for unit in to_edit:
        found = _work(unit, plan, imports[unit])
        if found is not None:
            work[unit] = found
    outcomes: dict[Unit, Outcome] = {
        unit: (unit.code, Applied(), None) for unit in imports if unit not in work
    }
    report("Rewriting", 0, len(work))
    for done, (unit, to_do) in enumerate(work.items(), 1):
        outcomes[unit] = edit_file(to_do)
        report("Rewriting", done, len(work))
    return outcomes


def _renamed(plan: Plan, codes: Mapping[Unit, str]) -> dict[Unit, str]:
    """The files with new names for the variables that have train states now."""
    migrated: list[LegacyObject] = []
    for decision in plan.decisions:
        if decision.applies:
            migrated += decision.use.objects
    renames = plan_renames(plan.facts, plan.facts.of(Origins), migrated)
    new: dict[Unit, str] = {}
    for unit, found in renames.items():
        code = renamed(unit.path, codes[unit], found)
        # calls in one file have keywords of functions in another: all files or none
        if code is None or not unit.writable:
            return {}
        new[unit] = code
    return new


def _work(unit: Unit, plan: Plan, imports: ImportPlan) -> Work | None:
    """The work on a file; None if nothing changes in it."""
    decisions = plan.of(unit)
    applied = [decision for decision in decisions if decision.applies]
    changes = (decision.edit for decision in applied)
    edits = tuple(edit for edit in changes if edit and not isinstance(edit, MoveImport))
    # no comment in a file of which nothing is rewritten
    markers = _markers(decisions, plan) if edits else {}
    given = plan.shared.given.get(unit, {})
    imported = plan.shared.imported.get(unit, {})
    if not (edits or imports.drop or markers or given):
        return None
    names = {key: name.expression for key, name in plan.names[unit].items()}
    first = min((edit.span[0] for edit in edits), default=1)
    # the first cell of a notebook that changes
    first_cell = opening(unit.places[first - 1][0]) if unit.places else ""
    return Work(
        unit,
        edits,
        names,
        plan.options.form,
        imports,
        first_cell,
        markers,
        tuple(given.values()),
        imported,
        plan.shared.called.get(unit, {}),
    )


def _markers(decisions: Sequence[Decision], plan: Plan) -> dict[int, list[str]]:
    """The comments that partial work leaves at unresolved sites, by line."""
    markers: dict[int, list[str]] = defaultdict(list)
    if not plan.options.partial:
        return markers
    for decision in decisions:
        use, refusal = decision.use, decision.refusal
        if refusal is None or decision.status != "unresolved":
            continue
        # from flax import optim: what needs it has a comment
        if use.kind == "import":
            continue
        # what waits for other files to be named needs no work by hand
        if refusal.related:
            continue
        line = use.node.lineno
        why = text_of(refusal.reason)
        markers[line].append(f"{MARKER}{refusal.code} {why}")
    return markers
