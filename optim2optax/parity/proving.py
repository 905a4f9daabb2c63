"""The proofs that optimizers become the same function, for `rewrite --verify`."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.model import EmittedOptimizer
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.reports.result import Case
from optim2optax.workers import share

STEPS, SEED = 120, 0


def prove(optimizers: Sequence[EmittedOptimizer], jobs: int = 1) -> list[Case]:
    """A comparison of the old and the new form of each optimizer.

    Args:
        optimizers: what `rewrite` emits. The same two expressions are compared once.
        jobs: the number of processes.
    """
    distinct = {_key(optimizer): optimizer for optimizer in optimizers}
    # One comparison is not worth the start of a process.
    processes = jobs if len(distinct) > 1 else 1
    cases = share(_case, list(distinct.values()), processes)
    by_key = dict(zip(distinct, cases, strict=True))
    return [by_key[_key(optimizer)] for optimizer in optimizers]


def _case(optimizer: EmittedOptimizer) -> Case:
    return optimizer_case(optimizer.before, optimizer, STEPS, SEED)


def _key(optimizer: EmittedOptimizer) -> tuple[str, str]:
    return optimizer.legacy_expression, optimizer.optax_expression
