"""Where variables are set and read, and which of the settings may be the one that a read finds."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

from codemods.dataflow.effects import Variable
from codemods.dataflow.program import Program
from codemods.inference.control_flow import ENTRY, Loop
from codemods.inference.reading import FunctionNode
from codemods.sources.bindings import Comprehension
from codemods.sources.modules import Unit

LOOPS = Loop | Comprehension


@dataclass(frozen=True)
class Path:
    """`variable.first.second`, by the variable that it starts from."""

    root: Variable
    attributes: tuple[str, ...]


Stores = dict[tuple[ast.AST, str], list[ast.AST]]
"""What sets each variable, by the node of its scope and its name."""


class Definitions:
    """Follows values backwards, as far as only one way leads."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.flow = program.flow
        self._stores: dict[Unit, Stores] = {}

    def variable(self, node: ast.AST | None) -> Variable | None:
        """The variable that a name means where it is read; None for a builtin, and for no name."""
        return self.meant(node, node) if isinstance(node, ast.Name) else None

    def meant(self, name: ast.Name, beside: ast.expr) -> Variable | None:
        """The variable that a name would mean where another expression is."""
        scope = self.flow.reading.scopes.get(beside)
        bound = None if scope is None else scope.binding(name.id)
        return None if bound is None else Variable(bound, name.id)

    def stores(self, variable: Variable | None) -> list[ast.AST]:
        """All that sets a variable: names, parameters, definitions, imports.

        A `global` or `nonlocal` counts as one, too.
        """
        if variable is None:
            return []
        unit = variable.unit
        if unit not in self._stores:
            self._stores[unit] = _stores_of(unit)
        key = (variable.scope.node, variable.name)
        return self._stores[unit].get(key, [])

    def loads(self, variable: Variable | None) -> list[ast.Name]:
        """Where a variable is read in its own file."""
        if variable is None:
            return []
        reads = self.flow.engine.index.reads
        return reads.get((variable.scope, variable.name), [])

    def chain(self, node: ast.expr) -> list[ast.expr]:
        """A path of attributes, and those behind it by plain assignments of local variables.

        After `state = trainer.state`, those of `state.target` are itself and `trainer.state`.
        """
        found = [node]
        while True:
            # Down to the name that a path starts from.
            while isinstance(node, ast.Attribute):
                node = node.value
            value = self.local_value(node)
            if not isinstance(value, ast.Name | ast.Attribute):
                return found
            found.append(value)
            node = value

    def reaching(self, name: ast.Name, variable: Variable) -> list[ast.AST] | None:
        """The settings of which a read may find the value; None if some may be elsewhere.

        A parameter is set where its function begins.
        """
        unit = variable.unit
        site = self.program.site(unit, name)
        scope = self.program.scope(unit, name)
        if site is None or site.owner is not scope.function.node:
            return None
        owner = site.owner
        order = self.program.order(owner)
        numbers: dict[int, ast.AST] = {}
        for store in self.stores(variable):
            setter = store
            # An import sets its names at the end of the statement.
            if isinstance(store, ast.alias):
                setter = unit.parents[store]
            number = ENTRY if isinstance(store, ast.arg) else order.at.get(setter)
            # nonlocal rate: another function sets it, too
            if number is None or variable.scope.node is not owner:
                return None
            numbers[number] = store
        return [numbers[number] for number in order.last(site.number, numbers)]

    # The one value of a variable

    def setting(self, variable: Variable | None) -> ast.stmt | None:
        """The statement that sets a variable, if no other does, and it does nothing else."""
        if variable is None:
            return None
        match self.stores(variable):
            case [ast.FunctionDef() as function]:
                return function
            # rate = 0.1, but not `first, second = rates`
            case [ast.Name() as name]:
                match variable.unit.parents.get(name):
                    case (
                        ast.Assign(targets=[_])
                        | ast.AnnAssign(value=ast.expr()) as statement
                    ):
                        return statement
        return None

    def is_set_once(self, variable: Variable) -> bool:
        """Whether one assignment or definition sets a variable, perhaps with others."""
        match self.stores(variable):
            # first, second = 0.1, 0.2
            case [ast.Name() as name]:
                statement = variable.unit.parents.get(name)
                while isinstance(statement, ast.Tuple | ast.List):
                    statement = variable.unit.parents.get(statement)
                return isinstance(statement, ast.Assign | ast.AnnAssign)
        return self.setting(variable) is not None

    def value(self, variable: Variable | None) -> ast.expr | None:
        """The only value that a variable ever has, if an assignment gives it."""
        statement = self.setting(variable)
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            return statement.value
        return None

    def values(self, variable: Variable) -> list[ast.expr | None]:
        """What each assignment gives a variable.

        None for an assignment that does more, and for all else that sets it, but for `del`.
        """
        found: list[ast.expr | None] = []
        for store in self.stores(variable):
            statement = variable.unit.parents.get(store)
            match store, statement:
                # del rate
                case ast.Name(ctx=ast.Del()), _:
                    continue
                # rate = 0.1
                case _, ast.Assign(targets=[_], value=value):
                    found.append(value)
                case _:
                    found.append(None)
        return found

    def values_of(self, name: ast.Name) -> list[ast.expr | None]:
        """The same for what a name means where it is read; nothing for a builtin."""
        variable = self.variable(name)
        return [] if variable is None else self.values(variable)

    def local_value(self, node: ast.AST) -> ast.expr | None:
        """What the only assignment to a local variable gives it."""
        variable = self.variable(node)
        if variable is None or not isinstance(variable.scope.node, FunctionNode):
            return None
        return self.value(variable)

    def expanded(self, node: ast.expr) -> ast.expr:
        """What the only assignment to a local variable gives it, as far back as that leads."""
        while (value := self.local_value(node)) is not None:
            node = value
        return node

    def path(self, node: ast.expr) -> Path | None:
        """The path that an expression is, as far back as plain assignments lead.

        After `state = trainer.state`, `state.target` is the path `trainer.state.target`.
        """
        match node:
            case ast.Name():
                # state = trainer.state
                value = self.local_value(node)
                further = self.path(value) if value is not None else None
                if further is not None:
                    return further
                variable = self.variable(node)
                return None if variable is None else Path(variable, ())
            case ast.Attribute(value=value, attr=attribute):
                base = self.path(value)
                if base is not None:
                    return Path(base.root, (*base.attributes, attribute))
        return None

    def parameter(self, variable: Variable | None) -> FunctionNode | None:
        """The function of which a variable is a parameter that is never set to anything else."""
        if variable is None:
            return None
        match self.stores(variable):
            case [ast.arg() as parameter]:
                function = variable.scope.node
                if not isinstance(function, FunctionNode):
                    return None
                # def step(*args, **options)
                several = (function.args.vararg, function.args.kwarg)
                return None if parameter in several else function
        return None


def function_of(unit: Unit, node: ast.AST) -> FunctionNode | None:
    """The function that a node is in; None outside of all."""
    for outer in unit.ancestors(node):
        if isinstance(outer, FunctionNode):
            return outer
    return None


def _stores_of(unit: Unit) -> Stores:
    found: Stores = defaultdict(list)
    elsewhere: dict[str, list[ast.AST]] = defaultdict(list)
    for scope, bound in unit.bindings.items():
        for name, declared, node in bound:
            if declared:
                elsewhere[name].append(node)
            else:
                found[scope, name].append(node)
    # A `nonlocal` or `global` may be about any variable of its name.
    for (_, name), nodes in found.items():
        nodes.extend(elsewhere.get(name, ()))
    return found
