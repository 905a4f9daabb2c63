"""How a value gets to where an optimizer is made: by a name, or through parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.origins import (
    Binding,
    Origins,
    PassedArgument,
    Variable,
    names_within,
    statement_of,
)
from codemods.idioms import Unproven
from codemods.idioms.order import Edits, ahead_of
from codemods.idioms.values import Part, Value
from codemods.inference.binding import names_by_position
from codemods.inference.scopes import Scope
from codemods.rewriting.edits import ChangeParameters, Replace
from codemods.sources.modules import Unit


class Passing:
    """Brings a value, in messages `what`, to the calls that need it, and collects what changes."""

    def __init__(self, origins: Origins, value: Value, what: str) -> None:
        self.facts = origins.facts
        self.origins = origins
        self.value = value
        self.what = what
        self.edits = Edits()
        self.needed: set[Variable] = set()
        self._filled: set[ast.expr] = set()
        self._introduced: set[tuple[ast.FunctionDef, str]] = set()

    def as_argument(
        self, calls: Mapping[ast.Call, ast.expr | None]
    ) -> dict[ast.Call, str]:
        """The text of the value as an argument of calls, each with the one that it replaces."""
        self._filled.update(value for value in calls.values() if value is not None)
        return {call: self._at(call, value) for call, value in calls.items()}

    def beside(self, call: ast.Call) -> str:
        """The source text of the value at a call."""
        return self._brought(self.value, call)

    def _at(self, call: ast.Call, current: ast.expr | None) -> str:
        """The text of the value as an argument of a call, in the place of `current`."""
        text = self._known(self.value, call)
        if text is not None:
            return text
        # def create(rate): return optim.Adam(rate)
        function = self._function_around(call)
        parameter = self._parameter(current, function)
        if parameter is None:
            return self._brought(self.value, call)
        for binding in self._bindings(function):
            argument = binding.given.get(parameter)
            if argument is None:
                self._add_argument(binding, parameter, self._at(binding.call, None))
            else:
                self._exchange(argument)
        return parameter

    def _known(self, value: Value, node: ast.expr) -> str | None:
        """The text of a value as it can be written at a node; None if a part is not known there."""
        names = [self._name(part, node) for part in value.parts]
        known = [name for name in names if name is not None]
        if len(known) < len(names):
            return None
        return value.text(known)

    def _name(self, part: Part, node: ast.expr) -> str | None:
        """What a part is called at a node, if it is known there, perhaps after some moves."""
        for variable in part.variables:
            # the moves for a variable that is not known in the end are given up
            moves = Edits()
            if self._is_known(variable, node, moves):
                self.edits.update(moves)
                self.needed.add(variable)
                return variable.name
        return None if part.given is None else self._known(part.given, node)

    def _brought(self, value: Value, call: ast.Call) -> str:
        """The text of a value at a call; its parts may come there through new parameters."""
        names = [self._brought_part(part, call) for part in value.parts]
        return value.text(names)

    def _brought_part(self, part: Part, call: ast.Call) -> str:
        """What a part is called at a call, by a new parameter if need be."""
        name = self._name(part, call)
        if name is not None:
            return name
        if not part.variables and part.given is not None:
            return self._brought(part.given, call)
        last = part.variables[-1]
        if self.origins.parameter(last) is not None and part.given is None:
            raise self._out_of_reach(call)
        unit = self.facts.scope(call).unit
        self._introduce(last.name, part, self._function_around(call), unit)
        return last.name

    def _function_around(self, call: ast.Call) -> ast.FunctionDef:
        """The function that makes an optimizer, and can get a parameter for it."""
        function = self.facts.scope(call).function.node
        if not isinstance(function, ast.FunctionDef):
            raise self._out_of_reach(call)
        if not self.origins.calls(function):
            raise self._out_of_reach(call)
        return function

    def _out_of_reach(self, call: ast.Call) -> Unproven:
        unit = self.facts.scope(call).unit
        return Unproven(
            "the {} is not in reach at {}, where the optimizer is made",
            self.what,
            unit.location(call.lineno),
        )

    def _is_known(self, variable: Variable, node: ast.expr, moves: Edits) -> bool:
        """Whether a variable has its value where a node is evaluated, perhaps after some moves."""
        scope = self.facts.scope(node)
        if not self.origins.means_the_same(variable.name, scope, variable):
            return False
        setting = self.origins.setting(variable)
        if setting is None or variable.unit is not scope.unit:
            return True  # a parameter or an import
        is_of_module = variable.scope.parent is None
        if is_of_module and scope.function.parent is not None:
            # when the function is called, the variable of the module is set
            return not self.facts.dataflow.may_follow(setting, _outermost(scope))
        statement = statement_of(scope.unit, node)
        moves.update(ahead_of(variable, statement, self.origins))
        return True

    # Through functions

    def _parameter(
        self,
        current: ast.expr | None,
        function: ast.FunctionDef,
    ) -> str | None:
        """The parameter of a function that is passed on as the rate, and used for nothing else."""
        variable = self.origins.variable(current)
        if variable is None or self.origins.parameter(variable) is not function:
            return None
        # logging.info("rate %s", rate), which is to have the number
        if not self._filled.issuperset(self.origins.loads(variable)):
            return None
        return variable.name

    def _bindings(self, function: ast.FunctionDef) -> list[Binding]:
        """The calls of a function that gets another parameter, or other arguments."""
        bindings = self.origins.bindings(function)
        if bindings is None:
            raise Unproven(f"not every call of `{function.name}` is in view")
        if not self.origins.are_its_own(function, bindings):
            raise Unproven(
                f"a call of `{function.name}` may be one of another function"
            )
        return bindings

    def _exchange(self, argument: PassedArgument) -> None:
        """Put the value in the place of an argument."""
        value, unit = argument.value, argument.unit
        if value in self.edits:
            return
        self._filled.add(value)
        text = self._at(argument.call, value)
        if text != ast.unparse(value):
            self.edits[value] = (unit, Replace(unit.span(value), text))

    def _add_argument(self, binding: Binding, parameter: str, text: str) -> None:
        self.edits.add_argument(binding.call, binding.unit, parameter, text)

    def _introduce(
        self,
        name: str,
        part: Part,
        function: ast.FunctionDef,
        unit: Unit,
    ) -> None:
        """Give a function a parameter for a value, and each of its calls an argument."""
        if (function, name) in self._introduced:
            return
        self._introduced.add((function, name))
        if name in names_within(function):
            raise Unproven(f"the name `{name}` is taken where the optimizer is made")
        if function.args.vararg or function.args.kwarg or function.decorator_list:
            raise Unproven(
                f"`{function.name}`, which makes the optimizer, takes any arguments or is decorated"
            )
        added = ((name, self._annotation(part, unit)),)
        change = ChangeParameters(unit.span(function), added=added)
        self.edits.put(function, unit, change)
        parameters = names_by_position(function.args)
        required = len(parameters) - len(function.args.defaults)
        for binding in self._bindings(function):
            call = binding.call
            # the new parameter is the next behind those that the call gives by position
            is_full = len(call.args) == len(binding.given) == required
            keyword = "" if is_full and not call.keywords else name
            self._add_argument(binding, keyword, self._brought_part(part, call))

    def _annotation(self, part: Part, unit: Unit) -> str:
        """The source text of the annotation that a value has in this file already."""
        for variable in part.variables:
            if variable.unit is not unit:
                continue
            for store in self.origins.stores(variable):
                if isinstance(store, ast.arg) and store.annotation is not None:
                    return unit.source(store.annotation)
        return ""


def _outermost(scope: Scope) -> ast.stmt | ast.expr:
    """The function or class at the top level of the module around a scope."""
    while scope.parent is not None and scope.parent.parent is not None:
        scope = scope.parent
    assert isinstance(scope.node, ast.stmt | ast.expr)
    return scope.node
