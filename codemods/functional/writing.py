"""What is written in the place of an optimizer: its parts, and functions of optax."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.analysis.origins import Variable, function_of
from codemods.analysis.uses import Use
from codemods.functional.group import Group, no_counterpart
from codemods.functional.interfaces import Interface, Interfaces
from codemods.functional.names import UPDATES, Names, Parts
from codemods.functional.transformations import Transformations
from codemods.idioms.order import Edits
from codemods.idioms.overrides import Overrides
from codemods.inference.binding import arguments_of, values_of
from codemods.optimizers.methods import CREATE
from codemods.rewriting.edits import (
    ChangeArguments,
    ChangeParameters,
    Edit,
    Replace,
    ReplaceStatement,
)
from codemods.sources.modules import Span, Unit


@dataclass
class Lines:
    """Templates of statements in the place of one, and the pieces of source that they have."""

    unit: Unit
    templates: list[str] = field(default_factory=list)
    holes: list[tuple[str, Span]] = field(default_factory=list)

    def hole(self, node: ast.expr) -> str:
        """A hole for a piece of source."""
        name = f"piece_{len(self.holes)}"
        self.holes.append((name, self.unit.span(node)))
        return f"{{{name}}}"

    def instead_of(self, statement: ast.stmt) -> ReplaceStatement:
        """The edit that puts them in the place of a statement."""
        span = self.unit.span(statement)
        return ReplaceStatement(span, tuple(self.templates), tuple(self.holes))


class Draft:
    """All changes for a group: `outcomes` at uses of the optimizers, and `edits` elsewhere."""

    def __init__(self, group: Group, names: Names, edits: Edits) -> None:
        self.group = group
        self.origins = group.origins
        self.interfaces = Interfaces(group)
        self.names = names
        self.edits = edits
        self.parts = {variable: names.parts(variable) for variable in group.variables}
        self.transformations = Transformations(group, self.interfaces, names, edits)
        self.outcomes: dict[ast.AST, Edit] = {}
        self.removed: set[ast.AST] = set()
        self._done: set[ast.AST] = set()
        self._updates: dict[ast.AST, str] = {}

    def write(self) -> None:
        """Write all changes for a group; whatever has no counterpart in parts raises `Unproven`."""
        group = self.group
        # the transformation has to get to each step, and goes through other functions for that
        for use in group.uses:
            if use.kind == "optimizer.apply_gradient":
                self.transformations.at(use.node, use.unit)
            elif use.kind == "optimizer.target":
                params = self._of(use.owner, use).params
                self.outcomes[use.node] = Replace(use.span, params)
        for node, unit in group.expressions.items():
            if isinstance(node, ast.Call):
                self._call(node, unit)
        # a call has dealt with the names that its statement was rewritten with
        for node, unit in group.expressions.items():
            if isinstance(node, ast.Name) and node not in self._done:
                self._name(node, unit)
        for variable in group.variables:
            for store in self.origins.stores(variable):
                if isinstance(store, ast.Name):
                    self._store(store, variable)
        for interface in self.interfaces.found.values():
            self._signature(interface)

    def _of(self, owner: ast.expr, use: Use) -> Parts:
        """The parts of the optimizer of which something is used."""
        variable = self.origins.variable(owner)
        # optimizers[0].apply_gradient(grads)
        if not isinstance(owner, ast.Name) or variable not in self.parts:
            raise no_counterpart(use.node, use.unit)
        self._done.add(owner)
        return self.parts[variable]

    # Calls that give an optimizer

    def _call(self, node: ast.Call, unit: Unit) -> None:
        """Rewrite the statement of a call that makes an optimizer or steps; others may stay."""
        use, parent = self.group.makers.get(node), unit.parents[node]
        around = parent if isinstance(parent, ast.Tuple) else node
        statement = unit.parents[around]
        # optimizer = optimizer.apply_gradient(grads)
        if use is not None and isinstance(parent, ast.Assign):
            [target] = parent.targets
            assert isinstance(target, ast.Name)
            lines = self._made(use, node, self.parts[self.group.target(target, node)])
            self._done.add(parent)
            self.outcomes[use.node] = lines.instead_of(parent)
        # return optimizer.apply_gradient(grads), loss
        elif use is not None and isinstance(statement, ast.Return):
            self.outcomes[use.node] = self._returned(use, node, around, statement)
        elif use is not None or not self._stays(node, parent, unit):
            raise no_counterpart(node, unit)

    def _stays(self, node: ast.Call, parent: ast.AST, unit: Unit) -> bool:
        """Whether a call stays as it is but for its arguments, and gives the parts as a tuple."""
        functions = self.group.functions(node)
        is_known = functions and all(one in self.interfaces.found for one in functions)
        if not is_known and not self.group.is_loop(node):
            return False
        # return create_optimizer(params), which returns its transformation, too
        if isinstance(parent, ast.Return):
            gives = function_of(unit, node) in self.transformations.given
            return gives == (node in self.transformations.received)
        return isinstance(parent, ast.Assign | ast.Expr)

    def _returned(
        self, use: Use, node: ast.Call, around: ast.expr, statement: ast.Return
    ) -> Edit:
        """`return optimizer.apply_gradient(grads)`, perhaps with other things beside."""
        unit, scope = use.unit, self.group.facts.scope(node).function
        variable = self.origins.variable(use.owner)
        elements = around.elts if isinstance(around, ast.Tuple) else [node]
        if use.kind == "definition.create":
            # return definition.create(params)
            params = next(
                (one.id for one in values_of(node) if isinstance(one, ast.Name)), ""
            )
            parts = self.names.parts(Variable(scope, "optimizer"), params)
        elif variable is None or variable.scope is not scope:
            raise no_counterpart(node, unit)
        else:
            parts = self.parts[variable]
        # return optimizer.apply_gradient(grads), optimizer.target
        beside = {*ast.walk(statement)} - {*ast.walk(node)}
        is_read = not beside.isdisjoint(self.origins.loads(variable))
        # the call is evaluated ahead of the elements before it, in a statement of its own
        may_swap = self.group.facts.dataflow.may_swap
        ahead = elements[: elements.index(node)]
        may_move = all(may_swap(element, node) for element in ahead)
        # return g.apply_gradient(x), d.apply_gradient(y)
        is_second = (statement, "return") in self.names.given
        if is_read or is_second or not may_move:
            raise no_counterpart(node, unit)
        self.names.given.add((statement, "return"))
        lines = self._made(use, node, parts)
        text = self._text(node, around, parts, unit)
        texts = [text if one is node else lines.hole(one) for one in elements]
        lines.templates.append(f"return {', '.join(texts)}")
        return lines.instead_of(statement)

    def _text(self, node: ast.expr, around: ast.expr, parts: Parts, unit: Unit) -> str:
        """What a function returns for an optimizer, alone or within a tuple."""
        function = function_of(unit, node)
        if not isinstance(function, ast.FunctionDef):
            raise no_counterpart(node, unit)
        interface = self.interfaces.of(function, unit)
        if around is not node and not interface.is_flat:
            return f"({parts})"
        if function not in self.transformations.given:
            return str(parts)
        return f"{self.transformations.at(node, unit)}, {parts}"

    # Statements that set the parts

    def _made(self, use: Use, call: ast.Call, new: Parts) -> Lines:
        """The statements that set parts to what a call makes."""
        lines = Lines(use.unit)
        if use.kind == "definition.create":
            self._create(use, call, new, lines)
        else:
            self._step(use, call, new, lines)
        return lines

    def _create(self, use: Use, call: ast.Call, parts: Parts, lines: Lines) -> None:
        """`optimizer = definition.create(params)`."""
        given = arguments_of(CREATE, call) or {}
        if given.keys() != {"target"} or not isinstance(use.node, ast.Attribute):
            raise no_counterpart(use.node, use.unit)
        definition, value = lines.hole(use.node.value), given["target"]
        # tx = optax.adam(1e-3)
        if name := self.transformations.made.get(call):
            lines.templates.append(f"{name} = {definition}")
            definition = name
        # definition.create(params) needs no `params = params`
        if not isinstance(value, ast.Name) or value.id != parts.params:
            lines.templates.append(f"{parts.params} = {lines.hole(value)}")
        made = f"{parts.opt_state} = {definition}.init({parts.params})"
        lines.templates.append(made)

    def _step(self, use: Use, call: ast.Call, new: Parts, lines: Lines) -> None:
        """`optimizer = optimizer.apply_gradient(grads)`."""
        old = self._of(use.owner, use)
        gradients = self.group.stepping.gradients(use)
        overrides = self.group.results[Overrides]
        # optimizer.apply_gradient(grads, learning_rate=rate)
        is_given_more = overrides.of(use) or self.group.stepping.given_decay(use)
        if gradients is None or is_given_more or overrides.keeps_rate(use):
            raise no_counterpart(use.node, use.unit)
        scope = self.group.facts.scope(call).function
        if scope.node not in self._updates:
            here = Variable(scope, "optimizer")
            name = self.names.beside(here, UPDATES)
            self._updates[scope.node] = name
        updates = self._updates[scope.node]
        tx = self.transformations.at(call, use.unit)
        given = f"{lines.hole(gradients)}, {old.opt_state}, {old.params}"
        lines.templates += (
            f"{updates}, {new.opt_state} = {tx}.update({given})",
            f"{new.params} = {{optax}}.apply_updates({old.params}, {updates})",
        )

    # Names

    def _name(self, node: ast.Name, unit: Unit) -> None:
        """An optimizer that is passed on by its name."""
        variable, parent = self.origins.variable(node), unit.parents[node]
        assert variable is not None
        parts, outer = self.parts[variable], unit.parents[parent]
        # train_step(optimizer, batch)
        if node in self.interfaces.arguments:
            self._argument(node, parts)
        # return optimizer, or return optimizer, loss
        elif isinstance(parent, ast.Return) or (
            isinstance(parent, ast.Tuple) and isinstance(outer, ast.Return)
        ):
            around = node if isinstance(parent, ast.Return) else parent
            self.edits.replace(node, unit, self._text(node, around, parts, unit))
        # yield optimizer, or best = optimizer
        elif isinstance(parent, ast.Yield | ast.Assign):
            self.edits.replace(node, unit, str(parts))
        # jax.lax.scan(step, optimizer, batches), or carry = (optimizer, other)
        elif isinstance(parent, ast.Tuple) or self.group.is_loop(parent):
            self.edits.replace(node, unit, f"({parts})")
        else:
            raise no_counterpart(node, unit)

    def _argument(self, node: ast.Name, parts: Parts) -> None:
        """Give the parts as arguments of their own."""
        for variable, argument in self.interfaces.arguments[node]:
            call, own = argument.call, Parts("", "")
            # train_step(optimizer=g_optimizer): by the names of the parameter's own parts
            if argument.keyword is not None:
                own = self.parts[variable]
            several = ((own.params, parts.params), (own.opt_state, parts.opt_state))
            spread = ((values_of(call).index(node), several),)
            change = ChangeArguments(argument.unit.span(call), spread=spread)
            self.edits.put(call, argument.unit, change)

    def _store(self, store: ast.Name, variable: Variable) -> None:
        """A variable that an optimizer is assigned to."""
        unit, parts = variable.unit, self.parts[variable]
        around = outer = unit.parents[store]
        while isinstance(outer, ast.Tuple):
            outer = unit.parents[outer]
        assert isinstance(outer, ast.Assign)
        if outer in self._done:
            return
        is_flat = around in outer.targets and self.interfaces.is_flat_call(outer.value)
        text = str(parts) if around is outer or is_flat else f"({parts})"
        # optimizer = create_optimizer(params)
        name = self.transformations.received.get(outer.value)
        self.edits.replace(store, unit, f"{name}, {text}" if name else text)

    def _signature(self, interface: Interface) -> None:
        """Change the parameters of a function."""
        split = tuple(
            (one.name, (self.parts[one].params, self.parts[one].opt_state))
            for one in interface.split
        )
        # a carry of `jax.lax.scan` stays one parameter, and is unpacked in the first line
        unpacked = tuple(f"{self.parts[one]} = {one.name}" for one in interface.whole)
        if split or unpacked:
            node, unit = interface.node, interface.unit
            change = ChangeParameters(unit.span(node), split=split, unpacked=unpacked)
            self.edits.put(node, unit, change)
