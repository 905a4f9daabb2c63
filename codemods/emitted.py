"""Every optimizer that a run converts, as two expressions that stand on their own: the old one and the new."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codemods.edits import ConvertDefinition, Replace
from codemods.facts import Facts
from codemods.flow.modules import Span, Unit
from codemods.flow.objects import Thing
from codemods.model import EmittedOptimizer
from codemods.plan import Decision

DEEPEST = 8
"""How often a definition may be made of definitions from elsewhere."""


@dataclass(frozen=True)
class Texts:
    """The new source text of each edited span, by file."""

    after: Mapping[Unit, Mapping[Span, str]]


class Emitter:
    """Puts the definitions that a definition is made of in the place of the names under which it gets them."""

    def __init__(self, facts: Facts, decisions: Iterable[Decision], texts: Texts) -> None:
        self.facts = facts
        self.texts = texts
        self.converted: dict[ast.AST, Decision] = {
            decision.use.node: decision
            for decision in decisions
            if decision.applies and decision.rule.code in ("FO102", "FO302") and isinstance(decision.use.node, ast.Call)
        }

    def emitted(self, unit: Unit, supports: tuple[str, ...]) -> tuple[EmittedOptimizer, ...]:
        """The optimizers of a file, in order. `supports` are the sources of the helpers that it now has."""
        return tuple(
            EmittedOptimizer(
                name=decision.use.name,
                line=node.lineno,
                before=unit.source(node),
                after=self.texts.after[unit].get(decision.edit.span, ""),
                legacy_expression=ast.unparse(self._legacy(node, DEEPEST)),
                optax_expression=ast.unparse(self._optax(node, DEEPEST)),
                injected=decision.edit.inject,
                supports=supports,
            )
            for node, decision in self.converted.items()
            if decision.use.unit is unit and isinstance(decision.edit, ConvertDefinition) and isinstance(node, ast.Call)
        )

    def _legacy(self, node: ast.expr, depth: int) -> ast.expr:
        return _substituted(copy.deepcopy(node), self._legacy_parts(node, depth))

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
        assert isinstance(decision.edit, ConvertDefinition | Replace)
        text = self.texts.after[decision.use.unit].get(decision.edit.span, "")
        parts = {
            ast.unparse(inner): self._optax(made, depth - 1)
            for inner in ast.walk(node)
            if isinstance(inner, ast.expr) and depth and (made := self._made_elsewhere(inner, node)) is not None
        }
        return _substituted(ast.parse(f"({text})", mode="eval").body, parts)

    def _made_elsewhere(self, node: ast.expr, whole: ast.expr) -> ast.Call | None:
        """The converted call that makes the definition or traversal at a name within `whole`."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or node is whole:
            return None
        things: list[Thing] = self.facts.things(node, "definition", "traversal")
        return next(
            (thing.node for thing in things if thing.node in self.converted and isinstance(thing.node, ast.Call)), None
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
