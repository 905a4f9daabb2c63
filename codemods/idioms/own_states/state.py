"""A dataclass with an optimizer: its proof, as far as it has come, and what changes for it."""

from __future__ import annotations

import ast

from codemods.analysis.facts import Facts
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms.base import Results
from codemods.idioms.dead_code import DeadCode
from codemods.idioms.order import Edits
from codemods.idioms.overrides import Overrides
from codemods.inference.objects import Class, LegacyObject
from codemods.rewriting.edits import Edit

STEP = "step"


class OwnState:
    """What is known of one class, of which the field `name` has the optimizer.

    `outcomes` are edits for the uses of the optimizer, `edits` those elsewhere.
    """

    def __init__(
        self,
        stepping: Stepping,
        results: Results,
        cls: Class,
        name: str,
    ) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.origins = stepping.origins
        self.overrides = results[Overrides]
        self.cls = cls
        self.name = name
        self.objects = tuple(optimizers_of(self.facts, cls, name))
        self.counts = STEP in self.facts.flow.fields_in_order(cls)
        self.outcomes: dict[ast.AST, Edit | None] = {}
        self.edits = Edits()
        removed = results.removed(self.objects)
        self.dead_code = DeadCode(self.origins, self.edits, (), removed)
        self.stepped: dict[ast.expr, Use] = {}
        self.created: dict[ast.expr, Use] = {}

    def is_one(self, node: ast.expr) -> bool:
        """Whether an expression may be an instance of the class."""
        return self.facts.may_be_one(node, self.cls)

    def holder(self, receiver: ast.expr) -> ast.Attribute | None:
        """`state.optimizer`, where an expression is that, or a local variable for it."""
        match self.origins.expanded(receiver):
            case ast.Attribute(attr=name, value=value) as holder if name == self.name:
                return holder if self.is_one(value) else None
        return None

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields that are dropped: the optimizer's, and one that counts its steps again."""
        return (self.name, STEP) if self.counts else (self.name,)


def optimizers_of(facts: Facts, cls: Class, name: str) -> list[LegacyObject]:
    """The optimizers in a field of a class."""
    items = facts.flow.solver.at(facts.flow.field(cls, name))
    return [
        item
        for item in items
        if isinstance(item, LegacyObject) and item.kind == "optimizer"
    ]
