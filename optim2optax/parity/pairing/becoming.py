"""The expressions that the optimizers of a file have become in what `rewrite` emits."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.model import EmittedOptimizer
from optim2optax.parity.pairing.definitions import Definitions
from optim2optax.parity.pairing.exchanging import normal


def what_they_become(
    optimizers: Sequence[EmittedOptimizer], before: Definitions, expected: Definitions
) -> list[tuple[EmittedOptimizer, ast.expr | None]]:
    """The expression that each optimizer has become, or None.

    It is one in the same function or class, if there is one; equal ones are taken in their order.

    Args:
        optimizers: of one file.
        before: the file in the old tree.
        expected: the file as `rewrite` leaves it.
    """
    emitted_nodes = [
        ast.parse(f"({emitted.after})", mode="eval").body for emitted in optimizers
    ]
    kinds = {type(node) for node in emitted_nodes}
    free: dict[str, list[ast.expr]] = {}
    for node in _expressions(expected.tree, kinds):
        free.setdefault(ast.unparse(node), []).append(node)
    found: list[tuple[EmittedOptimizer, ast.expr | None]] = []
    for emitted in sorted(optimizers, key=lambda emitted: emitted.line):
        same = free.get(normal(emitted.after), [])
        scope = before.path(before.scope_at(emitted.line))
        # `optax.adam(1e-3)` may stand in `create_generator` and in `create_critic`.
        in_scope = (node for node in same if expected.path(node) == scope)
        first = same[0] if same else None
        chosen = next(in_scope, first)
        if chosen is not None:
            same.remove(chosen)
        found.append((emitted, chosen))
    return found


def _expressions(tree: ast.AST, kinds: set[type[ast.expr]]) -> list[ast.expr]:
    """The expressions of these types that are read, in the order of the file."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or type(node) not in kinds:
            continue
        # Names, attributes and subscripts may also be assigned to.
        context = getattr(node, "ctx", None)
        if context is None or isinstance(context, ast.Load):
            found.append(node)
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))
