"""Edits of expressions: another one in the place of one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codemods.optimizers.base import Support
from codemods.rewriting.edits.base import (
    IT,
    Edit,
    Holes,
    Place,
    expressions_within,
    joined,
)
from codemods.sources.modules import Unit


@dataclass(frozen=True)
class Replace(Edit):
    """Replace the expression at `span` by a template.

    Its holes `{name}` are expressions of the original source, by span; the hole `{it}` is what is
    replaced, and `{slices}` in `x[{slices}]` is what a subscript has between its brackets.
    `{optax}`, `{jax}`, `{TrainState}` and the other keys of `analysis.names.CHOICES`
    stand for the names under which the file imports these, and `{support:NAME}` for an emitted
    helper.
    """

    template: str
    holes: Holes = ()
    supports: tuple[Support, ...] = ()

    def gone(self, place: Place) -> Iterable[ast.AST]:
        if IT in self.template or not isinstance(place.node, ast.expr):
            return ()
        unit = place.unit
        whole = self._whole(place.node, unit)
        kept = [span for _, span in self.holes]
        gone: list[ast.AST] = []
        for part in expressions_within(whole):
            # optimizer.target, which becomes `{optimizer}.params`
            is_kept = any(unit.is_in(part, hole) for hole in kept)
            if unit.is_in(part, self.span) and not is_kept:
                gone.append(part)
        return gone

    def _whole(self, node: ast.expr, unit: Unit) -> ast.expr:
        """The outermost expression around a node that is replaced with it; the node if none is."""
        whole = node
        # Type[optim.Optimizer], where the use is `optim.Optimizer`
        for outer in unit.ancestors(node):
            if isinstance(outer, ast.stmt):
                break
            if isinstance(outer, ast.expr) and unit.is_in(outer, self.span):
                whole = outer
        return whole


@dataclass(frozen=True)
class ReplaceQuoted(Edit):
    """Replace names in the quoted annotation at `span`: pairs of a dotted name and a template."""

    names: tuple[tuple[str, str], ...]
    supports: tuple[Support, ...] = ()

    @property
    def texts(self) -> Iterator[str]:
        return (template for _, template in self.names)

    def gone(self, place: Place) -> Iterable[ast.AST]:
        return [part for node in place.said for part in ast.walk(node)]

    def merged(self, other: Edit) -> Edit | None:
        return joined(self, other)
