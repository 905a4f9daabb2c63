"""Optimizers that are chosen one by one, over the fixtures: what is chosen migrates as in a run of all, the rest stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from codemods.model import Location
from optim2optax.choosing import Answer, Chooser, Question
from optim2optax.project import Found
from optim2optax.rewriting import Results
from optim2optax.vendoring import Vendoring

CASES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/before.*"))
SEVERAL = ("bare_definition", "group_rates", "soft_actor_critic", "three_optimizers")
"""Fixtures with several optimizers that have more than that in common; those like them are thorough."""

CHOSEN = [
    pytest.param(
        case,
        id=case.parent.name,
        marks=[] if case.parent.name in SEVERAL else pytest.mark.thorough,
    )
    for case in CASES
]


class Project:
    """One file that is migrated, and the answers to what is asked about it."""

    def __init__(self, path: Path) -> None:
        self.source = Source(path.name, path.read_bytes())
        self.file = Found(path.name, str(path), str(path.parent))
        self.asked: list[Question] = []
        self.told: list[Location] = []

    def run(self, options: Options, _: Vendoring | None = None) -> Results:
        [result] = migrate([self.source], options)
        return {self.file: result}

    def chosen(self, *answers: Answer) -> bytes:
        """The file after these answers, of which the last one is repeated."""
        left = list(answers)

        def answer(question: Question) -> Answer:
            self.asked.append(question)
            return left.pop(0) if len(left) > 1 else left[0]

        chooser = Chooser(answer, self.told.append)
        return chooser(self.run, Options(), Vendoring())[self.file].after


@pytest.mark.parametrize("case", CHOSEN)
def test_all_accepted_is_a_run_without_questions(case: Path) -> None:
    """What is shown adds up to it: each change begins with what the ones before it have made."""
    project = Project(case)
    after = project.chosen("yes")
    assert after == project.run(Options())[project.file].after
    content = project.source.content
    for question in project.asked:
        [change] = question.changes
        assert change.before == content
        content = change.after
    assert content == after
    assert project.told == []


@pytest.mark.parametrize("case", CHOSEN)
def test_all_declined_changes_nothing(case: Path) -> None:
    project = Project(case)
    assert project.chosen("no") == project.source.content


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.parent.name in SEVERAL],
    ids=lambda case: case.parent.name,
)
def test_each_alone(case: Path) -> None:
    """The sites of the accepted optimizers are rewritten, and those of no others."""
    project = Project(case)
    project.chosen("no")
    for number in range(len(project.asked)):
        again = Project(case)
        before: list[Answer] = ["no"] * number
        after = again.chosen(*before, "yes", "quit")
        accepted = again.asked[number]
        [change] = accepted.changes
        assert (change.before, change.after) == (project.source.content, after)
        assert {site.group for _, site in accepted.sites} == {*accepted.groups}
        assert {site.status for _, site in accepted.sites} == {"rewritten"}
