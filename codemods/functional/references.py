"""Optimizers that are passed on by their names, and the variables that they are assigned to."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Variable, statement_of
from codemods.functional.draft import Draft
from codemods.functional.group import function_around
from codemods.functional.parts import Parts
from codemods.idioms import Unproven
from codemods.inference.binding import values_of
from codemods.rewriting.edits import ChangeArguments
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
        parts = self.by_variable[node]
        # train_step(optimizer, batch)
        if node in self.interfaces.arguments:
            self._spread_argument(node, parts, unit)
            return
        parent = unit.parents[node]
        outer = unit.parents[parent]
        # return loss, optimizer
        if isinstance(parent, ast.Tuple) and isinstance(outer, ast.Return):
            self._returned_element(node, parent, parts, unit)
            return
        text = self._text(node, parts, unit)
        self.edits.replace(node, unit, text)

    def _text(self, node: ast.Name, parts: Parts, unit: Unit) -> str:
        """What is written in the place of a name."""
        parent = unit.parents[node]
        # return optimizer
        if isinstance(parent, ast.Return):
            function = function_around(parent, unit)
            if function not in self.transformations.given:
                return parts.flat
            transformation = self.transformations.at(node, unit)
            return f"{transformation}, {parts.flat}"
        # yield optimizer, or best = optimizer
        is_assigned = isinstance(parent, ast.Assign) and parent.value is node
        if is_assigned or isinstance(parent, ast.Yield):
            return parts.flat
        # jax.lax.scan(step, optimizer, batches), or optimizers = (optimizer, other)
        if self.draft.is_inside(node, unit):
            return parts.nested
        where = unit.location(node.lineno)
        raise Unproven("it is handed to something else at {}", where)

    def _spread_argument(self, node: ast.Name, parts: Parts, unit: Unit) -> None:
        """Give the parts as arguments of their own."""
        for interface, argument in self.interfaces.arguments[node]:
            call, word = argument.call, argument.keyword
            keywords = ("",) * len(parts.names)
            # train_step(optimizer=g_optimizer): by the names of the parameters' own parts
            for variable in interface.split:
                if word is not None and variable.name == word.arg:
                    keywords = self.parts[variable].names
                    break
            index = values_of(call).index(node)
            several = tuple(zip(keywords, parts.names, strict=True))
            change = ChangeArguments(unit.span(call), spread=((index, several),))
            self.edits.put(call, unit, change)

    def _returned_element(
        self,
        node: ast.Name,
        parent: ast.Tuple,
        parts: Parts,
        unit: Unit,
    ) -> None:
        """An element of a returned tuple: several elements, or a tuple within the tuple."""
        statement = unit.parents[parent]
        function = function_around(node, unit)
        flat = self.interfaces.of(function).flat
        is_written = flat and statement in self.rewritten
        if is_written or statement in self.taken:
            where = unit.location(node.lineno)
            raise Unproven("two optimizers are returned at {}", where)
        # return (params, opt_state), loss
        if not flat:
            self.edits.replace(node, unit, parts.nested)
            return
        # return params, opt_state, loss
        if function not in self.transformations.given:
            self.edits.spread(node, unit, parts.names)
            return
        transformation = self.transformations.at(node, unit)
        first = parent.elts[0]
        # return tx, params, opt_state, loss
        if node is first:
            self.edits.spread(node, unit, (transformation, *parts.names))
            return
        # return tx, model, params, opt_state
        self.edits.spread(node, unit, parts.names)
        self.edits.spread(first, unit, (transformation, "{it}"))

    def store(self, store: ast.Name, variable: Variable) -> None:
        """A variable that an optimizer is assigned to."""
        unit, parts = variable.unit, self.parts[variable]
        outer: ast.AST = store
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        if parent in self.rewritten:
            return
        value: ast.expr | None = None
        name: str | None = None
        if isinstance(parent, ast.Assign):
            value = parent.value
            name = self.transformations.received.get(value)
        is_element = unit.parents[store] is outer
        # optimizer = create_optimizer(params)
        if outer is store:
            text = f"{name}, {parts.flat}" if name else parts.flat
            self.edits.replace(store, unit, text)
        # optimizer, loss = train_step(optimizer, batch)
        elif value is not None and is_element and self.interfaces.is_flat(value):
            is_first = isinstance(outer, ast.Tuple) and store is outer.elts[0]
            ahead = (name,) if is_first and name else ()
            self.edits.spread(store, unit, ahead + parts.names)
        # (optimizer, loss), rng = …
        else:
            self.edits.replace(store, unit, parts.nested)

    def receive(self, call: ast.expr, name: str) -> None:
        """Assign the transformation where a tuple is unpacked that begins with something else.

        That is `model, optimizer = create(rng)`; elsewhere it goes with the optimizer.
        """
        group = self.group
        calls = group.facts.flow.reading.calls
        unit = next(unit for unit, one in calls if one is call)
        statement = statement_of(unit, call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Tuple):
            return
        first = target.elts[0]
        # optimizer, loss = create(rng), where `store` has done so
        if isinstance(first, ast.Name) and group.target(first, call) in group.variables:
            return
        self.edits.spread(first, unit, (name, "{it}"))
