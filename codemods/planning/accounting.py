"""The account of every site: what became of it, with which others, and for the sake of which."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.analysis.trace import Traces
from codemods.messages import text_of
from codemods.model import Location, Prose, Refusal, Site
from codemods.planning.decisions import Decision, Plan
from codemods.planning.groups import first_sites
from codemods.planning.importing import ImportPlan
from codemods.rewriting.edited_file import Applied
from codemods.rewriting.edits import MoveImport


class Accounting:
    """Gives an account of the decisions of a plan, with paths as `shown` has them."""

    def __init__(self, plan: Plan, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._groups = first_sites(plan)
        self._traces = Traces(plan.facts) if plan.options.trace else None

    def site(self, decision: Decision, imports: ImportPlan, applied: Applied) -> Site:
        """The account of a decision, given the imports and the new texts of its file."""
        use, unit = decision.use, decision.use.unit
        line, column, end_line, end_column = use.span
        status, refusal, cause = decision.status, decision.refusal, decision.cause
        is_import = use.kind == "import" and decision.applies
        # from flax import optim, which something still needs
        if is_import and use.node in imports.staying:
            status, refusal, cause = imports.staying[use.node]
        after = None
        if status == "rewritten":
            after = _text_after(decision, imports, applied)
        # what the user left has the code of its rule, and needs no remedy
        reported = refusal if status in ("unresolved", "hint") else None
        return Site(
            code=reported.code if reported is not None else decision.rule.code,
            line=unit.line(line),
            column=column + 1,
            end_line=unit.line(end_line),
            end_column=end_column + 1,
            status=status,
            evidence=use.evidence,
            message=self._message(decision, refusal),
            before=unit.source(use.node),
            after=after,
            remedy=None if reported is None else self._text(reported.remedy),
            note=self._text(decision.note) if status == "rewritten" else "",
            group=self._group(decision),
            cause=self._place(cause.use.location) if cause is not None else None,
            way=self._way(decision),
            related=self._related(refusal, cause),
        )

    def _related(
        self, refusal: Refusal | None, cause: Decision | None
    ) -> tuple[str, ...]:
        """The files that a site waits for, as those do that need an import."""
        known = (refusal, cause.refusal if cause is not None else None)
        paths = [path for one in known if one is not None for path in one.related]
        return tuple(self._shown.get(path, path) for path in dict.fromkeys(paths))

    def _message(self, decision: Decision, refusal: Refusal | None) -> str:
        """What is said of a site, with its cell in a notebook."""
        said = decision.rule.summary
        if refusal is not None:
            said = self._text(refusal.reason)
        use = decision.use
        cell = use.unit.cell(use.span[0])
        return f"{cell}: {said}" if cell else said

    def _group(self, decision: Decision) -> Location | None:
        objects = decision.use.objects
        first = self._groups.get(objects[0]) if objects else None
        return None if first is None else self._place(first)

    def _way(self, decision: Decision) -> tuple[Location, ...]:
        if self._traces is None:
            return ()
        way = self._traces.way(decision.use)
        places = () if way is None else (way.origin, *way.stops)
        return tuple(map(self._place, places))

    def _place(self, location: Location) -> Location:
        path, line = location.path, location.line
        return Location(self._shown.get(path, path), line)

    def _text(self, prose: Prose) -> str:
        return text_of(prose, self._shown)


def _text_after(decision: Decision, imports: ImportPlan, applied: Applied) -> str:
    """The new text of what a decision rewrote."""
    edit = decision.edit
    # from jax import tree_map
    if isinstance(edit, MoveImport):
        return edit.statement
    # from flax import optim
    if decision.use.kind == "import":
        return "\n".join(imports.statements)
    return decision.text_after(applied.after)
