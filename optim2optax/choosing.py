"""A migration optimizer by optimizer, as the user chooses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codemods.model import EmittedOptimizer, FileResult, Location, Options, Site
from optim2optax.rewriting import Results, Run
from optim2optax.vendoring import Vendoring

Answer = Literal["yes", "no", "all", "quit"]
Place = tuple[str, int, int]
"""The path, the line and the column of a site."""


@dataclass(frozen=True)
class Question:
    """Whether some changes are wanted, all of them or none.

    `groups` are the optimizers that change, in most cases one. It is empty for all changes that
    belong to no optimizer. `number` and `of` count optimizers. Of `changes`, the contents before
    are those with all that was accepted up to now. `sites` are rewritten where one accepts.
    """

    groups: tuple[Location, ...]
    number: int
    of: int
    changes: tuple[FileResult, ...]
    sites: tuple[tuple[str, Site], ...]
    optimizers: tuple[EmittedOptimizer, ...]


Ask = Callable[[Question], Answer]
Tell = Callable[[Location], None]
"""Is called with a group that stays, because others were declined without which it does."""


class Chooser:
    """Asks about each optimizer of one project after another.

    Attributes:
      accepted: the number of optimizers that migrate.
      declined: the number of those that could, and stay.
    """

    def __init__(self, ask: Ask, tell: Tell) -> None:
        self.accepted = 0
        self.declined = 0
        self._ask = ask
        self._tell = tell
        self._rest: Literal["all", "quit"] | None = None

    def __call__(self, run: Run, options: Options, vendoring: Vendoring) -> Results:
        """The results of the run of a project that leaves what the user declines."""
        choice = _Choice(run, options, vendoring)
        is_open = any(result.changed for result in choice.everything.values())
        # "all" was the answer for an earlier project
        if self._rest != "all" and is_open:
            self._ask_about_others(choice)
            for group in choice.groups:
                # it may have been decided on together with an earlier one
                if group not in choice.accepted | choice.declined:
                    self._ask_about(group, choice)
        if self._rest == "all":
            undecided = choice.groups.keys() - choice.accepted - choice.declined
            choice.accept(undecided, choice.results(undecided))
        self.accepted += len(choice.accepted)
        self.declined += len(choice.groups) - len(choice.accepted)
        return choice.now

    def _is_wanted(self, question: Question) -> bool:
        answer = self._ask(question)
        if answer in ("all", "quit"):
            self._rest = answer
        return answer in ("yes", "all")

    def _ask_about_others(self, choice: _Choice) -> None:
        """Ask about all changes together that belong to no optimizer."""
        wanted = choice.now
        if not any(result.changed for result in wanted.values()):
            return
        # what they change is what is different without them
        choice.leave_others()
        changes = _changes(choice.now, wanted)
        if self._rest is None:
            sites = [site for site in _sites(wanted) if site[1].status == "rewritten"]
            question = Question((), 0, len(choice.groups), changes, tuple(sites), ())
            if not changes or self._is_wanted(question):
                choice.take_others(wanted)

    def _ask_about(self, group: Location, choice: _Choice) -> None:
        """Ask about an optimizer, with those without which it cannot migrate."""
        if self._rest is not None:
            return
        together = [group]
        wanted = choice.results(together)
        if not choice.migrates(group, wanted):
            # alone it stays: some function takes it and others, perhaps
            bound = choice.bound_to(group)
            together = [one for one in bound if one not in choice.declined]
            wanted = choice.results(together)
            if not choice.migrates(group, wanted):
                choice.declined.add(group)
                self._tell(group)
                return
        if self._is_wanted(choice.question(together, wanted)):
            choice.accept(together, wanted)
        else:
            choice.declined.update(together)


class _Choice:
    """What may become of one project, and what the user has chosen up to now.

    Attributes:
      everything: the results if nothing is declined.
      groups: the optimizers that can migrate, in order, each with the places of its sites.
      now: the results with what is accepted.
    """

    def __init__(self, run: Run, options: Options, vendoring: Vendoring) -> None:
        self.everything = run(options, vendoring)
        self.accepted: set[Location] = set()
        self.declined: set[Location] = set()
        self._with_others = True
        self._run = run
        self._options = options
        self._vendoring = vendoring
        self._others: frozenset[Location] = frozenset()
        places: dict[Location, set[Place]] = {}
        for path, site in _sites(self.everything):
            if site.group is not None and self._edits(site):
                places.setdefault(site.group, set()).add(_place(path, site))
        self.groups = dict(sorted(places.items()))
        self.now = self.results()

    def results(self, more: Collection[Location] = ()) -> Results:
        """The results with what is accepted, and with more."""
        return self._without(frozenset(self.groups.keys() - self.accepted.union(more)))

    def accept(self, groups: Collection[Location], results: Results) -> None:
        """Let groups migrate, which gives these results."""
        self.accepted.update(groups)
        self.now = results

    def leave_others(self) -> None:
        """Leave what belongs to no optimizer, which is all that changes now."""
        self._others = frozenset(
            Location(path, site.line)
            for path, site in _sites(self.now)
            if site.group is None and self._edits(site)
        )
        self._with_others = False
        self.now = self.results()

    def take_others(self, results: Results) -> None:
        """Change what belongs to no optimizer after all, which gives these results."""
        self._with_others = True
        self.now = results

    def migrates(self, group: Location, results: Results) -> bool:
        """Whether a group migrates in some results."""
        places = self.groups[group]
        return any(
            _place(path, site) in places and self._edits(site)
            for path, site in _sites(results)
        )

    def bound_to(self, group: Location) -> list[Location]:
        """The groups that stay if one does, itself included."""
        rest = self._without(frozenset([group]))
        return [one for one in self.groups if not self.migrates(one, rest)]

    def question(self, groups: Sequence[Location], wanted: Results) -> Question:
        """Whether groups migrate, and with that have these results."""
        places = set().union(*(self.groups[group] for group in groups))
        sites = [
            (path, site)
            for path, site in _sites(wanted)
            if _place(path, site) in places
        ]
        lines = {Location(path, site.line) for path, site in sites}
        optimizers = [
            optimizer
            for result in wanted.values()
            for optimizer in result.optimizers
            if Location(result.path, optimizer.line) in lines
        ]
        decided = len(self.accepted) + len(self.declined)
        return Question(
            tuple(groups),
            decided + 1,
            len(self.groups),
            _changes(self.now, wanted),
            tuple(sites),
            tuple(optimizers),
        )

    def _without(self, declined: frozenset[Location]) -> Results:
        """The results without some groups."""
        if not declined and self._with_others:
            return self.everything
        options, vendoring = self._options, self._vendoring
        if not self._with_others:
            kept = self.groups.keys() - declined
            declined |= self._others - kept
            options, vendoring = replace(options, modernize=False), Vendoring()
        return self._run(replace(options, declined=declined), vendoring)

    def _edits(self, site: Site) -> bool:
        """Whether something is written at a site; for partial work, that may be a comment."""
        if site.status == "rewritten":
            return True
        # with --partial, it gets a TODO
        return self._options.partial and site.status == "unresolved"


def _sites(results: Results) -> Iterator[tuple[str, Site]]:
    for result in results.values():
        for site in result.sites:
            yield result.path, site


def _place(path: str, site: Site) -> Place:
    return path, site.line, site.column


def _changes(before: Results, after: Results) -> tuple[FileResult, ...]:
    """What changes from some results to others, in order of the paths."""
    changes: list[FileResult] = []
    for file in {**before, **after}:
        old, new = before.get(file), after.get(file)
        # files without findings have no results, which are as they were
        if new is None and old is not None:
            change = old._replace(before=old.after, after=old.before)
        elif new is not None:
            change = new if old is None else new._replace(before=old.after)
        if change.changed:
            changes.append(change)
    return tuple(sorted(changes, key=lambda change: change.path))
