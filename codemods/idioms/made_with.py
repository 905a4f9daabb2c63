"""The hyperparameters that optimizers were made with, said where the program reads them."""

from __future__ import annotations

import ast
import re

from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.origins import function_of
from codemods.analysis.stepping import Stepping, field_read
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.idioms.values import Part, Value, Values
from codemods.inference.objects import LegacyObject
from codemods.model import Refusal
from codemods.optimizers.base import RATE, arguments_given, signature_of

NUMBER = re.compile(r"True|False|-?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
"""A number or a truth value as source text."""


class MadeWith:
    """What constructors were given, which no step of an optimizer ever changes."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        del results
        self.stepping = stepping
        self.facts = stepping.facts
        self.origins = stepping.origins
        self.values = Values(stepping.origins)

    def rate(self, use: Use) -> str | None:
        """The text of the rate that all optimizers at a step were made with.

        It is a number of the same file, or a constant that has a name at the step too: nobody
        would look in another file for a copy of a number.
        """
        texts: set[str | None] = set()
        for one in self._definitions(use):
            number = self._number(RATE, one) if one.unit is use.unit else None
            texts.add(number or self._constant_at(use, one))
        return texts.pop() if len(texts) == 1 else None

    def copies_rate(self, use: Use) -> bool:
        """Whether a step is given a copy of a number that is written in another function."""
        rate = self.rate(use)
        return (
            rate is not None
            and NUMBER.fullmatch(rate) is not None
            and not all(stand_together(one, use) for one in self._definitions(use))
        )

    def _constant_at(self, use: Use, definition: LegacyObject) -> str | None:
        """The name at a step of a constant that a definition was given as its rate."""
        argument = self._argument(RATE, definition)
        if not isinstance(argument, ast.expr) or not isinstance(use.node, ast.expr):
            return None
        variable = self.origins.variable(argument)
        here = self.facts.scope(use.node)
        if variable is None or self._constant(argument, definition) is None:
            return None
        is_named = self.origins.means_the_same(variable.name, here, variable)
        return variable.name if is_named else None

    def is_far(self, use: Use) -> bool:
        """Whether a value is a number that is written in another function than its use."""
        read, value = field_read(use), self.value(use)
        if read is None or value is None or not NUMBER.fullmatch(value):
            return False
        return any(
            isinstance(self._argument(read.attr, one), ast.expr)
            and not stand_together(one, use)
            for one in self._definitions(use)
        )

    def value(self, use: Use) -> str | None:
        """The text of a hyperparameter as it is said at a use; None if there is not one for all."""
        read = field_read(use)
        if read is None:
            return None
        numbers = {self._number(read.attr, one) for one in self._definitions(use)}
        if len(numbers) == 1 and None not in numbers:
            return numbers.pop()
        texts = {self._said(read, one) for one in self._definitions(use)}
        return texts.pop() if len(texts) == 1 else None

    def _definitions(self, use: Use) -> set[LegacyObject]:
        """The definitions behind a use; none if one of them may be out of view."""
        objects = [*use.objects]
        for node in ast.walk(use.node):
            if isinstance(node, ast.expr):
                objects += self.facts.legacy_objects(node, "optimizer", "definition")
        if any(obj.evidence != "proven" for obj in objects):
            return set()
        own = (obj for obj in objects if obj.kind == "definition")
        return {*self.stepping.definitions(use), *own}

    def _argument(self, name: str, definition: LegacyObject) -> ast.expr | str | None:
        """What a constructor is given for a hyperparameter, or the text of its default."""
        call, legacy = definition.node, legacy_optimizer(definition)
        if legacy is None or not isinstance(call, ast.Call):
            return None
        # a function or class of the program may make the definition from other arguments
        if not self.facts.names_legacy(call.func):
            return None
        arguments = arguments_given(call, signature_of(legacy.parameters))
        own = (one for one in legacy.parameters if one.name == name)
        default = next((one.default for one in own), None)
        if isinstance(arguments, Refusal) or default is None:
            return None
        return arguments.get(name, default)

    def _number(self, name: str, definition: LegacyObject) -> str | None:
        """The text of a number that a definition was made with; None if it is anything else."""
        argument = self._argument(name, definition)
        if isinstance(argument, ast.expr):
            argument = definition.unit.source(argument)
        is_number = argument is not None and NUMBER.fullmatch(argument)
        return argument if is_number else None

    def _said(self, read: ast.Attribute, definition: LegacyObject) -> str | None:
        """What a definition was made with, by names that have the same value where it is read."""
        argument = self._argument(read.attr, definition)
        # optim.Adam()
        if isinstance(argument, str):
            return argument if argument == "None" else None
        if not isinstance(argument, ast.Name | ast.Attribute):
            return None
        try:
            value = self.values.of(argument)
        except Unproven:
            return None
        said = self._text(value, read, definition)
        return said if said is not None else self._constant(argument, definition)

    def _constant(self, argument: ast.expr, definition: LegacyObject) -> str | None:
        """The number that a variable always is: `LEARNING_RATE = 0.1`."""
        variable = self.origins.variable(argument)
        only = self.origins.value(variable)
        if variable is None or only is None:
            return None
        if not self.facts.dataflow.is_settled(variable, self._carriers(definition)):
            return None
        text = variable.unit.source(only)
        return text if NUMBER.fullmatch(text) else None

    def _carriers(self, definition: LegacyObject) -> list[LegacyObject]:
        """A definition, and what migrates with it."""
        return self.facts.members[self.facts.groups[definition]]

    def _text(
        self, value: Value, read: ast.Attribute, definition: LegacyObject
    ) -> str | None:
        """A value where it is read; None if it may be another by then, or has no name there."""
        carriers = self._carriers(definition)
        lasts = self.facts.dataflow.lasts
        if not all(lasts([node], node, read, carriers) for node in value.read):
            return None
        names = [self._name(part, read, definition) for part in value.parts]
        known = [name for name in names if name is not None]
        return value.text(known) if len(known) == len(names) else None

    def _name(
        self, part: Part, read: ast.Attribute, definition: LegacyObject
    ) -> str | None:
        """What a part of a value is called where it is read."""
        carriers = self._carriers(definition)
        here = self.facts.scope(read)
        for variable, name in zip(part.variables, part.names, strict=True):
            if not self.origins.means_the_same(variable.name, here, variable):
                continue
            if self.facts.dataflow.lasts([name], name, read, carriers):
                return variable.name
        return None if part.given is None else self._text(part.given, read, definition)


def stand_together(definition: LegacyObject, use: Use) -> bool:
    """Whether a definition is made in the function in which it is used, or both in no function."""
    if definition.unit is not use.unit:
        return False
    made_in = function_of(use.unit, definition.node)
    around = function_of(use.unit, use.node)
    # a function within the function that makes it counts
    while made_in is not None and around not in (made_in, None):
        around = function_of(use.unit, around)
    return around is made_in
