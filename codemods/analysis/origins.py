"""Where the value of a variable comes from, followed backwards.

That is the statement that assigns it, or the arguments of all calls with that parameter.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.dataflow.control_flow import FunctionNode
from codemods.dataflow.definitions import LOOPS, Definitions, Path, function_of
from codemods.dataflow.effects import Variable
from codemods.dataflow.program import functions_in
from codemods.flow.binding import arguments_of, signature_of, values_of
from codemods.flow.objects import Class, External, Function, Module, Object
from codemods.flow.scopes import Scope
from codemods.flow.sites import CallSite
from codemods.sources.modules import Unit

__all__ = [
    "LOOPS",
    "Binding",
    "FunctionNode",
    "Origins",
    "PassedArgument",
    "Path",
    "Variable",
    "function_of",
]


@dataclass(frozen=True, eq=False)
class PassedArgument:
    """The argument of a call for a parameter.

    `call` is the call in which it is written, which may be one of `functools.partial`. `keyword` is
    None for an argument by position.
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
    given: dict[str, PassedArgument]


class Origins(Definitions):
    """Follows values backwards, as far as only one way leads, also through calls of functions."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.dataflow.program)
        self.facts = facts
        self.dataflow = facts.dataflow

    # Calls

    def calls(self, function: FunctionNode) -> list[tuple[CallSite, int]]:
        """The calls that reach a function."""
        return self.facts.flow.entered[function]

    def bindings(self, function: FunctionNode) -> list[Binding] | None:
        """The arguments of each call of a function.

        None where that is not known: no call is in view, arguments are unpacked, or the function is
        handed to code of which it is not known what it does with it.
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
            found.setdefault(
                (site.node, *(argument.value for argument in given.values())), binding
            )
        return list(found.values())

    def are_its_own(self, function: FunctionNode, bindings: Iterable[Binding]) -> bool:
        """Whether some calls can only be of this function, so that its parameters may change."""
        calls: set[ast.Call] = set()
        for binding in bindings:
            calls.add(binding.call)
            calls.update(argument.call for argument in binding.given.values())
        return all(self._called(call) == {function} for call in calls)

    def _called(self, call: ast.Call) -> set[ast.AST]:
        """The functions that a call, or one of `functools.partial`, may be of."""
        is_external = bool(self.facts.externals(call.func)) and bool(call.args)
        items = self.facts.objects(call.args[0] if is_external else call.func)
        return {function.node for function in functions_in(items)}

    def references(self, function: ast.AST) -> list[tuple[Unit, ast.expr]]:
        """The names and attributes that may be a function, plain or wrapped."""
        return self._references[function]

    def _bound(
        self, function: FunctionNode, site: CallSite, offset: int
    ) -> dict[str, PassedArgument] | None:
        """The arguments of a call, by parameter."""
        if not isinstance(site.node, ast.Call):
            return None
        found = arguments_of(
            signature_of(function.args, offset), site.node, *site.partials
        )
        if found is None or not self._is_as_written(site):
            return None  # perhaps another function makes the call, such as that of a loop's body
        calls = (*site.partials, site.node)
        words = {word.value: word for call in calls for word in call.keywords}
        places = {
            value: (self._unit_of(call, site), call)
            for call in calls
            for value in values_of(call)
        }
        return {
            name: PassedArgument(*places[value], value, words.get(value))
            for name, value in found.items()
        }

    def _is_as_written(self, site: CallSite) -> bool:
        """Whether a function gets just the arguments that the source of a call has."""
        assert isinstance(site.node, ast.Call)
        values = [
            *(value for call in site.partials for value in call.args[1:]),
            *site.node.args,
        ]
        words = {
            word.arg for call in (*site.partials, site.node) for word in call.keywords
        }
        places = tuple(self.facts.flow.places[value] for value in values)
        return places == site.positional and words == {*site.keywords}

    def _unit_of(self, call: ast.Call, site: CallSite) -> Unit:
        scope = self.facts.flow.reading.scopes.get(call)
        return site.unit if scope is None else scope.unit

    def _escapes(self, function: FunctionNode) -> bool:
        """Whether a function is handed to code that may call it with anything."""
        if isinstance(function, ast.Lambda):
            return False
        return any(
            not self._is_followed(unit, node)
            for unit, node in self._references[function]
        )

    def _is_followed(self, unit: Unit, node: ast.expr) -> bool:
        """Whether it is known what happens to a function at a reference to it."""
        parent = unit.parents.get(node)
        # jax.jit(step): `step` is an argument
        while isinstance(parent, ast.Tuple | ast.keyword | ast.Starred):
            parent = unit.parents.get(parent)
        if not isinstance(parent, ast.Call) or parent.func is node:
            return True
        return any(map(self._is_known, self.facts.objects(parent.func)))

    def _is_known(self, item: Object) -> bool:
        """Whether it is known what a function does with its arguments."""
        if isinstance(item, External):
            return self.facts.flow.library.function(item.name) is not None
        return isinstance(item, Function | Class)

    @cached_property
    def _references(self) -> dict[ast.AST, list[tuple[Unit, ast.expr]]]:
        found: dict[ast.AST, list[tuple[Unit, ast.expr]]] = defaultdict(list)
        for node, scope in self.facts.flow.reading.scopes.items():
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(
                node.ctx, ast.Load
            ):
                for function in self.facts.functions(node):
                    found[function.node].append((scope.unit, node))
        return found

    # What a name means elsewhere

    def means_the_same(self, name: str, here: Scope, variable: Variable) -> bool:
        """Whether a name, used in a scope, stands for a variable, or for an import of it."""
        bound = here.binding(name)
        if bound is None:
            return False
        if bound is variable.scope and name == variable.name:
            return True
        if bound.parent is not None or variable.scope.parent is not None:
            return False
        theirs = {*self.program.objects_at(variable.scope, variable.name)}
        own = {*self.program.objects_at(bound, name)}
        # from steps import train_step
        kinds = (Function, Class, External, Module)
        is_plain = all(isinstance(item, kinds) for item in own | theirs)
        stores = self.stores(Variable(bound, name))
        is_imported = all(isinstance(node, ast.alias) for node in stores)
        return is_plain and is_imported and len(own) == 1 and own == theirs


def statement_of(unit: Unit, node: ast.AST) -> ast.stmt:
    """The innermost statement around a node."""
    if isinstance(node, ast.stmt):
        return node
    return next(outer for outer in unit.ancestors(node) if isinstance(outer, ast.stmt))


def block_of(unit: Unit, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of the block that a statement is in."""
    blocks: list[list[ast.stmt]] = [
        getattr(unit.parents[statement], field, [])
        for field in ("body", "orelse", "finalbody")
    ]
    return next(block for block in blocks if statement in block)


def names_within(node: ast.AST) -> set[str]:
    """The names of variables and parameters in some code."""
    found = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return found | {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}


def names_read(nodes: Iterable[ast.AST]) -> list[ast.Name]:
    """The names that are read in some nodes."""
    names = (
        found
        for node in nodes
        for found in ast.walk(node)
        if isinstance(found, ast.Name)
    )
    return [name for name in names if isinstance(name.ctx, ast.Load)]


def is_path(node: ast.expr) -> bool:
    """Whether an expression has only names, attributes and constant subscripts.

    Then evaluating it twice is the same as evaluating it once.
    """
    match node:
        # state.optimizers["generator"]
        case (
            ast.Attribute(value=value)
            | ast.Subscript(value=value, slice=ast.Constant())
        ):
            return is_path(value)
    return isinstance(node, ast.Name)
