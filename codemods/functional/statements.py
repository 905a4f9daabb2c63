"""The statements with calls that give an optimizer: assignments, returns, and calls that stay."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.origins import Variable
from codemods.functional.draft import Draft, Lines
from codemods.functional.group import function_around
from codemods.functional.making import Making
from codemods.functional.parts import Parts
from codemods.idioms import Unproven
from codemods.model import Location
from codemods.rewriting.edits import ReplaceStatement
from codemods.sources.modules import Unit


class Statements:
    """Rewrites the statements around calls."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.group = draft.group
        self.interfaces = draft.interfaces
        self.transformations = draft.transformations
        self.edits = draft.edits
        self.parts = draft.parts
        self.rewritten = draft.rewritten
        self.taken = draft.taken
        self.done = draft.done
        self.outcomes = draft.outcomes
        self.origins = draft.origins
        self.making = Making(draft)

    def call(self, node: ast.Call, unit: Unit) -> None:
        """Rewrite the statement around a call that gives an optimizer."""
        if node in self.done:
            return
        parent = unit.parents[node]
        outer = unit.parents[parent] if isinstance(parent, ast.Tuple) else parent
        # optimizer = create_optimizer(params)
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            target = self.group.target(parent.targets[0], node)
            self._assigned(parent, node, unit, self.parts[target])
            return
        # return create_optimizer(params), or return model, create_optimizer(params)
        if isinstance(outer, ast.Return):
            self._returned(outer, node, unit)
            return
        if self._stays(node, unit) and self._is_whole(node, unit):
            return
        if not self._is_argument(node, unit):
            where = unit.location(node.lineno)
            raise Unproven("it is made or changed within something else at {}", where)

    def _is_whole(self, node: ast.Call, unit: Unit) -> bool:
        """Whether this is all that a lambda or statement has, or goes to what takes any pytree.

        That is `lambda params: create_optimizer(params)`, or `jax.lax.scan(step, create(), data)`.
        """
        is_all = isinstance(unit.parents[node], ast.Lambda | ast.Expr)
        return is_all or self.draft.is_inside(node, unit)

    def _stays(self, node: ast.Call, unit: Unit) -> bool:
        """Whether a call stays as it is but for its arguments, and gives the parts as a tuple."""
        if self.draft.is_maker(node) or self.draft.inner(node):
            return False
        transformations = self.transformations
        gives_tx = node in transformations.received
        if gives_tx and unit.parents[node] not in transformations.given:
            return False
        return self.draft.is_known(node, unit)

    def _is_argument(self, node: ast.Call, unit: Unit) -> bool:
        """Whether this is an argument of another call that gives an optimizer, written with it."""
        parent = unit.parents[node]
        outer = unit.parents[parent] if isinstance(parent, ast.keyword) else parent
        # train_step(create_optimizer(params), batch)
        if not isinstance(outer, ast.Call) or outer not in self.group.expressions:
            return False
        return self.draft.is_known(outer, unit)

    def _assigned(
        self,
        statement: ast.Assign,
        node: ast.Call,
        unit: Unit,
        parts: Parts,
    ) -> None:
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
        gives = function in self.transformations.given
        self.draft.is_known(node, unit)
        plain = not self.draft.is_maker(node) and not self.draft.inner(node)
        gets = node in self.transformations.received
        value = statement.value
        # return create_optimizer(params), which returns what it gets
        if plain and value is node and gives == gets:
            return
        where = unit.location(statement.lineno)
        if statement in self.rewritten:
            raise Unproven("two optimizers are returned at {}", where)
        lines = Lines()
        elements = value.elts if isinstance(value, ast.Tuple) else [node]
        self._refuse_order(elements, node, where)
        names = self.making.in_place(node, lines)
        if names is None:
            parts = self._parts_at_return(statement, node, unit)
            self.making.lines(node, unit, parts, lines)
            names = parts.names
        interface = self.interfaces.of(function)
        is_flat = interface.flat or interface.gives_it_alone
        together = ", ".join(names)
        returned: list[str] = []
        for element in elements:
            if element is not node:
                returned.append(lines.hole(element, unit))
            # return params, opt_state, loss
            elif is_flat:
                returned += names
            # return (params, opt_state), loss
            else:
                returned.append(f"({together})")
        # return tx, params, opt_state
        if gives:
            returned.insert(0, self.transformations.at(node, unit))
        values = ", ".join(returned)
        lines.templates.append(f"return {values}")
        self._replace(statement, unit, lines, node)

    def _refuse_order(
        self,
        elements: Sequence[ast.expr],
        node: ast.Call,
        where: Location,
    ) -> None:
        """Refuse elements ahead of a call that cannot change places with it.

        The call is evaluated ahead of them, in a statement of its own.
        """
        may_swap = self.group.facts.dataflow.may_swap
        ahead = elements[: elements.index(node)]
        if not all(may_swap(element, node) for element in ahead):
            raise Unproven("the order of what {} computes matters", where)

    def _parts_at_return(
        self,
        statement: ast.Return,
        node: ast.Call,
        unit: Unit,
    ) -> Parts:
        """The names for what is returned.

        They are those of the optimizer that took a step, if the statement has no other use of it.
        """
        scope = self.group.facts.scope(node).function
        use = self.group.by_call.get(node)
        if use is None or use.kind == "definition.create":
            return self.draft.named(Variable(scope, "optimizer"))
        variable = self.origins.variable(use.owner)
        if variable is None or variable.scope is not scope:
            return self.draft.named(Variable(scope, "optimizer"))
        beside = {*ast.walk(statement)} - {*ast.walk(node)}
        if beside.isdisjoint(self.origins.loads(variable)):
            return self.parts[variable]
        # return optimizer.apply_gradient(grads), optimizer.target
        return self.draft.named(Variable(scope, f"new_{variable.name}"))

    def _replace(
        self,
        statement: ast.stmt,
        unit: Unit,
        lines: Lines,
        node: ast.expr,
    ) -> None:
        """Put lines in the place of a statement, as the outcome of the uses within a call."""
        changed = (self.edits, self.rewritten, self.taken)
        if any(statement in others for others in changed):
            where = unit.location(statement.lineno)
            raise Unproven("another change is made at {}", where)
        edit = ReplaceStatement(
            unit.span(statement),
            tuple(lines.templates),
            tuple(lines.holes),
            tuple(lines.raw),
            supports=lines.supports,
        )
        self.rewritten[statement] = edit
        within = set(ast.walk(node))
        is_outcome = False
        # the uses within it are accounted for by the same edit
        for call, use in self.group.by_call.items():
            if call in within and self.draft.is_maker(call):
                self.outcomes[use.node] = edit
                is_outcome = True
        if not is_outcome:
            self.edits.put(statement, unit, edit)
