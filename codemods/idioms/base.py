"""What every idiom is, and how it gets the results of those before it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, ClassVar, TypeVar

from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms.order import Edits
from codemods.inference.objects import LegacyObject
from codemods.model import Prose
from codemods.rewriting.edits import Edit, Keep


class Idiom(ABC):
    """A form that a person would write, taken in the place of general ones where it is proven.

    It spans several uses, so it is found for a whole program when it is made: from the steps, and
    from the results of the idioms before it. The docstring of each idiom is its explanation to
    users, with an example: `before` and `after`.
    """

    code: ClassVar[str]
    summary: ClassVar[str]
    before: ClassVar[str]
    after: ClassVar[str]

    kind: ClassVar[str]
    """The kind of use (see `codemods.analysis.uses.Use`) that its changes are."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        self.stepping = stepping
        self.results = results
        self.facts = stepping.facts
        self.origins = stepping.origins

    @property
    def is_wanted(self) -> bool:
        """Whether the idiom is selected, and whole groups migrate."""
        options = self.stepping.options
        return options.selects(self.code) and not options.partial

    @property
    @abstractmethod
    def changes(self) -> Iterable[tuple[Edits, tuple[LegacyObject, ...]]]:
        """What changes beside the legacy constructs, and for which objects."""

    def uses(self) -> list[Use]:
        """What changes beside the legacy constructs, as uses of its kind."""
        return [
            use
            for edits, objects in self.changes
            for use in edits.uses(self.kind, objects)
        ]

    def edit(self, use: Use) -> Edit:
        """What changes at one of `uses`."""
        return next(
            edits[use.node][1] for edits, _ in self.changes if use.node in edits
        )

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        """What becomes of a use within the idiom, of which a rule gives the general form."""
        del use
        return general

    def note(self, use: Use) -> Prose:
        """Why a use has its general form, as a sentence; empty if no other was hoped for."""
        del use
        return ""

    def edits_of(self, objects: Iterable[LegacyObject]) -> Edits:
        """What changes beside the legacy constructs of some objects."""
        del objects
        return Edits()

    def removed(self, objects: Iterable[LegacyObject]) -> set[ast.AST]:
        """The nodes that are removed for some objects: nothing that is left may need them."""
        del objects
        return set()


T = TypeVar("T")


class Results:
    """What is found of a program, by the class that finds it, each when it is first asked for.

    An idiom gets those that come before it in the order, and asks for no others.
    """

    def __init__(
        self,
        stepping: Stepping,
        order: Sequence[type[Idiom]],
        found: dict[object, Any] | None = None,
    ) -> None:
        self._stepping = stepping
        self._order = order
        self._found: dict[object, Any] = {} if found is None else found

    def __getitem__(self, finding: Callable[[Stepping, Results], T]) -> T:
        if finding not in self._found:
            before = [*takewhile(lambda one: one is not finding, self._order)]
            results = Results(self._stepping, before, self._found)
            self._found[finding] = finding(self._stepping, results)
        found: T = self._found[finding]
        return found

    def __iter__(self) -> Iterator[Idiom]:
        return (self[idiom] for idiom in self._order)

    def edits_of(self, objects: Collection[LegacyObject]) -> Iterator[Edits]:
        """What each of these idioms changes for some objects."""
        for idiom in self:
            yield idiom.edits_of(objects)

    def removed(self, objects: Collection[LegacyObject]) -> set[ast.AST]:
        """The nodes that these idioms remove for some objects."""
        return {node for idiom in self for node in idiom.removed(objects)}
