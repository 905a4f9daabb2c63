"""The statements with calls that give an optimizer: assignments, returns, and calls that stay as they are."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Variable
from codemods.functional.draft import Draft, Lines
from codemods.functional.making import Making
from codemods.functional.parts import Parts
from codemods.functional.places import function_around
from codemods.idioms import Unproven
from codemods.rewriting.edits import ReplaceStatement
from codemods.sources.modules import Unit


class Statements:
    """Rewrites the statements around calls."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.making = Making(draft)

    def call(self, node: ast.Call, unit: Unit) -> None:
        if node in self.draft.done:
            return
        parent = unit.parents[node]
        outer = unit.parents[parent] if isinstance(parent, ast.Tuple) else parent
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            self._assigned(
                parent,
                node,
                unit,
                self.draft.parts[self.draft.group.target(parent.targets[0], node)],
            )
        elif isinstance(outer, ast.Return):
            self._returned(outer, node, unit)
        elif self._stays(node, unit) and (
            isinstance(parent, ast.Lambda | ast.Expr) or self.draft.is_held(node, unit)
        ):
            return
        elif not self._is_argument(node, unit):
            raise Unproven(
                f"it is made or changed within something else at {unit.place(node.lineno)}"
            )

    def _stays(self, node: ast.Call, unit: Unit) -> bool:
        """Whether a call stays as it is but for its arguments, and gives the parts as a tuple."""
        if self.draft.is_maker(node) or self.draft.inner(node):
            return False
        transformations = self.draft.transformations
        is_handed_on = (
            node not in transformations.received or unit.parents[node] in transformations.given
        )
        return is_handed_on and self.draft.is_known(node, unit)

    def _is_argument(self, node: ast.Call, unit: Unit) -> bool:
        """Whether this is an argument of another call that gives an optimizer, which is written with it."""
        parent = unit.parents[node]
        outer = unit.parents[parent] if isinstance(parent, ast.keyword) else parent
        is_call = isinstance(outer, ast.Call) and outer in self.draft.group.expressions
        return isinstance(outer, ast.Call) and is_call and self.draft.is_known(outer, unit)

    def _assigned(self, statement: ast.Assign, node: ast.Call, unit: Unit, parts: Parts) -> None:
        """`optimizer = …`."""
        self.draft.is_known(node, unit)
        if not self.draft.is_maker(node) and not self.draft.inner(node):
            return  # the names before it and within it change
        lines = Lines()
        self.making.lines(node, unit, parts, lines)
        self._replace(statement, unit, lines, node)

    def _returned(self, statement: ast.Return, node: ast.Call, unit: Unit) -> None:
        """`return …`, perhaps with other things beside."""
        function = function_around(statement, unit)
        gives = function in self.draft.transformations.given
        self.draft.is_known(node, unit)
        plain = not self.draft.is_maker(node) and not self.draft.inner(node)
        if (
            plain
            and statement.value is node
            and gives == (node in self.draft.transformations.received)
        ):
            return
        if statement in self.draft.rewritten:
            raise Unproven(f"two optimizers are returned at {unit.place(statement.lineno)}")
        lines = Lines()
        elements = statement.value.elts if isinstance(statement.value, ast.Tuple) else [node]
        dataflow = self.draft.group.facts.dataflow
        if not all(
            dataflow.may_swap(element, node) for element in elements[: elements.index(node)]
        ):
            raise Unproven(f"the order of what {unit.place(statement.lineno)} computes matters")
        names = self.making.in_place(node, lines)
        if names is None:
            parts = self._parts_at_return(statement, node, unit)
            self.making.lines(node, unit, parts, lines)
            names = parts.names
        interface = self.draft.interfaces.of(function)
        given = names if interface.flat or interface.gives_it_alone else (f"({', '.join(names)})",)
        said = [
            name
            for one in elements
            for name in (given if one is node else (lines.hole(one, unit),))
        ]
        if gives:
            said.insert(0, self.draft.transformations.at(node, unit))
        lines.templates.append(f"return {', '.join(said)}")
        self._replace(statement, unit, lines, node)

    def _parts_at_return(self, statement: ast.Return, node: ast.Call, unit: Unit) -> Parts:
        """The names for what is returned: those of the optimizer that took a step, if nothing else asks for it here."""
        scope = self.draft.group.facts.scope(node).function
        use = self.draft.group.by_call.get(node)
        variable = self.draft.origins.variable(use.owner) if use is not None else None
        if (
            variable is not None
            and variable.scope is scope
            and use is not None
            and use.kind != "definition.create"
        ):
            beside = {*ast.walk(statement)} - {*ast.walk(node)}
            if beside.isdisjoint(self.draft.origins.loads(variable)):
                return self.draft.parts[variable]
            return self.draft.named(Variable(scope, f"new_{variable.name}"))
        return self.draft.named(Variable(scope, "optimizer"))

    def _replace(self, statement: ast.stmt, unit: Unit, lines: Lines, node: ast.expr) -> None:
        if any(
            statement in others
            for others in (self.draft.edits, self.draft.rewritten, self.draft.taken)
        ):
            raise Unproven(f"another change is made at {unit.place(statement.lineno)}")
        edit = ReplaceStatement(
            unit.span(statement), tuple(lines.templates), tuple(lines.holes), tuple(lines.raw)
        )
        self.draft.rewritten[statement] = edit
        within = set(ast.walk(node))
        uses = [
            use
            for call, use in self.draft.group.by_call.items()
            if call in within and self.draft.is_maker(call)
        ]
        for use in uses:
            self.draft.outcomes[use.node] = edit
        if not uses:
            self.draft.edits.put(statement, unit, edit)
