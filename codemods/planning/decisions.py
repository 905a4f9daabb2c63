"""What is decided on the uses of a project."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from codemods.analysis.facts import Facts
from codemods.analysis.import_names import Name
from codemods.analysis.removed_names import MODERNIZED
from codemods.analysis.uses import Use
from codemods.model import Options, Prose, Refusal, Status
from codemods.planning.sharing import Shared
from codemods.rewriting.editing import Problem
from codemods.rewriting.edits import Edit
from codemods.rules import Rule
from codemods.sources.modules import Span, Unit
from codemods.sources.suppression import Suppression


@dataclass(eq=False)
class Decision:
    """A use, the rule that decided on it, and the outcome: an edit, or a refusal.

    A suppression is a refusal, too. `cause` is the decision for the sake of which a use is refused
    that could migrate by itself. Of a construct that is valid as it stands there is neither.
    `note` says why the edit is a general form, where a person may have expected a shorter one.
    """

    use: Use
    rule: Rule
    edit: Edit | None
    refusal: Refusal | None = None
    status: Status = "rewritten"
    note: Prose = ""
    cause: Decision | None = None

    @property
    def code(self) -> str:
        if self.refusal is not None and self.status == "unresolved":
            return self.refusal.code
        return self.rule.code

    @property
    def applies(self) -> bool:
        return self.status == "rewritten"

    def text_after(self, after: Mapping[Span, str]) -> str:
        """The new text of what is decided on, by the new texts of edited spans."""
        use, unit = self.use, self.use.unit
        span = use.span if self.edit is None else self.edit.span
        text = after.get(span, "")
        # only the name of the class changes: `optim.Adam(**arguments)`, `Adam(**arguments)`
        if isinstance(use.node, ast.Call) and span == unit.span(use.node.func):
            text += unit.source(use.node).removeprefix(unit.source(use.node.func))
        return text

    def refuse(self, refusal: Refusal, status: Status = "unresolved") -> None:
        self.refusal, self.status = refusal, status


@dataclass
class Attempts:
    """The files that were not valid when they were edited, each with the problem.

    First what has to do with no optimizer is left as it was (`unmodernized`), then the whole file.
    """

    unmodernized: dict[Unit, Problem] = field(default_factory=dict)
    failed: dict[Unit, Problem] = field(default_factory=dict)

    def problem(self, use: Use) -> Problem | None:
        """What was wrong with a file in which a use was rewritten; None if it may be rewritten."""
        problem = self.failed.get(use.unit)
        # jax.tree_map, which has to do with no optimizer
        if problem is None and use.kind in MODERNIZED:
            problem = self.unmodernized.get(use.unit)
        return problem


@dataclass
class Plan:
    """All decisions, and for each file the names that its new code will use."""

    facts: Facts
    options: Options
    decisions: list[Decision] = field(default_factory=list)
    names: dict[Unit, dict[str, Name]] = field(default_factory=dict)
    comments: dict[Unit, tuple[Suppression, ...]] = field(default_factory=dict)
    left: dict[Unit, Mapping[int, tuple[str, str]]] = field(default_factory=dict)
    used_comments: set[tuple[Unit, Suppression]] = field(default_factory=set)
    hints: list[Decision] = field(default_factory=list)
    shared: Shared = field(default_factory=Shared)

    def of(self, unit: Unit) -> list[Decision]:
        return [decision for decision in self.decisions if decision.use.unit is unit]

    def is_suppressed(self, decision: Decision) -> bool:
        """Whether a comment forbids what is decided; it counts as used then."""
        unit, (first, _, last, _) = decision.use.unit, decision.use.span
        # its rule, or the reason for which it stays anyway
        codes = (decision.rule.code, decision.code)
        for comment in self.comments[unit]:
            if first <= comment.line <= last and any(map(comment.covers, codes)):
                self.used_comments.add((unit, comment))
                return True
        return False
