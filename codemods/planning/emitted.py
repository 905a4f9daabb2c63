"""Every optimizer that a run converts, as two expressions that stand on their own: the old one and the new."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping

from codemods.analysis.facts import Facts
from codemods.model import EmittedOptimizer
from codemods.optimizers import composite, optimizers
from codemods.optimizers.base import RATE, Parameter, learning_rate
from codemods.optimizers.functions import function_name
from codemods.optimizers.interface import has_interface
from codemods.planning.plan import Decision
from codemods.rewriting.edits import ConvertClass, ConvertDefinition, Edit, Replace, TakePart
from codemods.sources.modules import Span, Unit

DEEPEST = 8
"""How often a definition may be made of definitions from elsewhere."""


class Emitter:
    """Puts the definitions that a definition is made of in the place of the names under which it gets them.

    `after` has the new source text of each edited span, by file.
    """

    def __init__(
        self, facts: Facts, decisions: Iterable[Decision], after: Mapping[Unit, Mapping[Span, str]]
    ) -> None:
        self.facts = facts
        self.after = after
        applied = [decision for decision in decisions if decision.applies]
        made = (
            one
            for one in applied
            if one.rule.code in ("FO102", "FO302", "FO706") and isinstance(one.use.node, ast.Call)
        )
        kinds = (ConvertDefinition, TakePart, Replace)
        self.converted: dict[ast.AST, Decision] = {
            one.use.node: one for one in made if isinstance(one.edit, kinds)
        }
        self.functions = {
            one.use.node: one for one in applied if isinstance(one.edit, ConvertClass)
        }

    def emitted(self, unit: Unit, supports: tuple[str, ...]) -> tuple[EmittedOptimizer, ...]:
        """The optimizers of a file, in order. `supports` are the sources of the helpers that it now has."""
        here = [
            (node, one)
            for node, one in self.converted.items()
            if one.use.unit is unit and _stands_alone(one)
        ]
        return tuple(
            EmittedOptimizer(
                name=decision.use.name,
                line=unit.line(node.lineno),
                before=unit.source(node),
                after=self._text(decision),
                legacy_expression=ast.unparse(self._legacy(node, DEEPEST)),
                optax_expression=ast.unparse(self._optax(node, DEEPEST)),
                injected=_is_given_rates(decision),
                supports=supports,
                schedule=self._schedule(decision),
            )
            for node, decision in here
            if isinstance(node, ast.Call) and self._is_whole(decision)
        ) + tuple(
            _function(decision, self._text(decision), supports)
            for decision in self.functions.values()
            if decision.use.unit is unit
        )

    def _is_whole(self, decision: Decision) -> bool:
        """Whether all that a definition is made of is made by calls that were converted."""
        return all(node in self.converted for node in self._inner(decision))

    def _inner(self, decision: Decision) -> Iterator[ast.AST]:
        """What makes the definitions that a definition is made of."""
        return (
            found.node
            for thing in decision.use.things
            for found in self.facts.legacy.definitions(thing)
        )

    def _text(self, decision: Decision) -> str:
        """What a definition is now; of one that keeps its interface, only the name of its class has changed."""
        assert isinstance(decision.edit, Edit)
        use, text = decision.use, self.after[decision.use.unit].get(decision.edit.span, "")
        if isinstance(use.node, ast.Call) and decision.edit.span == use.unit.span(use.node.func):
            return text + use.unit.source(use.node).removeprefix(use.unit.source(use.node.func))
        return text

    def _expression(self, decision: Decision) -> ast.expr:
        """The new transformation, without the link that does what was beside the old one."""
        found = ast.parse(f"({self._text(decision)})", mode="eval").body
        link = decision.edit.link if isinstance(decision.edit, ConvertDefinition) else ""
        if link and isinstance(found, ast.Call):
            del found.args[0]
            return found.args[0] if len(found.args) == 1 else found
        return found

    def _schedule(self, decision: Decision) -> str:
        """The schedule of a definition, or of those that it is made of."""
        made = (decision.use.node, *self._inner(decision))
        edits = (self.converted[node].edit for node in made if node in self.converted)
        return next(
            (
                edit.rate
                for edit in edits
                if isinstance(edit, ConvertDefinition) and edit.rate and not edit.inject
            ),
            "",
        )

    def _legacy(self, node: ast.expr, depth: int) -> ast.expr:
        found = _substituted(copy.deepcopy(node), self._legacy_parts(node, depth))
        decision = self.converted.get(node)
        if decision is None or not isinstance(decision.edit, TakePart):
            return found
        kept, other = (
            decision.edit.opposite
        )  # whoever draws predicates has to know that they are no two
        if other in kept:
            return found
        return _substituted(
            found, {other: ast.parse(f"lambda *args: not ({kept})(*args)", mode="eval").body}
        )

    def _legacy_parts(self, node: ast.expr, depth: int) -> dict[str, ast.expr]:
        """For source texts within a definition: what the old side has there."""
        parts: dict[str, ast.expr] = {}
        for inner in ast.walk(node):
            if not isinstance(inner, ast.expr) or (inner is node and inner not in self.converted):
                continue
            decision = self.converted.get(inner)
            if decision is not None and isinstance(inner, ast.Call):
                parts[ast.unparse(inner.func)] = _attribute(decision.use.name)
            elif (made := self._made_elsewhere(inner, node)) is not None and depth:
                parts[ast.unparse(inner)] = self._legacy(made, depth - 1)
        return parts

    def _optax(self, node: ast.expr, depth: int) -> ast.expr:
        decision = self.converted[node]
        inside = (inner for inner in ast.walk(node) if isinstance(inner, ast.expr) and depth)
        made = ((inner, self._made_elsewhere(inner, node)) for inner in inside)
        parts = {
            ast.unparse(inner): self._optax(call, depth - 1)
            for inner, call in made
            if call is not None
        }
        return _substituted(self._expression(decision), parts)

    def _made_elsewhere(self, node: ast.expr, whole: ast.expr) -> ast.Call | None:
        """The converted call that makes the definition or traversal at a name within `whole`."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or node is whole:
            return None
        made = (thing.node for thing in self.facts.things(node, "definition", "traversal"))
        return next(
            (call for call in made if call in self.converted and isinstance(call, ast.Call)), None
        )


def _is_given_rates(decision: Decision) -> bool:
    """Whether the learning rate of a definition is set at each step, for all that is known of it."""
    if isinstance(decision.edit, ConvertDefinition):
        return decision.edit.inject
    call, name = decision.use.node, decision.use.name
    return (
        isinstance(call, ast.Call)
        and has_interface(name)
        and name not in composite()
        and learning_rate(call) is None
    )


def _stands_alone(decision: Decision) -> bool:
    """Whether the new transformation at a definition is what the old one was: one with a mask takes the place of two."""
    edit = decision.edit
    keeps_interface = decision.rule.code == "FO706" and has_interface(decision.use.name)
    return (
        keeps_interface
        or isinstance(edit, TakePart)
        or (isinstance(edit, ConvertDefinition) and edit.mask is None)
    )


def _function(decision: Decision, after: str, supports: tuple[str, ...]) -> EmittedOptimizer:
    """A class that became a function, called with a value for each of its parameters that is a real number."""
    assert isinstance(decision.edit, ConvertClass)
    use, name = decision.use, decision.edit.optimizer
    given = [parameter.name for parameter in optimizers()[name].parameters if _is_real(parameter)]
    arguments = ", ".join(f"{parameter}={parameter}" for parameter in given)
    return EmittedOptimizer(
        name=name,
        line=use.unit.line(use.node.lineno),
        before=use.unit.source(use.node),
        after=after,
        legacy_expression=f"optim.{name}({arguments})",
        optax_expression=f"{function_name(name)}({arguments})",
        injected=decision.edit.inject,
        supports=supports,
    )


def _is_real(parameter: Parameter) -> bool:
    default = ast.parse(parameter.default or "None", mode="eval").body
    return parameter.name == RATE or (
        isinstance(default, ast.Constant) and isinstance(default.value, float)
    )


class _Substitution(ast.NodeTransformer):
    """Exchanges expressions by their source text, outermost first."""

    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self.parts = parts

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and (part := self.parts.get(ast.unparse(node))) is not None:
            return copy.deepcopy(part)
        return super().generic_visit(node)


def _substituted(node: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    whole = ast.Expression(node)
    _Substitution(parts).visit(whole)
    return ast.fix_missing_locations(whole).body


def _attribute(name: str) -> ast.expr:
    return ast.parse(f"optim.{name}", mode="eval").body
