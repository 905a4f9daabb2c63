"""Optimizers that are passed on by their names, and the variables that they are assigned to."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Variable, statement_of
from codemods.flow.binding import values_of
from codemods.functional.draft import Draft
from codemods.functional.group import function_around
from codemods.functional.parts import Parts
from codemods.idioms import Unproven
from codemods.rewriting.edits import ChangeArguments, Edit, Replace, Spread
from codemods.sources.modules import Unit


class References:
    """Puts the parts in the place of names."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.group = draft.group
        self.interfaces = draft.interfaces
        self.transformations = draft.transformations
        self.edits = draft.edits
        self.parts = draft.parts
        self.by_variable = draft.by_variable
        self.rewritten = draft.rewritten
        self.taken = draft.taken

    def name(self, node: ast.Name, unit: Unit) -> None:
        """An optimizer that is passed on by its name."""
        parent, parts = unit.parents[node], self.by_variable[node]
        # train_step(optimizer, batch)
        if node in self.interfaces.arguments:
            self._spread_argument(node, parts, unit)
            return
        # return loss, optimizer
        if isinstance(parent, ast.Tuple) and isinstance(
            unit.parents[parent], ast.Return
        ):
            self._returned_element(node, parent, parts, unit)
            return
        text = self._text(node, parts, unit)
        self.edits.put(node, unit, Replace(unit.span(node), text))

    def _text(self, node: ast.Name, parts: Parts, unit: Unit) -> str:
        """What is written in the place of a name."""
        parent = unit.parents[node]
        # return optimizer
        if isinstance(parent, ast.Return):
            if function_around(parent, unit) in self.transformations.given:
                return f"{self.transformations.at(node, unit)}, {parts.flat}"
            return parts.flat
        # yield optimizer, or best = optimizer
        is_assigned = isinstance(parent, ast.Assign) and parent.value is node
        if is_assigned or isinstance(parent, ast.Yield):
            return parts.flat
        if self.draft.is_inside(node, unit):
            return parts.nested
        raise Unproven(
            "it is handed to something else at {}", unit.location(node.lineno)
        )

    def _spread_argument(self, node: ast.Name, parts: Parts, unit: Unit) -> None:
        """Give the parts as arguments of their own."""
        for interface, argument in self.interfaces.arguments[node]:
            call, word = argument.call, argument.keyword
            keywords = ("",) * len(parts.names)
            for variable in interface.split:
                if word is not None and variable.name == word.arg:
                    keywords = self.parts[variable].names
                    break
            several = tuple(zip(keywords, parts.names, strict=True))
            spread = ((values_of(call).index(node), several),)
            self.edits.put(call, unit, ChangeArguments(unit.span(call), spread=spread))

    def _returned_element(
        self, node: ast.Name, parent: ast.Tuple, parts: Parts, unit: Unit
    ) -> None:
        """An element of a returned tuple: several elements, or a tuple within the tuple."""
        transformations = self.transformations
        statement, function = unit.parents[parent], function_around(node, unit)
        flat = self.interfaces.of(function).flat
        if statement in self.taken or (flat and statement in self.rewritten):
            raise Unproven(
                "two optimizers are returned at {}", unit.location(node.lineno)
            )
        if not flat:
            self.edits.put(node, unit, Replace(unit.span(node), parts.nested))
            return
        is_given = function in transformations.given
        first = parent.elts[0]
        # the transformation goes ahead of the first element, whether that is the optimizer or not
        ahead = (transformations.at(node, unit),) if node is first and is_given else ()
        self.edits.put(node, unit, Spread(unit.span(node), ahead + parts.names))
        if is_given and node is not first:
            text = (transformations.at(node, unit), "{it}")
            self.edits.put(first, unit, Spread(unit.span(first), text))

    def store(self, store: ast.Name, variable: Variable) -> None:
        """A variable that an optimizer is assigned to."""
        unit, parts = variable.unit, self.parts[variable]
        outer: ast.AST = store
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        if parent in self.rewritten:
            return
        value = parent.value if isinstance(parent, ast.Assign) else None
        name = self.transformations.received.get(value) if value is not None else None
        is_element = value is not None and unit.parents[store] is outer
        edit: Edit = Replace(unit.span(store), parts.nested)
        # optimizer = create_optimizer(params)
        if outer is store:
            text = f"{name}, {parts.flat}" if name else parts.flat
            edit = Replace(unit.span(store), text)
        # optimizer, loss = train_step(optimizer, batch)
        elif value is not None and is_element and self.interfaces.is_flat(value):
            is_first = isinstance(outer, ast.Tuple) and store is outer.elts[0]
            ahead = (name,) if is_first and name else ()
            edit = Spread(unit.span(store), ahead + parts.names)
        self.edits.put(store, unit, edit)

    def receive(self, call: ast.expr, name: str) -> None:
        """Assign the transformation where a tuple is unpacked that begins with something else.

        That is `model, optimizer = create(rng)`; elsewhere it goes with the optimizer.
        """
        unit = next(
            unit for unit, one in self.group.facts.flow.reading.calls if one is call
        )
        statement = statement_of(unit, call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        first = target.elts[0] if isinstance(target, ast.Tuple) else None
        if first is None:
            return
        group = self.group
        is_own = (
            isinstance(first, ast.Name) and group.target(first, call) in group.variables
        )
        if not is_own:
            self.edits.put(first, unit, Spread(unit.span(first), (name, "{it}")))
