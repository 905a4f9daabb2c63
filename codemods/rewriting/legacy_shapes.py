"""Uses that only a legacy object has, counted in a syntax tree.

The check of results by these counts shares nothing with the analysis.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

CERTAIN = (
    "apply_gradient",
    "compute_gradient",
    "optimizer_def",
    "param_states",
    "target",
)
"""Attributes that a train state and a gradient transformation have not."""


def shape_of(node: ast.AST) -> str:
    """The kind of legacy use that a node looks like; empty for any other."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in CERTAIN:
            return f".{name}"
        # optimizer.state.step, or optimizer.state[0].step of a MultiOptimizer
        case (
            ast.Attribute(attr="step", value=ast.Attribute(attr="state"))
            | ast.Attribute(
                attr="step", value=ast.Subscript(value=ast.Attribute(attr="state"))
            )
        ):
            return ".state.step"
        # optimizer.replace(target=params)
        case ast.Call(func=ast.Attribute(attr="replace"), keywords=words):
            if any(word.arg == "target" for word in words):
                return ".replace(target=…)"
    return ""


def keeps_shape(node: ast.AST) -> bool:
    """Whether what a legacy use becomes looks like one, too."""
    match node:
        # trainer.state.state.step, of a field called `state`: trainer.state.step
        case ast.Attribute(
            attr="step",
            value=ast.Attribute(attr="state", value=ast.Attribute(attr="state")),
        ):
            return True
    return False


def shapes_in(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often each kind of legacy use is among some nodes."""
    candidates = (node for node in nodes if isinstance(node, ast.Attribute | ast.Call))
    return Counter(shape for node in candidates if (shape := shape_of(node)))


def too_many(before: Counter[str], after: Counter[str]) -> str:
    """A kind of legacy use of which there is more than may stay; empty if there is none."""
    for shape, number in sorted(after.items()):
        if number > before[shape]:
            return shape
    return ""
