"""Optimizers that are handed on by their names, and the variables that take them up."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Variable, statement_of
from codemods.flow.binding import values_of
from codemods.functional.draft import Draft
from codemods.functional.parts import Parts
from codemods.functional.places import function_around
from codemods.idioms import Unproven
from codemods.rewriting.edits import ChangeArguments, Edit, Replace, Spread
from codemods.sources.modules import Unit


class Handing:
    """Puts the parts in the place of names."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def name(self, node: ast.Name, unit: Unit) -> None:
        """An optimizer that is handed on by its name."""
        parent, parts = unit.parents[node], self.draft.by_variable[node]
        if node in self.draft.interfaces.arguments:
            self._spread_argument(node, parts, unit)
            return
        if isinstance(parent, ast.Return):
            function = function_around(parent, unit)
            text = parts.flat
            if function in self.draft.transformations.given:
                text = f"{self.draft.transformations.at(node, unit)}, {text}"
        elif isinstance(parent, ast.Yield) or (
            isinstance(parent, ast.Assign) and parent.value is node
        ):
            text = parts.flat
        elif isinstance(parent, ast.Tuple) and isinstance(unit.parents[parent], ast.Return):
            self._returned_element(node, parent, parts, unit)
            return
        elif self.draft.is_held(node, unit):
            text = parts.nested
        else:
            raise Unproven(f"it is handed to something else at {unit.place(node.lineno)}")
        self.draft.edits.put(node, unit, Replace(unit.span(node), text))

    def _spread_argument(self, node: ast.Name, parts: Parts, unit: Unit) -> None:
        for interface, argument in self.draft.interfaces.arguments[node]:
            call, word = argument.call, argument.keyword
            named = next(
                (one for one in interface.split if word is not None and one.name == word.arg), None
            )
            keywords = ("",) * len(parts.names) if named is None else self.draft.parts[named].names
            spread = (
                (values_of(call).index(node), tuple(zip(keywords, parts.names, strict=True))),
            )
            self.draft.edits.put(call, unit, ChangeArguments(unit.span(call), spread=spread))

    def _returned_element(
        self, node: ast.Name, parent: ast.Tuple, parts: Parts, unit: Unit
    ) -> None:
        statement, function = unit.parents[parent], function_around(node, unit)
        flat = self.draft.interfaces.of(function).flat
        if statement in self.draft.taken or (flat and statement in self.draft.rewritten):
            raise Unproven(f"two optimizers are returned at {unit.place(node.lineno)}")
        if flat:
            first = node is parent.elts[0] and function in self.draft.transformations.given
            names = ((self.draft.transformations.at(node, unit),) if first else ()) + parts.names
            self.draft.edits.put(node, unit, Spread(unit.span(node), names))
            if function in self.draft.transformations.given and not first:
                text = (self.draft.transformations.at(node, unit), "{it}")
                self.draft.edits.put(parent.elts[0], unit, Spread(unit.span(parent.elts[0]), text))
        else:
            self.draft.edits.put(node, unit, Replace(unit.span(node), parts.nested))

    def store(self, store: ast.Name, variable: Variable) -> None:
        unit, parts = variable.unit, self.draft.parts[variable]
        outer: ast.AST = store
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        if parent in self.draft.rewritten:
            return
        value = parent.value if isinstance(parent, ast.Assign) else None
        name = self.draft.transformations.received.get(value) if value is not None else None
        edit: Edit = Replace(unit.span(store), parts.nested)
        if outer is store:
            edit = Replace(unit.span(store), f"{name}, {parts.flat}" if name else parts.flat)
        elif (
            value is not None
            and unit.parents[store] is outer
            and self.draft.interfaces.is_flat(value)
        ):
            first = isinstance(outer, ast.Tuple) and store is outer.elts[0]
            edit = Spread(unit.span(store), ((name,) if first and name else ()) + parts.names)
        self.draft.edits.put(store, unit, edit)

    def receive(self, call: ast.expr, name: str) -> None:
        """Take the transformation up where a tuple is taken apart that does not begin with an optimizer."""
        unit = next(unit for unit, one in self.draft.group.facts.flow.reading.calls if one is call)
        statement = statement_of(unit, call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        first = target.elts[0] if isinstance(target, ast.Tuple) else None
        is_own = (
            isinstance(first, ast.Name)
            and self.draft.group.target(first, call) in self.draft.group.variables
        )
        if first is not None and not is_own:
            self.draft.edits.put(first, unit, Spread(unit.span(first), (name, "{it}")))
