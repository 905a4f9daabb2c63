"""Dead code once an argument is left out: assignments, parameters, and arguments for these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from codemods.analysis.origins import (
    Binding,
    Origins,
    PassedArgument,
    Variable,
    names_read,
)
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.inference.binding import values_of
from codemods.rewriting.edits import ChangeArguments, ChangeParameters, Edit
from codemods.sources.modules import Unit
from codemods.vocabulary import words

SHIFTING = words(
    "static_argnums donate_argnums in_axes static_broadcasted_argnums nondiff_argnums"
)
"""Arguments of JAX's transformations that name parameters by their position."""


class DeadCode:
    """Removes the dead code that expressions leave, except for variables that are now needed.

    `edits` has what changes already, by node, and gets what is removed. `removed` has the nodes
    that are removed, with those that are known to be already. `may_go` tells of
    a value that calls functions whether it may be removed as well.
    """

    def __init__(
        self,
        origins: Origins,
        edits: Edits,
        needed: Collection[Variable],
        removed: Iterable[ast.AST],
        may_go: Callable[[ast.expr], bool] | None = None,
    ) -> None:
        self.origins = origins
        self.edits = edits
        self.needed = needed
        self.removed = {*removed}
        self._may_go = may_go

    def clear(self, expression: ast.expr) -> None:
        """Remove what only this expression, which is removed, makes use of."""
        self.removed.update(ast.walk(expression))
        for name in names_read([expression]):
            variable = self.origins.variable(name)
            if variable is None or variable in self.needed:
                continue
            if self.removed.issuperset(self.origins.loads(variable)):
                self._clear_variable(variable)

    def take_away(self, statement: ast.stmt, unit: Unit) -> None:
        """Remove a statement, with all that only this one makes use of."""
        self.edits.take_away(statement, unit)
        self.removed.update(ast.walk(statement))
        for one in ast.walk(statement):
            if isinstance(one, ast.expr):
                self.clear(one)
        # no other edit may be made within it
        for one in ast.walk(statement):
            if one is not statement and isinstance(one, ast.stmt):
                self.edits.pop(one, None)

    def _clear_variable(self, variable: Variable) -> None:
        """Remove what sets a variable that nothing reads any more."""
        function = self.origins.parameter(variable)
        if isinstance(function, ast.FunctionDef):
            self._clear_parameter(variable, function)
            return
        setting = self.origins.setting(variable)
        if not isinstance(setting, ast.Assign | ast.AnnAssign) or setting.value is None:
            return
        # other files may import what a module sets
        if setting in self.edits or variable.scope.parent is None:
            return
        unit, value = variable.unit, setting.value
        if len(unit.block_of(setting)) < 2:
            return
        if self._is_whole_line(unit, setting) and self._has_no_effect(value):
            self.edits.take_away(setting, unit)
            self.clear(value)

    def _has_no_effect(self, value: ast.expr) -> bool:
        """Whether a value may be left out. A call is of the schedule, which the chain calls now."""
        if self._may_go is not None and self._may_go(value):
            return True
        inner = values_of(value) if isinstance(value, ast.Call) else [value]
        return all(map(self.origins.dataflow.has_no_effect, inner))

    @staticmethod
    def _is_whole_line(unit: Unit, statement: ast.stmt) -> bool:
        """Whether a statement shares its first line with no other one."""
        line = unit.code.splitlines()[statement.lineno - 1]
        return ";" not in line and not line.rstrip().endswith("\\")

    # Parameters

    def _clear_parameter(self, variable: Variable, function: ast.FunctionDef) -> None:
        """Remove a parameter where each call gives it by name, or where no position matters."""
        bindings = self.origins.bindings(function)
        decorators = function.decorator_list
        # @functools.partial(jax.jit, static_argnums=(2,))
        decorated = any(isinstance(decorator, ast.Call) for decorator in decorators)
        if bindings is None or decorated or self._is_named(variable):
            return
        if not self.origins.are_its_own(function, bindings):
            return
        given: list[tuple[Binding, PassedArgument]] = []
        # a call that goes without it has its default
        for one in bindings:
            found = one.given.get(variable.name)
            if found is not None:
                given.append((one, found))
        shifts = any(argument.keyword is None for _, argument in given)
        if shifts and any(word in variable.unit.code for word in SHIFTING):
            return
        try:
            edits = Edits(self.edits)
            for binding, argument in given:
                edits.put(argument.call, argument.unit, _without(argument, binding))
            unit = variable.unit
            change = ChangeParameters(unit.span(function), dropped=(variable.name,))
            edits.put(function, unit, change)
        except Unproven:  # it stays, and does no harm
            return
        self.edits.update(edits)
        for _, argument in given:
            self.clear(argument.value)

    @staticmethod
    def _is_named(variable: Variable) -> bool:
        """Whether the file names a parameter in quotes, as `static_argnames="schedule"` does."""
        for word in variable.unit.nodes:
            if not isinstance(word, ast.keyword) or word.arg != "static_argnames":
                continue
            constants = (
                one for one in ast.walk(word.value) if isinstance(one, ast.Constant)
            )
            if any(constant.value == variable.name for constant in constants):
                return True
        return False


def _without(argument: PassedArgument, binding: Binding) -> Edit:
    """The call without an argument."""
    call = argument.call
    index = values_of(call).index(argument.value)
    is_partial = call is not binding.call
    return ChangeArguments(
        argument.unit.span(call), dropped=(index,), is_partial=is_partial
    )
