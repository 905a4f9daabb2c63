"""Values as source text that may be written elsewhere: which variables hold what an expression is made of."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.idioms import Unproven
from codemods.idioms.quiet import is_quiet
from codemods.origins import LOOPS, Binding, FunctionNode, Origins, Variable, place_of

NESTED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)
LONGEST = 60
"""An expression of more characters is not written elsewhere."""

LONG = "it is computed by a long expression within the step"

DEEPEST = 3
"""How often the argument of a call may be made of parameters of another."""


Exchange = Callable[[ast.expr], ast.expr | None]


@dataclass(frozen=True)
class Part:
    """What a name in an expression stands for: variables, of which each gets its value from the next.

    `given` is what the calls give for the last of them, if that is a parameter and they give more than a name.
    """

    variables: tuple[Variable, ...]
    given: Value | None = None

    def common(self, other: Part) -> Part:
        """What is the same in both."""
        variables = tuple(one for one in self.variables if one in other.variables)
        same = self.given is not None and other.given is not None and self.given.shape == other.given.shape
        return Part(variables, self.given if same else None)


@dataclass(frozen=True)
class Value:
    """An expression in which number N stands for the Nth of its parts."""

    expression: ast.expr
    parts: tuple[Part, ...]

    @property
    def shape(self) -> str:
        return ast.dump(self.expression)

    def text(self, names: Sequence[str]) -> str:
        """The source text, by what its parts are called at some place."""
        return ast.unparse(_Fill(names).visit(copy.deepcopy(self.expression)))


def common_value(values: Sequence[Value]) -> Value:
    """The one value that several expressions have.

    Raises:
      Unproven: if they may have different ones.
    """
    first, *others = values
    parts = list(first.parts)
    for other in others:
        if other.shape != first.shape:
            raise Unproven("not all steps compute it in the same way")
        parts = [part.common(theirs) for part, theirs in zip(parts, other.parts, strict=True)]
    if not all(part.variables or part.given for part in parts):
        raise Unproven("not all steps compute it with the same function")
    return Value(first.expression, tuple(parts))


class Values:
    """Finds out of what expressions are made."""

    def __init__(self, facts: Facts, origins: Origins) -> None:
        self.facts = facts
        self.origins = origins

    def of(self, node: ast.expr, exchange: Exchange | None = None, longest: int = LONGEST) -> Value:
        """The value of an expression. What `exchange` gives for a part of it takes the place of that part.

        Args:
          node: the expression.
          exchange: gives another expression for a part, or None.
          longest: how many characters the expression may have at most.

        Raises:
          Unproven: if it has parts of which nobody can tell the value elsewhere.
        """
        return self._of(node, exchange or _nothing, DEEPEST, longest)

    def refuse_changes(self, value: Value, made: Collection[ast.AST], steps: Collection[ast.AST]) -> None:
        """See to it that a value is still the same at each step if it is computed where the optimizer is made.

        Raises:
          Unproven: if something within an object of which it is made is set in the meantime.
        """
        for node in ast.walk(value.expression):
            match _root(node):
                case ast.Name(id=number) if number.isdecimal():
                    for variable in value.parts[int(number)].variables:
                        self._refuse_changes_of(variable, _tail(node), made, steps)

    def _refuse_changes_of(
        self, variable: Variable, tail: str, made: Collection[ast.AST], steps: Collection[ast.AST]
    ) -> None:
        for node in variable.unit.nodes:
            if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
                continue
            root = _root(node)
            if root is None or self.origins.variable(root) != variable or tail != _tail(node):
                continue
            if not self._is_before(variable.unit, node, made, steps):
                raise Unproven(f"`{ast.unparse(node)}` is set at {variable.unit.place(node.lineno)}")

    @staticmethod
    def _is_before(unit: Unit, node: ast.AST, made: Collection[ast.AST], steps: Collection[ast.AST]) -> bool:
        """Whether something is done before an optimizer is made, and not while it takes steps."""
        around = list(unit.ancestors(node))
        loops = {outer for outer in around if isinstance(outer, LOOPS)}
        functions = [outer for outer in around if isinstance(outer, FunctionNode)]
        inside = {*ast.walk(functions[0] if functions else unit.tree)}
        if makers := [call for call in made if call in inside]:
            return all(place_of(node) < place_of(call) and loops <= {*unit.ancestors(call)} for call in makers)
        return not loops and len(functions) < 2 and inside.isdisjoint(steps)

    def _of(self, node: ast.expr, exchange: Exchange, depth: int, longest: int = LONGEST) -> Value:
        variables: list[Variable] = []

        def copied(part: object) -> object:
            if not isinstance(part, ast.expr | ast.keyword):
                return part
            if isinstance(part, ast.expr) and (other := exchange(part)) is not None:
                return other
            if isinstance(part, NESTED):
                raise Unproven(LONG)
            if isinstance(part, ast.Name):
                variable = self.origins.variable(part)
                if variable is None:
                    return part
                variables.append(variable)
                return ast.Name(str(len(variables) - 1), ast.Load())
            new = copy.copy(part)
            for name, value in ast.iter_fields(part):
                setattr(new, name, [copied(item) for item in value] if isinstance(value, list) else copied(value))
            return new

        text = ast.unparse(node)
        expression = copied(node)
        assert isinstance(expression, ast.expr)
        if not isinstance(node, ast.Name) and (len(text) > longest or "{" in text):
            raise Unproven(LONG)
        return Value(expression, tuple(self._part(variable, depth) for variable in variables))

    def _part(self, variable: Variable, depth: int) -> Part:
        found = [variable]
        while (function := self.origins.parameter(variable)) is not None:
            given = self._given(function, variable.name)
            if isinstance(given, ast.Name):
                further = self.origins.variable(given)
                if further is None or further in found:
                    return Part(tuple(found))
                variable = further
                found.append(variable)
                continue
            if given is None or not depth or not is_quiet(given, self.facts):
                return Part(tuple(found))
            try:
                return Part(tuple(found), self._of(given, _nothing, depth - 1))
            except Unproven:
                return Part(tuple(found))
        is_import = any(isinstance(store, ast.alias) for store in self.origins.stores(variable))
        if not is_import and self.origins.setting(variable) is None:
            raise Unproven(f"`{variable.name}` has more than one value")
        return Part(tuple(found))

    def _given(self, function: FunctionNode, parameter: str) -> ast.expr | None:
        """What all calls of a function give for a parameter; None if they do not agree, or cannot be told."""
        bindings = self.origins.bindings(function) or ()
        found = {self._identity(binding, parameter): binding for binding in bindings}
        if len(found) != 1:
            return None
        argument = found.popitem()[1].given.get(parameter)
        return None if argument is None else argument.value

    def _identity(self, binding: Binding, parameter: str) -> object:
        argument = binding.given.get(parameter)
        if argument is None:
            return None
        variable = self.origins.variable(argument.value) if isinstance(argument.value, ast.Name) else None
        return variable or argument.value


def _nothing(node: ast.expr) -> None:
    del node


def _root(node: ast.AST) -> ast.Name | None:
    """The name from which a path of attributes and elements starts; None if this is no such path."""
    inner = node
    while isinstance(inner, ast.Attribute | ast.Subscript):
        inner = inner.value
    return inner if inner is not node and isinstance(inner, ast.Name) else None


def _tail(node: ast.AST) -> str:
    """The path behind that name."""
    root = _root(node)
    return ast.unparse(node).removeprefix("" if root is None else root.id)


class _Fill(ast.NodeTransformer):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not node.id.isdecimal():
            return node
        return ast.parse(self.names[int(node.id)], mode="eval").body
