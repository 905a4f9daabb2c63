"""How many steps, and which sizes of leaves, the expressions of an optimizer speak of."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.texts import syntax_trees

LONGEST = 20_000
"""The largest number of steps to which a replay goes."""

LARGEST = 512
"""The largest size below and above which leaves are probed."""

SIZES = (".ndim", ".shape", ".size", "ndim(", "len(", "size(")


def horizon(emitted: EmittedOptimizer, steps: int) -> int:
    """More steps than any number of steps in the expressions, up to LONGEST; 0 if there is none."""
    found = itertools.chain.from_iterable(map(_numbers, syntax_trees(emitted)))
    numbers = [number for number in found if number >= steps - 2]
    return min(int(max(numbers) * 1.1) + 10, LONGEST) if numbers else 0


def _numbers(node: ast.AST) -> Iterator[float]:
    """The whole numbers in a tree that are no sizes, and the products and sums of two of them."""
    if isinstance(node, ast.keyword) and node.arg == "min_dim_size_to_factor":
        return
    if isinstance(node, ast.Compare) and any(word in ast.unparse(node) for word in SIZES):
        return
    # epochs * 1000
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Sub):
        parts = [list(_numbers(part)) for part in (node.left, node.right)]
        if all(len(part) == 1 for part in parts):
            (left,), (right,) = parts
            yield left * right if isinstance(node.op, ast.Mult) else left + right
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int | float) and value % 1 == 0:
        yield float(value)
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def sizes(emitted: EmittedOptimizer) -> tuple[int, ...]:
    """The numbers with which the sizes of leaves are compared, up to LARGEST."""
    found = set()
    for tree in syntax_trees(emitted):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(word in ast.unparse(node) for word in SIZES):
                found |= {int(number) for number in _constants(node)}
            if isinstance(node, ast.keyword) and node.arg == "min_dim_size_to_factor":
                found |= {int(number) for number in _constants(node.value)}
    return tuple(sorted(number for number in found if 1 < number <= LARGEST))


def _constants(node: ast.AST) -> Iterator[int]:
    """The whole numbers below a node."""
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, int) and not isinstance(value, bool):
            yield value
