"""What a rule may ask beside its own use: all uses of the project, and what becomes of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

from codemods.analysis.facts import Facts
from codemods.analysis.handling import Handling
from codemods.analysis.legacy import LegacyName, legacy_name
from codemods.analysis.param_types import ComplexNumbers
from codemods.analysis.pickles import pickles
from codemods.analysis.stepping import Stepping
from codemods.analysis.steps import Steps
from codemods.analysis.uses import Use
from codemods.analysis.values import exposed_classes, taken_by_classes
from codemods.idioms.base import Results
from codemods.idioms.overrides import Overrides
from codemods.inference.objects import External, LegacyObject, Object
from codemods.model import Message, Options
from codemods.rewriting.edits import Edit, Keep
from codemods.rules.idioms import in_order
from codemods.rules.notes import Notes


class Context:
    """What a rule may ask: the facts, where optimizers take steps, and what idioms have found.

    The definitions of objects that are `kept` keep their interface, each for a reason.
    """

    def __init__(
        self,
        facts: Facts,
        options: Options,
        kept: Mapping[LegacyObject, Message] = MappingProxyType({}),
    ) -> None:
        self.facts = facts
        self.stepping = Stepping(facts, options, kept)
        self.origins = self.stepping.origins
        self.idioms = Results(self.stepping, in_order())

    @cached_property
    def overrides(self) -> Overrides:
        """The learning rates that are set at steps."""
        return self.idioms[Overrides]

    @cached_property
    def counted(self) -> Steps:
        """What the program asks of the steps that optimizers count."""
        return self.facts.of(Steps)

    @cached_property
    def notes(self) -> Notes:
        """What the report says at uses beside what becomes of them."""
        return Notes(self.stepping, self.idioms)

    @cached_property
    def exposed(self) -> frozenset[LegacyName]:
        """The legacy classes that no function can replace."""
        taken = (
            legacy_name(item.name)
            for item in self.taken_by_classes
            if isinstance(item, External)
        )
        return self.facts.of(exposed_classes) | {
            name for name in taken if name is not None
        }

    @property
    def taken_by_classes(self) -> frozenset[Object]:
        """What a class gets as an attribute through a variable: a function would be a method."""
        return self.facts.of(taken_by_classes)

    @cached_property
    def more_uses(self) -> list[Use]:
        """What changes beside the legacy constructs because of idioms, and what forbids changes.

        Of several uses at one node, the last stands for all, with the objects of all.
        """
        uses: list[Use] = []
        for idiom in self.idioms:
            uses += idiom.uses()
        uses += self.facts.of(Handling).uses(self.overrides.is_fixed)
        uses += self.facts.of(pickles)
        uses += self.facts.of(ComplexNumbers).uses()
        # a dict without values keeps its order, as a set does not: the output depends on it
        objects: dict[ast.AST, dict[LegacyObject, None]] = defaultdict(dict)
        for use in uses:
            objects[use.node].update(dict.fromkeys(use.objects))
        last = {use.node: use for use in uses}
        return [
            replace(use, objects=tuple(objects[node])) for node, use in last.items()
        ]

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        """What becomes of a use within idioms, of which its rule gives the general form."""
        for idiom in self.idioms:
            general = idiom.form(use, general)
        return general
