"""What nothing needs any more once an argument is left out: assignments, parameters, and the arguments for these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from codemods.analysis.origins import Argument, Binding, Origins, Variable, block_of, names_read
from codemods.flow.binding import values_of
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.rewriting.edits import ChangeArguments, ChangeParameters, Edit
from codemods.sources.modules import Unit

SHIFTING = (
    "static_argnums",
    "donate_argnums",
    "in_axes",
    "static_broadcasted_argnums",
    "nondiff_argnums",
)
"""Arguments of JAX's transformations that name parameters by their position."""


class Leftovers:
    """Clears away behind expressions that go, except for some variables that are needed elsewhere now.

    `edits` has what changes already, by node, and takes up what goes. `gone` has the nodes that go, with those that are known to
    go already. `norm` tells of which tree an expression is the norm, which nobody misses; None if it is none.
    """

    def __init__(
        self,
        origins: Origins,
        edits: Edits,
        needed: Collection[Variable],
        gone: Iterable[ast.AST],
        norm: Callable[[ast.expr], object] | None = None,
    ) -> None:
        self.origins = origins
        self.edits = edits
        self.needed = needed
        self.gone = {*gone}
        self._norm = norm

    def clear(self, expression: ast.expr) -> None:
        """Take away what only this expression, which goes, made use of."""
        self.gone.update(ast.walk(expression))
        for name in names_read([expression]):
            variable = self.origins.variable(name)
            if variable is None or variable in self.needed:
                continue
            if self.gone.issuperset(self.origins.loads(variable)):
                self._clear_variable(variable)

    def take_away(self, statement: ast.stmt, unit: Unit) -> None:
        """Take away a statement, with all that only this one made use of."""
        self.edits.take_away(statement, unit)
        self.gone.update(ast.walk(statement))
        for expression in (one for one in ast.walk(statement) if isinstance(one, ast.expr)):
            self.clear(expression)
        for one in ast.walk(statement):
            if one is not statement and isinstance(one, ast.stmt):
                self.edits.pop(one, None)

    def _clear_variable(self, variable: Variable) -> None:
        function = self.origins.parameter(variable)
        if isinstance(function, ast.FunctionDef):
            self._clear_parameter(variable, function)
            return
        setting = self.origins.setting(variable)
        value = setting.value if isinstance(setting, ast.Assign | ast.AnnAssign) else None
        if (
            setting is None
            or value is None
            or setting in self.edits
            or variable.scope.parent is None
        ):
            return
        alone = len(block_of(variable.unit, setting)) > 1 and self._is_whole_line(
            variable.unit, setting
        )
        inner = values_of(value) if isinstance(value, ast.Call) else [value]
        # what is called is the schedule, which the transformation calls from now on
        is_norm = self._norm is not None and self._norm(value) is not None
        if alone and (is_norm or all(map(self.origins.dataflow.is_quiet, inner))):
            self.edits.take_away(setting, variable.unit)
            self.clear(value)

    @staticmethod
    def _is_whole_line(unit: Unit, statement: ast.stmt) -> bool:
        line = unit.code.splitlines()[statement.lineno - 1]
        return ";" not in line and not line.rstrip().endswith("\\")

    # Parameters

    def _clear_parameter(self, variable: Variable, function: ast.FunctionDef) -> None:
        """Take a parameter away where each call names it, or where no position matters."""
        bindings = self.origins.bindings(function)
        decorated = any(isinstance(decorator, ast.Call) for decorator in function.decorator_list)
        if bindings is None or decorated or self._is_named(variable):
            return
        if not self.origins.are_its_own(function, bindings):
            return
        given = [
            (one, argument)
            for one in bindings
            if (argument := one.given.get(variable.name)) is not None
        ]
        shifts = any(argument.keyword is None for _, argument in given)
        if shifts and any(word in variable.unit.code for word in SHIFTING):
            return
        try:
            edits = Edits(self.edits)
            for binding, argument in given:
                edits.put(argument.call, argument.unit, _without(argument, binding))
            change = ChangeParameters(variable.unit.span(function), dropped=(variable.name,))
            edits.put(function, variable.unit, change)
        except Unproven:  # it stays, and does no harm
            return
        self.edits.update(edits)
        for _, argument in given:
            self.clear(argument.value)

    @staticmethod
    def _is_named(variable: Variable) -> bool:
        """Whether something in the file names a parameter in quotes, as `static_argnames="schedule"` does."""
        words = (
            one
            for one in variable.unit.nodes
            if isinstance(one, ast.keyword) and one.arg == "static_argnames"
        )
        names = (
            name
            for word in words
            for name in ast.walk(word.value)
            if isinstance(name, ast.Constant)
        )
        return any(name.value == variable.name for name in names)


def _without(argument: Argument, binding: Binding) -> Edit:
    """The call without an argument."""
    call = argument.call
    index = values_of(call).index(argument.value)
    return ChangeArguments(
        argument.unit.span(call), dropped=(index,), is_partial=call is not binding.call
    )
