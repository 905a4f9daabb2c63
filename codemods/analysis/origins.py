"""Where the value of a variable comes from, followed backwards.

That is the statement that assigns it, or the arguments of all calls with that parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.dataflow.definitions import LOOPS, Definitions, Path, function_of
from codemods.dataflow.effects import Variable
from codemods.dataflow.program import functions_in
from codemods.inference.binding import arguments_of, signature_of, values_of
from codemods.inference.objects import Arguments as CallSite
from codemods.inference.objects import Class, External, Function
from codemods.inference.reading import FunctionNode
from codemods.inference.scopes import Scope
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


Arguments = dict[str, PassedArgument]
Reference = tuple[Unit, ast.expr]


@dataclass(frozen=True, eq=False)
class Binding:
    """A call of a function, and its arguments by parameter."""

    unit: Unit
    call: ast.Call
    given: Arguments


class Origins(Definitions):
    """Follows values backwards, as far as only one way leads, also through calls of functions."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.dataflow.program)
        self.facts = facts
        self.flow = facts.flow
        self.dataflow = facts.dataflow
        self._references: dict[ast.AST, list[Reference]] = {}

    # Calls

    def calls(self, function: FunctionNode) -> list[tuple[CallSite, int]]:
        """The calls that reach a function."""
        return self.flow.entered[function]

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
            call = site.node
            given = self._bound(function, site, offset)
            if given is None or not isinstance(call, ast.Call):
                return None
            # A call may reach a function in several ways that give the same arguments.
            values = [argument.value for argument in given.values()]
            key = (call, *values)
            if key not in found:
                found[key] = Binding(site.unit, call, given)
        return list(found.values())

    def are_its_own(
        self, function: FunctionNode, bindings: Collection[Binding]
    ) -> bool:
        """Whether some calls can only be of this function, so that its parameters may change."""
        calls = {binding.call for binding in bindings} | {
            argument.call for one in bindings for argument in one.given.values()
        }
        return all(self._called(call) == {function} for call in calls)

    def _called(self, call: ast.Call) -> set[ast.AST]:
        """The functions that a call, or one of `functools.partial`, may be of."""
        called = call.func
        # functools.partial(step, rate=0.1)
        if self.facts.externals(called) and call.args:
            called = call.args[0]
        items = self.facts.objects(called)
        return {function.node for function in functions_in(items)}

    def references(self, function: ast.AST) -> list[Reference]:
        """The names and attributes that may be a function, plain or wrapped."""
        if function not in self._references:
            engine = self.flow.engine
            trace = engine.tracing.of_function(engine.functions[function])
            self._references[function] = [
                (unit, node)
                for unit, node in trace.nodes
                if isinstance(node, ast.Name | ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and any(one.node is function for one in self.facts.functions(node))
            ]
        return self._references[function]

    def _bound(
        self, function: FunctionNode, site: CallSite, offset: int
    ) -> Arguments | None:
        """The arguments of a call, by parameter."""
        if not isinstance(site.node, ast.Call):
            return None
        signature = signature_of(function.args, offset)
        found = arguments_of(signature, site.node, *site.partials)
        # Perhaps another function makes the call, such as that of a loop's body.
        if found is None or not self._is_as_written(site):
            return None
        words: dict[ast.expr, ast.keyword] = {}
        places: dict[ast.expr, tuple[Unit, ast.Call]] = {}
        for call in (*site.partials, site.node):
            scope = self.flow.reading.scopes.get(call)
            unit = site.unit if scope is None else scope.unit
            words |= {word.value: word for word in call.keywords}
            places |= dict.fromkeys(values_of(call), (unit, call))
        given: Arguments = {}
        for name, value in found.items():
            unit, call = places[value]
            keyword = words.get(value)
            given[name] = PassedArgument(unit, call, value, keyword)
        return given

    def _is_as_written(self, site: CallSite) -> bool:
        """Whether a function gets just the arguments that the source of a call has."""
        assert isinstance(site.node, ast.Call)
        values: list[ast.expr] = []
        # The first argument of `functools.partial` is the function.
        for call in site.partials:
            values += call.args[1:]
        values += site.node.args
        calls = (*site.partials, site.node)
        words = {word.arg for call in calls for word in call.keywords}
        if words != {word for word, _ in site.keywords}:
            return False
        places = self.flow.places
        return tuple(places[value] for value in values) == site.positional

    def _escapes(self, function: FunctionNode) -> bool:
        """Whether a function is handed to code that may call it with anything."""
        return not isinstance(function, ast.Lambda) and not all(
            self._is_followed(*reference) for reference in self.references(function)
        )

    def _is_followed(self, unit: Unit, node: ast.expr) -> bool:
        """Whether it is known what happens to a function at a reference to it."""
        parent = unit.parents.get(node)
        # jax.jit(step): `step` is an argument
        while isinstance(parent, ast.Tuple | ast.keyword | ast.Starred):
            parent = unit.parents.get(parent)
        if not isinstance(parent, ast.Call) or parent.func is node:
            return True
        return any(
            self.flow.library.function(item.name) is not None
            if isinstance(item, External)
            else isinstance(item, Function | Class)
            for item in self.facts.objects(parent.func)
        )

    # What a name means elsewhere

    def means_the_same(self, name: str, here: Scope, variable: Variable) -> bool:
        """Whether a name, used in a scope, stands for a variable, or for an import of it."""
        bound = here.binding(name)
        if bound is None:
            return False
        if bound is variable.scope and name == variable.name:
            return True
        # Only variables of modules are imported.
        if bound.parent is not None or variable.scope.parent is not None:
            return False
        # from constants import RATE, here and there
        source = self._source(variable)
        is_of_source = self._source(Variable(bound, name)) == source
        return is_of_source and self.dataflow.is_settled(source, ())

    def _source(self, variable: Variable) -> Variable:
        """The variable of another file that imports give this one, or else itself."""
        seen: set[Variable] = set()
        while variable not in seen and len(self.stores(variable)) == 1:
            seen.add(variable)
            variable = self._imported.get(variable, variable)
        return variable

    @cached_property
    def _imported(self) -> dict[Variable, Variable]:
        """The variable that each import by name means, if it can only be one."""
        return {
            Variable(one.scope, one.name): Variable(one.sources[0], one.alias.name)
            for one in self.flow.reading.passed_on
            if one.name != "*" and len(one.sources) == 1
        }


def statement_of(unit: Unit, node: ast.AST) -> ast.stmt:
    """The innermost statement around a node."""
    if isinstance(node, ast.stmt):
        return node
    around = unit.ancestors(node)
    return next(outer for outer in around if isinstance(outer, ast.stmt))


def names_within(node: ast.AST) -> set[str]:
    """The names of variables and parameters in some code."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.arg):
            found.add(inner.arg)
    return found


def names_read(nodes: Iterable[ast.AST]) -> list[ast.Name]:
    """The names that are read in some nodes."""
    found: list[ast.Name] = []
    for node in nodes:
        names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
        found += [name for name in names if isinstance(name.ctx, ast.Load)]
    return found
