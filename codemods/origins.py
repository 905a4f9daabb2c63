"""Where the value of a variable comes from: the statement that sets it, or the arguments of all calls that fill a parameter."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from codemods.facts import Facts
from codemods.flow.calls import CallSite
from codemods.flow.modules import Unit
from codemods.flow.objects import (
    Class,
    Derivative,
    External,
    Function,
    Method,
    Module,
    Object,
    Partial,
)
from codemods.flow.scopes import SCOPES, Scope

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BRANCHES = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.With, ast.AsyncWith, ast.Match)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Variable:
    """A name, and the scope that binds it."""

    scope: Scope
    name: str

    @property
    def unit(self) -> Unit:
        return self.scope.unit


@dataclass(frozen=True)
class Path:
    """`variable.first.second`, by the variable that it starts from."""

    root: Variable
    attributes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Argument:
    """What a call gives for a parameter: the call that writes it, which may be one of `functools.partial`, and its value there.

    `keyword` is None for an argument by position.
    """

    unit: Unit
    call: ast.Call
    value: ast.expr
    keyword: ast.keyword | None


@dataclass(frozen=True, eq=False)
class Binding:
    """A call of a function, and its arguments by parameter."""

    unit: Unit
    call: ast.Call
    given: dict[str, Argument]


class Origins:
    """Follows values backwards, as far as only one way leads."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._stores: dict[Unit, dict[tuple[ast.AST, str], list[ast.AST]]] = {}

    # Variables

    def variable(self, name: ast.Name) -> Variable | None:
        """What a name means where it is read; None for a builtin."""
        scope = self.facts.flow.reading.scopes.get(name)
        bound = scope.binding(name.id) if scope is not None else None
        return None if bound is None else Variable(bound, name.id)

    def stores(self, variable: Variable) -> list[ast.AST]:
        """All that sets a variable: names, parameters, definitions, imports. A `global` or `nonlocal` counts as one, too."""
        unit = variable.unit
        if unit not in self._stores:
            self._stores[unit] = _stores_of(unit)
        return self._stores[unit].get((variable.scope.node, variable.name), [])

    def loads(self, variable: Variable) -> list[ast.Name]:
        """Where a variable is read."""
        scopes = self.facts.flow.reading.scopes
        return [
            node
            for node in variable.unit.nodes
            if isinstance(node, ast.Name)
            and node.id == variable.name
            and isinstance(node.ctx, ast.Load)
            and (node not in scopes or scopes[node].binding(node.id) is variable.scope)
        ]

    def setting(self, variable: Variable) -> ast.stmt | None:
        """The statement that sets a variable, if it is the only one that does, and does nothing else."""
        stores = self.stores(variable)
        if len(stores) != 1:
            return None
        match stores[0]:
            case ast.FunctionDef() as function:
                return function
            case ast.Name() as name:
                statement = variable.unit.parents.get(name)
                if isinstance(statement, ast.Assign) and statement.targets == [name]:
                    return statement
                if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                    return statement
        return None

    def value(self, variable: Variable) -> ast.expr | None:
        """The only value that a variable ever has, if an assignment gives it."""
        statement = self.setting(variable)
        return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None

    def values(self, variable: Variable) -> list[ast.expr | None]:
        """What each assignment gives a variable; None for one that does more, and for all else that sets it, but for `del`."""
        found: list[ast.expr | None] = []
        for store in self.stores(variable):
            if isinstance(store, ast.Name) and isinstance(store.ctx, ast.Del):
                continue
            statement = variable.unit.parents.get(store)
            plain = isinstance(statement, ast.Assign) and statement.targets == [store]
            found.append(statement.value if plain and isinstance(statement, ast.Assign) else None)
        return found

    def local_value(self, name: ast.Name) -> ast.expr | None:
        """What the only assignment to a local variable gives it."""
        variable = self.variable(name)
        if variable is None or not isinstance(variable.scope.node, FunctionNode):
            return None
        return self.value(variable)

    def expanded(self, node: ast.expr) -> ast.expr:
        """What the only assignment to a local variable gives it, as far back as that leads."""
        while isinstance(node, ast.Name) and (value := self.local_value(node)) is not None:
            node = value
        return node

    def path(self, node: ast.expr) -> Path | None:
        """The path that an expression is, from as far back as plain assignments of local variables lead."""
        match node:
            case ast.Name():
                value = self.local_value(node)
                further = self.path(value) if value is not None else None
                if further is not None:
                    return further
                variable = self.variable(node)
                return None if variable is None else Path(variable, ())
            case ast.Attribute(value=value, attr=attribute):
                base = self.path(value)
                return None if base is None else Path(base.root, (*base.attributes, attribute))
        return None

    @staticmethod
    def returned(function: Function) -> list[ast.expr]:
        """The expressions that a function returns."""
        if isinstance(function.node, ast.Lambda):
            return [function.node.body]
        returns = [node for node in ast.walk(function.node) if isinstance(node, ast.Return) and node.value is not None]
        own = [node for node in returns if function_of(function.unit, node) is function.node]
        return [node.value for node in own if node.value is not None]

    def parameter(self, variable: Variable) -> FunctionNode | None:
        """The function of which a variable is a parameter that is never set to anything else."""
        stores = self.stores(variable)
        node = variable.scope.node
        if len(stores) == 1 and isinstance(stores[0], ast.arg) and isinstance(node, FunctionNode):
            extra = (node.args.vararg, node.args.kwarg)
            return None if stores[0] in extra else node
        return None

    # Calls

    def calls(self, function: FunctionNode) -> list[tuple[CallSite, int]]:
        """The calls that reach a function."""
        return self.facts.flow.entered[function]

    def bindings(self, function: FunctionNode) -> list[Binding] | None:
        """What each call of a function gives.

        None where that cannot be told: no call is in view, arguments are unpacked, or the function is handed to code of which it
        is not known what it gives.
        """
        calls = self.calls(function)
        if not calls or self._escapes(function):
            return None
        found: dict[tuple[ast.expr, ...], Binding] = {}
        for site, offset in calls:
            given = self._bound(function, site, offset)
            if given is None or not isinstance(site.node, ast.Call):
                return None
            binding = Binding(site.unit, site.node, given)
            found.setdefault((site.node, *(argument.value for argument in given.values())), binding)
        return list(found.values())

    def are_its_own(self, function: FunctionNode, bindings: Iterable[Binding]) -> bool:
        """Whether some calls of a function can be of no other, so that its parameters may change."""
        return all(self._called(call) == {function} for binding in bindings for call in self._calls_of(binding))

    @staticmethod
    def _calls_of(binding: Binding) -> list[ast.Call]:
        return [binding.call, *(argument.call for argument in binding.given.values())]

    def _called(self, call: ast.Call) -> set[ast.AST]:
        """The functions that a call, or one of `functools.partial`, may be of."""
        items = list(self.facts.objects(call.func))
        if any(isinstance(item, External) for item in items) and call.args:
            items = list(self.facts.objects(call.args[0]))
        return {node for item in items for node in self.functions_in(item)}

    @staticmethod
    def functions_in(item: Object) -> Iterator[ast.AST]:
        """The functions of the project that something is, behind partial applications and methods."""
        while isinstance(item, Partial | Derivative):
            item = item.function
        match item:
            case Function(node=node) | Method(function=Function(node=node)):
                yield node

    def references(self, function: ast.AST) -> list[tuple[Unit, ast.expr]]:
        """The names and attributes that may be a function, as it is or wrapped."""
        return self._references[function]

    def _bound(self, function: FunctionNode, site: CallSite, offset: int) -> dict[str, Argument] | None:
        """The arguments of a call, by parameter."""
        if not isinstance(site.node, ast.Call):
            return None
        calls = [*site.partials, site.node]
        positional: list[Argument] = []
        keywords: dict[str, Argument] = {}
        for call in calls:
            unit = self._unit_of(call, site)
            if any(isinstance(argument, ast.Starred) for argument in call.args):
                return None
            if any(word.arg is None for word in call.keywords):
                return None
            values = call.args if call is site.node else call.args[1:]
            positional += [Argument(unit, call, value, None) for value in values]
            keywords.update({str(word.arg): Argument(unit, call, word.value, word) for word in call.keywords})
        if tuple(self.facts.flow.places[argument.value] for argument in positional) != site.positional:
            return None  # a call that another function makes, such as the one of a loop's body
        if keywords.keys() != site.keywords.keys():
            return None
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][offset:]
        return {**dict(zip(names, positional, strict=False)), **keywords}

    def _unit_of(self, call: ast.Call, site: CallSite) -> Unit:
        return self.facts.flow.reading.scopes[call].unit if call in self.facts.flow.reading.scopes else site.unit

    def _escapes(self, function: FunctionNode) -> bool:
        """Whether a function is handed to code that may call it with anything."""
        if isinstance(function, ast.Lambda):
            return False
        return any(not self._is_followed(unit, node) for unit, node in self._references[function])

    def _is_followed(self, unit: Unit, node: ast.expr) -> bool:
        """Whether it is known what becomes of a function at a reference to it."""
        parent = unit.parents.get(node)
        while isinstance(parent, ast.Tuple | ast.keyword | ast.Starred):
            parent = unit.parents.get(parent)
        if not isinstance(parent, ast.Call) or parent.func is node:
            return True
        known = [item for item in self.facts.objects(parent.func) if isinstance(item, Function | Class | External)]
        return any(
            not isinstance(item, External) or self.facts.flow.library.function(item.name) is not None for item in known
        )

    @cached_property
    def _references(self) -> dict[ast.AST, list[tuple[Unit, ast.expr]]]:
        found: dict[ast.AST, list[tuple[Unit, ast.expr]]] = defaultdict(list)
        for node, scope in self.facts.flow.reading.scopes.items():
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                for item in self.facts.objects(node):
                    if isinstance(item, Function):
                        found[item.node].append((scope.unit, node))
        return found

    # What a name means elsewhere

    def means_the_same(self, name: str, here: Scope, variable: Variable) -> bool:
        """Whether a name, used in a scope, is a variable, or an import of it."""
        bound = here.binding(name)
        if bound is None:
            return False
        if bound is variable.scope and name == variable.name:
            return True
        if bound.parent is not None or variable.scope.parent is not None:
            return False
        theirs = set(self.facts.flow.solver.at(("variable", variable.scope, variable.name)))
        own = set(self.facts.flow.solver.at(("variable", bound, name)))
        plain = all(isinstance(item, Function | Class | External | Module) for item in own | theirs)
        imported = all(isinstance(node, ast.alias) for node in self.stores(Variable(bound, name)))
        return plain and imported and len(own) == 1 and own == theirs

    # The order of things

    def unchanged(self, variable: Variable, first: ast.AST, second: ast.AST) -> bool:
        """Whether a variable has the same value at two places of a function, of which the first is always met before."""
        unit = variable.unit
        if function_of(unit, first) is not function_of(unit, second):
            return False
        if {outer for outer in unit.ancestors(second) if isinstance(outer, LOOPS)} - set(unit.ancestors(first)):
            return False
        start, end = place_of(first), place_of(second)
        stores = (store for store in self.stores(variable) if not isinstance(store, ast.arg))
        return not any(start <= taking_effect(unit, store) < end for store in stores)

    def between(self, unit: Unit, first: ast.AST, second: ast.AST) -> list[ast.AST]:
        """What is written behind one place of a file and ahead of another."""
        start, end = place_of(first), place_of(second)
        return [node for node in unit.nodes if hasattr(node, "lineno") and start < place_of(node) < end]


def _stores_of(unit: Unit) -> dict[tuple[ast.AST, str], list[ast.AST]]:
    found: dict[tuple[ast.AST, str], list[ast.AST]] = defaultdict(list)
    elsewhere: dict[str, list[ast.AST]] = defaultdict(list)
    for node in unit.nodes:
        for name in _names_set(node):
            found[_owner(unit, node), name].append(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                elsewhere[name].append(node)
    for (_, name), nodes in found.items():
        nodes.extend(elsewhere.get(name, ()))
    return found


def _names_set(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.alias(name=name, asname=bound):
            yield bound or name.partition(".")[0]


def _owner(unit: Unit, node: ast.AST) -> ast.AST:
    """The scope in which a node binds a name."""
    return next((outer for outer in unit.ancestors(node) if isinstance(outer, (*SCOPES, ast.Module))), unit.tree)


def function_of(unit: Unit, node: ast.AST) -> FunctionNode | None:
    """The function that a node is in; None outside of all."""
    return next((outer for outer in unit.ancestors(node) if isinstance(outer, FunctionNode)), None)


def place_of(node: ast.AST) -> tuple[int, int]:
    """Where a node begins in its file."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def taking_effect(unit: Unit, store: ast.AST) -> tuple[int, int]:
    """Where a variable is set: an assignment does so at its end."""
    statement = statement_of(unit, store)
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return statement.end_lineno or 0, statement.end_col_offset or 0
    return place_of(store)


def statement_of(unit: Unit, node: ast.AST) -> ast.stmt:
    """The innermost statement around a node."""
    if isinstance(node, ast.stmt):
        return node
    return next(outer for outer in unit.ancestors(node) if isinstance(outer, ast.stmt))


def block_of(unit: Unit, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which one stands."""
    blocks: list[list[ast.stmt]] = [
        getattr(unit.parents[statement], field, []) for field in ("body", "orelse", "finalbody")
    ]
    return next(block for block in blocks if statement in block)


def names_read(nodes: Iterable[ast.AST]) -> list[ast.Name]:
    """The names that are read in some nodes."""
    return [
        found
        for node in nodes
        for found in ast.walk(node)
        if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Load)
    ]
