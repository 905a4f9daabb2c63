"""Values as source text that may be written elsewhere, and the variables that they are made of."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from codemods.analysis.origins import FunctionNode, Origins, Variable
from codemods.idioms import Unproven
from codemods.inference.objects import Object

NESTED = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
)
READ = (ast.Attribute, ast.Subscript, ast.Call)
LONGEST = 60
"""An expression of more characters is not written elsewhere."""

LONG = "it is computed by a long expression within the step"

DEEPEST = 3
"""How often the argument of a call may be made of parameters of another."""


Exchange = Callable[[ast.expr], ast.expr | None]
"""Another expression for a part of one, or None."""


@dataclass(frozen=True)
class Part:
    """What a name in an expression stands for: variables, each with the value of the next.

    `names` are where they are read on that way. `given` is what the calls give for the last of
    them, if that is a parameter and they give more than a name.
    """

    variables: tuple[Variable, ...]
    names: tuple[ast.Name, ...]
    given: Value | None = None


@dataclass(frozen=True)
class Value:
    """An expression in which number N stands for the Nth of its parts.

    `read` has what is read for it in the original beside those, and must be the same from then on:
    attributes, elements, what calls give.
    """

    expression: ast.expr
    parts: tuple[Part, ...]
    read: tuple[ast.expr, ...] = ()

    def text(self, names: Sequence[str]) -> str:
        """The source text, by what its parts are called at some place."""
        expression = copy.deepcopy(self.expression)
        return ast.unparse(_FillParts(names).visit(expression))


class Values:
    """Finds what expressions are made of."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def of(
        self,
        node: ast.expr,
        exchange: Exchange | None = None,
        longest: int = LONGEST,
        depth: int = DEEPEST,
    ) -> Value:
        """The value of an expression that is not too long; `exchange` may replace its parts."""
        text = ast.unparse(node)
        copier = _Copier(self.origins, exchange)
        expression = copier.copied(node)
        assert isinstance(expression, ast.expr)
        # a dictionary, or braces in a text: the value goes into a template
        is_long = len(text) > longest or "{" in text
        if is_long and not isinstance(node, ast.Name):
            raise Unproven(LONG)
        parts = tuple(self._part(name, depth) for name in copier.names)
        return Value(expression, parts, tuple(copier.read))

    def refuse_changes(
        self,
        value: Value,
        made: Collection[ast.AST],
        carriers: Collection[Object],
    ) -> None:
        """Refuse a value that may be another where optimizers are made than where it was computed.

        A function of the step is called at each step, as before: there the variables alone have to
        be the same. `carriers` are the optimizers, and what they are made of.
        """
        # lambda step: rate * step, of which `rate` is read at each step
        later = isinstance(value.expression, ast.Lambda)
        for part in value.parts:
            for variable, name in zip(part.variables, part.names, strict=True):
                for call in made:
                    if not self._has_same_value(variable, name, call, carriers, later):
                        raise Unproven(
                            f"`{variable.name}` may have another value when the optimizer is made"
                        )
            if part.given is not None:
                self.refuse_changes(part.given, made, carriers)
        for node in value.read:
            for call in made:
                self._refuse_other(node, call, carriers)

    def _refuse_other(
        self,
        node: ast.expr,
        call: ast.AST,
        carriers: Collection[Object],
    ) -> None:
        """Refuse what is read, if it is not the same from where a call makes an optimizer on."""
        if not self.facts.dataflow.lasts([node], call, node, carriers):
            unit = self.facts.scope(node).unit
            where = unit.location(node.lineno)
            text = ast.unparse(node)
            raise Unproven(
                "`{}` at {} may be another when the optimizer is made", text, where
            )

    def _has_same_value(
        self,
        variable: Variable,
        name: ast.Name,
        call: ast.AST,
        carriers: Collection[Object],
        later: bool,
    ) -> bool:
        """Whether a variable has the value at a call that a name reads; if `later`, at each step.

        It does if the call cannot name the variable.
        """
        dataflow = self.facts.dataflow
        here = self.facts.scope(call) if isinstance(call, ast.expr) else None
        if here is None:
            return True
        # it is not by this variable that the value gets there
        if not self.origins.means_the_same(variable.name, here, variable):
            return True
        if later:
            return dataflow.is_settled(variable, carriers)
        return dataflow.lasts([name], call, name, carriers)

    def _part(self, name: ast.Name, depth: int) -> Part:
        """What a name stands for: through parameters, what their calls give."""
        variable = self.origins.variable(name)
        assert variable is not None
        found, names = [variable], [name]
        while (function := self.origins.parameter(variable)) is not None:
            given = self._given(function, variable.name)
            # train(schedule=optax.cosine_decay_schedule(0.1, 100))
            if not isinstance(given, ast.Name):
                value = self._value_given(given, depth)
                return Part(tuple(found), tuple(names), value)
            further = self.origins.variable(given)
            if further is None or further in found:
                return Part(tuple(found), tuple(names))
            variable = further
            found.append(variable)
            names.append(given)
        stores = self.origins.stores(variable)
        is_import = any(isinstance(store, ast.alias) for store in stores)
        if not is_import and not self.origins.is_set_once(variable):
            raise Unproven(f"`{variable.name}` has more than one value")
        return Part(tuple(found), tuple(names))

    def _value_given(self, given: ast.expr | None, depth: int) -> Value | None:
        """The value that calls give for a parameter; None if it cannot be written elsewhere."""
        if given is not None and depth and self.facts.dataflow.has_no_effect(given):
            with suppress(Unproven):
                return self.of(given, depth=depth - 1)
        return None

    def _given(self, function: FunctionNode, parameter: str) -> ast.expr | None:
        """What all calls of a function give for a parameter; None if that differs or is unknown."""
        found: dict[Variable | ast.expr | None, ast.expr | None] = {}
        for binding in self.origins.bindings(function) or ():
            argument = binding.given.get(parameter)
            value = argument.value if argument is not None else None
            # calls that give the same variable give the same
            found[self.origins.variable(value) or value] = value
        return found.popitem()[1] if len(found) == 1 else None


class _Copier:
    """Copies an expression, with numbers in the place of its variables.

    `names` are where these are read, `read` what else is.
    """

    def __init__(self, origins: Origins, exchange: Exchange | None) -> None:
        self.origins = origins
        self.exchange = exchange
        self.names: list[ast.Name] = []
        self.read: list[ast.expr] = []

    def copied(self, part: object) -> object:
        """A copy of a part of an expression; operators and texts are the same."""
        if not isinstance(part, ast.expr | ast.keyword):
            return part
        if self.exchange and isinstance(part, ast.expr):
            other = self.exchange(part)
            if other is not None:
                return other
        if isinstance(part, NESTED):
            raise Unproven(LONG)
        if isinstance(part, ast.Name):
            # a builtin, such as `min`
            if self.origins.variable(part) is None:
                return part
            number = len(self.names)
            self.names.append(part)
            return ast.Name(str(number), ast.Load())
        # what has no scope is not of the original, but made by an idiom
        scopes = self.origins.facts.flow.reading.scopes
        if isinstance(part, READ) and part in scopes:
            self.read.append(part)
        new = copy.copy(part)
        for name, value in ast.iter_fields(part):
            if isinstance(value, list):
                setattr(new, name, [*map(self.copied, value)])
            else:
                setattr(new, name, self.copied(value))
        return new


class _FillParts(ast.NodeTransformer):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not node.id.isdecimal():
            return node
        text = self.names[int(node.id)]
        return ast.parse(text, mode="eval").body
