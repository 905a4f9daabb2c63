"""Where variables are set and read, and which of the settings may be the one that a read finds."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.dataflow.control_flow import ENTRY, FunctionNode
from codemods.dataflow.effects import Variable
from codemods.dataflow.program import Program
from codemods.inference.objects import Function
from codemods.inference.scopes import SCOPES
from codemods.sources.bindings import Comprehension
from codemods.sources.modules import Unit

LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(frozen=True)
class Path:
    """`variable.first.second`, by the variable that it starts from."""

    root: Variable
    attributes: tuple[str, ...]


Stores = dict[tuple[ast.AST, str], list[ast.AST]]
"""What sets each variable, by the node of its scope and its name."""

Loads = dict[Variable, list[ast.Name]]


class Definitions:
    """Follows values backwards, as far as only one way leads."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._stores: dict[Unit, Stores] = {}
        self._loads: dict[Unit, Loads] = {}

    def variable(self, node: ast.AST | None) -> Variable | None:
        """The variable that a name means where it is read; None for a builtin, and for no name."""
        if not isinstance(node, ast.Name):
            return None
        return self._meant(node, node)

    def _meant(self, name: ast.Name, beside: ast.expr) -> Variable | None:
        """The variable that a name would mean where another expression is."""
        scope = self.program.flow.reading.scopes.get(beside)
        if scope is None:
            return None
        bound = scope.binding(name.id)
        if bound is None:
            return None
        return Variable(bound, name.id)

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
        unit = variable.unit
        if unit not in self._loads:
            self._loads[unit] = self._loads_of(unit)
        return self._loads[unit].get(variable, [])

    def _loads_of(self, unit: Unit) -> Loads:
        found: Loads = defaultdict(list)
        for node in unit.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    scope = self.program.scope(unit, node)
                    bound = scope.binding(name)
                    if bound is not None:
                        variable = Variable(bound, name)
                        found[variable].append(node)
        return found

    def loads_of(self, name: ast.Name, beside: ast.expr) -> list[ast.Name]:
        """Where the variable is read that a name means where an expression is."""
        return self.loads(self._meant(name, beside))

    def stores_of(self, name: ast.Name, beside: ast.expr) -> list[ast.AST]:
        """What sets the variable that a name means where an expression is."""
        return self.stores(self._meant(name, beside))

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
        if site is None:
            return None
        owner = site.owner
        if owner is not scope.function.node:
            return None
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
        # Back from the read, on each way to the last setting.
        found: dict[ast.AST, None] = {}
        seen = {site.number}
        pending = list(order.before[site.number])
        while pending:
            number = pending.pop()
            if number in numbers:
                found[numbers[number]] = None
            elif number not in seen:
                seen.add(number)
                pending += order.before[number]
        return list(found)

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

    def only_value(self, node: ast.AST) -> ast.expr | None:
        """What the only assignment to a variable gives it, wherever the variable is."""
        return self.value(self.variable(node))

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

    @staticmethod
    def returned(function: Function) -> list[ast.expr]:
        """The expressions that a function returns."""
        if isinstance(function.node, ast.Lambda):
            return [function.node.body]
        found: list[ast.expr] = []
        for node in ast.walk(function.node):
            match node:
                case ast.Return(value=ast.expr() as value):
                    # It may be one of a function within.
                    if function_of(function.unit, node) is function.node:
                        found.append(value)
        return found


def function_of(unit: Unit, node: ast.AST) -> FunctionNode | None:
    """The function that a node is in; None outside of all."""
    for outer in unit.ancestors(node):
        if isinstance(outer, FunctionNode):
            return outer
    return None


def _stores_of(unit: Unit) -> Stores:
    found: Stores = defaultdict(list)
    elsewhere: dict[str, list[ast.AST]] = defaultdict(list)
    for node in unit.nodes:
        for name in names_set(node):
            owner = _owner(unit, node)
            found[owner, name].append(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                elsewhere[name].append(node)
    # A `nonlocal` or `global` may be about any variable of its name.
    for (_, name), nodes in found.items():
        nodes.extend(elsewhere.get(name, ()))
    return found


def names_set(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
        ):
            yield name
        # except ValueError as error, case [first, *rest]
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        # `import package.module` binds `package`.
        case ast.alias(name=name, asname=bound):
            yield bound or name.partition(".")[0]


def _owner(unit: Unit, node: ast.AST) -> ast.AST:
    """The scope in which a node binds a name: for `:=`, none of a comprehension."""
    parent = unit.parents.get(node)
    # [(last := x) for x in xs]
    is_walrus = isinstance(parent, ast.NamedExpr) and parent.target is node
    for outer in unit.ancestors(node):
        if is_walrus and isinstance(outer, Comprehension):
            continue
        if isinstance(outer, (*SCOPES, ast.Module)):
            return outer
    return unit.tree
