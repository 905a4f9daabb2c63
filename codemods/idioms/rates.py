"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from codemods.idioms import Unproven
from codemods.idioms.counts import Counts
from codemods.origins import FunctionNode, Origins, Variable
from codemods.uses import Use

LONGEST = 60
"""A schedule of more characters is not written into the call that makes the optimizer."""

COUNT = "step"
CONSTANT_KINDS = (int, float)
NESTED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)


@dataclass(frozen=True)
class Rate:
    """An expression for a schedule in which number N stands for the Nth name, and for each name the variables that hold it.

    Of these variables each gets its value from the next. The expression is a function if `is_function`, else what a function
    of the step returns, or a constant.
    """

    expression: ast.expr
    chains: tuple[tuple[Variable, ...], ...]
    is_function: bool

    @property
    def shape(self) -> tuple[str, bool]:
        return ast.dump(self.expression), self.is_function

    def text(self, names: Sequence[str]) -> str:
        """The source text of the schedule, by the names that its parts have at some place."""
        filled = _Fill(names).visit(copy.deepcopy(self.expression))
        text = ast.unparse(filled)
        return text if self.is_function or isinstance(self.expression, ast.Constant) else f"lambda {COUNT}: {text}"


def common_rate(rates: Sequence[Rate]) -> Rate:
    """The one rate that several steps compute.

    Raises:
      Unproven: if they compute different ones.
    """
    first, *others = rates
    chains = list(first.chains)
    for other in others:
        if other.shape != first.shape:
            raise Unproven("not all steps compute it in the same way")
        chains = [
            tuple(one for one in chain if one in theirs) for chain, theirs in zip(chains, other.chains, strict=True)
        ]
    if not all(chains):
        raise Unproven("not all steps compute it with the same function")
    return Rate(first.expression, tuple(chains), first.is_function)


class Rates:
    """Finds the rates of steps."""

    def __init__(self, origins: Origins, counts: Counts) -> None:
        self.origins = origins
        self.counts = counts

    def of_step(self, value: ast.expr, use: Use) -> Rate:
        """What `learning_rate=value` is at a step.

        Raises:
          Unproven: if it is no function of the optimizer's own step, or of what is not known elsewhere.
        """
        value = self.origins.expanded(value)
        if isinstance(value, ast.Constant) and type(value.value) in CONSTANT_KINDS:
            return Rate(value, (), False)
        names: list[Variable] = []
        counted: list[int] = []
        body = self._numbered(value, use, names, counted)
        if not counted:
            for variable in names if isinstance(value, ast.Name) else ():
                self.chain(variable)
            raise Unproven("it does not come from the optimizer's own step")
        chains = [self.chain(variable) for variable in names]
        match body:
            case ast.Call(func=ast.Name() as function, args=[ast.Name(id="step")], keywords=[]):
                return Rate(function, tuple(chains), True)
        if len(ast.unparse(value)) > LONGEST or "{" in ast.unparse(value):
            raise Unproven("it is computed by a long expression within the step")
        return Rate(body, tuple(chains), False)

    def _numbered(self, node: ast.expr, use: Use, names: list[Variable], counted: list[int]) -> ast.expr:
        """A copy of an expression in which the step is called `step`, and numbers stand for all other variables."""
        ahead = self.counts.ahead(node, use)
        if ahead is not None:
            counted.append(ahead)
            return ast.parse(f"{COUNT} + {ahead}" if ahead else COUNT, mode="eval").body
        if isinstance(node, NESTED):
            raise Unproven("it is computed by a long expression within the step")
        if isinstance(node, ast.Name):
            variable = self.origins.variable(node)
            if variable is None:
                return node
            names.append(variable)
            return ast.Name(f"{len(names) - 1}", ast.Load())
        copied = copy.copy(node)
        for name, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            new = [self._part(part, use, names, counted) for part in parts]
            setattr(copied, name, new if isinstance(value, list) else new[0])
        return copied

    def _part(self, part: object, use: Use, names: list[Variable], counted: list[int]) -> object:
        if isinstance(part, ast.expr):
            return self._numbered(part, use, names, counted)
        if isinstance(part, ast.keyword):
            return ast.keyword(part.arg, self._numbered(part.value, use, names, counted))
        return part

    def chain(self, variable: Variable) -> tuple[Variable, ...]:
        """A variable, and those in which its value was before: what every call gives for a parameter.

        Raises:
          Unproven: if a variable is set more than once.
        """
        found = [variable]
        while (function := self.origins.parameter(variable)) is not None:
            given = self._given(function, variable.name)
            if given is None or given in found:
                return tuple(found)
            variable = given
            found.append(variable)
        is_import = [isinstance(store, ast.alias) for store in self.origins.stores(variable)] == [True]
        if not is_import and self.origins.setting(variable) is None:
            raise Unproven(f"`{variable.name}` has more than one value")
        return tuple(found)

    def _given(self, function: FunctionNode, parameter: str) -> Variable | None:
        """The variable that all calls of a function give for a parameter; None if they do not agree, or cannot be told."""
        found: set[Variable | None] = set()
        for binding in self.origins.bindings(function) or ():
            argument = binding.given.get(parameter)
            value = argument.value if argument is not None else None
            found.add(self.origins.variable(value) if isinstance(value, ast.Name) else None)
        return found.pop() if len(found) == 1 else None


class _Fill(ast.NodeTransformer):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names[int(node.id)], ast.Load()) if node.id.isdecimal() else node
