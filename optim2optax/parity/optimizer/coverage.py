"""What a comparison has to cover: the steps, leaves and rates that the texts speak of."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterator
from typing import Any

import jax.numpy as jnp

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from optim2optax.parity.judging.movement import PyTree, leaves_by_path
from optim2optax.parity.optimizer.probe import probe_params
from optim2optax.parity.optimizer.sampling import constructor
from optim2optax.parity.optimizer.texts import TRAVERSAL, Counterpart, syntax_trees

LONGEST = 20_000
"""The largest number of steps to which a replay goes."""

LARGEST = 512
"""The largest size below and above which leaves are probed."""

SIZES = (".ndim", ".shape", ".size", "ndim(", "len(", "size(")
COUNTING = ast.Add | ast.Mult | ast.Sub


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
                # True is an int, too, and 1.
                numbers = (
                    value for value in _constants(node) if isinstance(value, int)
                )
                found.update(number for number in numbers if 1 < number <= LARGEST)
    return tuple(sorted(found))


def _is_size_argument(node: ast.AST) -> bool:
    # optim.Adafactor(min_dim_size_to_factor=32)
    names = {size for legacy in optimizers().values() for size in legacy.sizes}
    return isinstance(node, ast.keyword) and node.arg in names


def legacy_within(expression: str) -> list[LegacyOptimizer]:
    """The legacy optimizers that an expression may make."""
    known = optimizers().values()
    return [legacy for legacy in known if f"optim.{legacy.name}" in expression]


def _is_comparison_of_sizes(node: ast.AST) -> bool:
    # leaf.ndim > 1
    if not isinstance(node, ast.Compare):
        return False
    text = ast.unparse(node)
    return any(word in text for word in SIZES)


def _constants(node: ast.AST) -> Iterator[Any]:
    """The literals below a node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant):
            yield inner.value


PATH = re.compile(r"/?\w+(/\w+)*/?")
"""Texts that may be a part of a leaf's path."""


def probe_for(emitted: EmittedOptimizer, seed: int) -> PyTree:
    """The parameters with which an optimizer is probed.

    There are leaves at the paths that traversals name, and none that the old optimizer could not
    take.
    """
    usual = list(leaves_by_path(probe_params()))
    further: list[str] = []
    for path in _named_paths(emitted.legacy_expression, usual):
        # A leaf cannot stand where a folder of leaves is.
        leaves = (*usual, *further)
        if not any(_is_around(path, leaf) or _is_around(leaf, path) for leaf in leaves):
            further.append(path)
    made = legacy_within(emitted.legacy_expression)
    scalars = all(legacy.takes_scalars for legacy in made)
    return probe_params(seed, further, scalars)


def _is_around(outer: str, inner: str) -> bool:
    """Whether a path is another one, or a part of it from its start on."""
    return f"{inner}/".startswith(f"{outer}/")


def _named_paths(expression: str, usual: Collection[str]) -> Iterator[str]:
    """Paths of leaves in which the texts of a definition's traversals occur.

    A group without a leaf would prove nothing. A predicate may ask for a layer or for a leaf
    itself, and for several texts at once.
    """
    for node in ast.walk(ast.parse(expression, mode="eval")):
        # optim.ModelParamTraversal(lambda path, _: "Dense_7" in path)
        if not constructor(node).endswith(TRAVERSAL.__name__):
            continue
        texts = [
            value.strip("/")
            for value in _constants(node)
            if isinstance(value, str) and PATH.fullmatch(value)
        ]
        for text in dict.fromkeys(texts):
            if not any(text in leaf for leaf in usual):
                yield from (f"{text}/kernel", f"{text}/bias", f"Module_0/{text}")
        # lambda path, _: "encoder" in path and "kernel" in path
        if len(texts) > 1:
            yield "/".join(texts)


INJECTED = "optax.inject_hyperparams"
RATE = 0.021
RATE_DECAY = 0.97

PERIOD = 150
"""The steps after which the learning rates repeat, so that parameters still move after many."""


def sets_rate(emitted: EmittedOptimizer) -> bool:
    """Whether the learning rate is set at each step, of the optimizer or of one within it."""
    is_set = emitted.injected or bool(emitted.schedule)
    if is_set or isinstance(emitted, Counterpart):
        return is_set
    # optax.multi_transform({"kernels": optax.inject_hyperparams(optax.adam)(…), …}, labels)
    return INJECTED in emitted.optax_expression


def rate(step: int) -> float:
    """The learning rate of both sides at a step, which counts from 0."""
    return RATE * RATE_DECAY ** (step % PERIOD)


def scheduled_rate(count: Any) -> Any:
    """The same rates as a function of a traced step."""
    rates = jnp.asarray([rate(step) for step in range(PERIOD)])
    return rates[count % PERIOD]
