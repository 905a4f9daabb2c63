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
COUNTING = ast.Add | ast.Mult | ast.Sub
FACTORED = "min_dim_size_to_factor"
"""The argument of Adafactor that is a size."""


def horizon(emitted: EmittedOptimizer, steps: int) -> int:
    """More steps than any number of steps in the expressions, up to LONGEST; 0 if there is none."""
    found = itertools.chain.from_iterable(map(_numbers, syntax_trees(emitted)))
    # A main replay of so many steps does not get past them.
    beyond = [number for number in found if number >= steps - 2]
    if not beyond:
        return 0
    enough = int(max(beyond) * 1.1) + 10
    return min(enough, LONGEST)


def _numbers(node: ast.AST) -> Iterator[float]:
    """The whole numbers in a tree that are no sizes, and the products and sums of two of them."""
    if _is_size_argument(node) or _is_comparison_of_sizes(node):
        return
    # epochs * 1000
    if isinstance(node, ast.BinOp) and isinstance(node.op, COUNTING):
        left = list(_numbers(node.left))
        right = list(_numbers(node.right))
        if len(left) == len(right) == 1:
            is_product = isinstance(node.op, ast.Mult)
            # A difference is counted as a sum: more steps than needed do no harm.
            yield left[0] * right[0] if is_product else left[0] + right[0]
    value = node.value if isinstance(node, ast.Constant) else None
    # 1e4 is a number of steps, too.
    if isinstance(value, int | float) and value % 1 == 0:
        yield float(value)
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def sizes(emitted: EmittedOptimizer) -> tuple[int, ...]:
    """The numbers with which the sizes of leaves are compared, up to LARGEST."""
    found: set[int] = set()
    for tree in syntax_trees(emitted):
        for node in ast.walk(tree):
            if _is_comparison_of_sizes(node) or _is_size_argument(node):
                found.update(_constants(node))
    return tuple(sorted(number for number in found if 1 < number <= LARGEST))


def _is_size_argument(node: ast.AST) -> bool:
    # optim.Adafactor(min_dim_size_to_factor=32)
    return isinstance(node, ast.keyword) and node.arg == FACTORED


def _is_comparison_of_sizes(node: ast.AST) -> bool:
    # leaf.ndim > 1
    if not isinstance(node, ast.Compare):
        return False
    text = ast.unparse(node)
    return any(word in text for word in SIZES)


def _constants(node: ast.AST) -> Iterator[int]:
    """The whole numbers below a node."""
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, int) and not isinstance(value, bool):
            yield value
