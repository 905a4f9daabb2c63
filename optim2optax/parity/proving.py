"""Which optimizers are proven to become the same function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codemods.model import EmittedOptimizer
from optim2optax.parity.cases import optimizer_case
from optim2optax.processes import share

STEPS, SEED = 120, 0


def prove(optimizers: Sequence[EmittedOptimizer], jobs: int = 1) -> list[bool]:
    """Whether the old and the new form of each optimizer are identical or equivalent.

    Args:
        optimizers: what `rewrite` emits. The same two expressions are compared once.
        jobs: the number of processes.
    """
    distinct = list({_key(optimizer): optimizer for optimizer in optimizers}.values())
    found = dict(zip(map(_key, distinct), _each(distinct, jobs), strict=True))
    return [found[_key(optimizer)] for optimizer in optimizers]


def _each(optimizers: Sequence[EmittedOptimizer], jobs: int) -> Iterator[bool]:
    yield from share(is_proven, optimizers, jobs if len(optimizers) > 1 else 1)


def is_proven(optimizer: EmittedOptimizer) -> bool:
    """Whether the old and the new form of an optimizer are identical or equivalent."""
    return optimizer_case(optimizer.before, optimizer, STEPS, SEED).passes


def _key(optimizer: EmittedOptimizer) -> tuple[str, str]:
    return optimizer.legacy_expression, optimizer.optax_expression
