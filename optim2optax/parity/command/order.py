"""Which updates of both sides correspond."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from optim2optax.parity.command.updates import Parts, Update

DIGITS = 6
"""The digits to which values are compared when members are put in order.

More would let rounding decide.
"""

FIRST = 6
"""The number of values of each part that are looked at for that."""


def in_order(
    old: Sequence[Update], new: Sequence[Update]
) -> tuple[list[Update], list[Update]]:
    """The updates of both sides as they correspond.

    They correspond by their steps, or else in the order in which they came, without idle ones.
    """
    # params = optax.apply_updates(params, updates)
    if any(update.step is None for update in (*old, *new)):
        updates = _once(old, counted=False)
        others = _once(new, counted=False)
        return _moving(updates), _moving(others)
    updates = by_step(old)
    others = by_step(new)
    old_steps = [update.step for update in updates]
    new_steps = [update.step for update in others]
    if old_steps == new_steps:
        return updates, others
    # One side may count steps in which nothing moves, as with `optax.MultiSteps`.
    return _moving(updates), _moving(others)


def _moving(updates: Sequence[Update]) -> list[Update]:
    return [update for update in updates if not update.idle]


def _once(updates: Iterable[Update], counted: bool) -> list[Update]:
    """The updates without the copies that further devices or processes record.

    With `counted`, updates of different steps are no copies of each other.
    """
    found: dict[tuple[int | None, bytes], Update] = {}
    for update in updates:
        # Devices add in different orders, so that sums of the same values may differ.
        exact = sorted(exact_parts(update.after).items())
        content = b"".join(values.tobytes() for _, values in exact)
        step = update.step if counted else None
        found.setdefault((step, content), update)
    return list(found.values())


def by_step(updates: Iterable[Update]) -> list[Update]:
    """The updates by their steps, and those of one step by their values.

    The callbacks of the members of an ensemble may come in any order.
    """

    def place(update: Update) -> tuple[int, list[float]]:
        return update.step or 0, _rounded(update.after)

    return sorted(_once(updates, counted=True), key=place)


def _rounded(parts: Parts) -> list[float]:
    """The first values of each part, where different members of an ensemble differ."""
    values: list[float] = []
    for _, part in sorted(parts.items()):
        first = part.astype(np.float64).flat[:FIRST]
        values += [_shortened(float(value)) for value in first]
    return values


def _shortened(value: float) -> float:
    """A number to DIGITS digits; NaN, which has no order, is infinity."""
    if not math.isfinite(value):
        return math.inf
    return float(f"{value:.{DIGITS}g}")


def exact_parts(parts: Parts) -> Parts:
    """The parts that have the same bits if the parameters have.

    Sums do not, as they depend on the order of addition.
    """
    return {part: values for part, values in parts.items() if part.name != "sums"}


def first_of_each_step(replays: Sequence[Update]) -> list[Update]:
    """Replays in order; several processes may have done the same."""
    # The first of several stays, as it is put in last.
    found = {update.step: update for update in reversed(replays)}
    return [found[step] for step in range(len(found))]
