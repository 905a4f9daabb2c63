"""The updates that one side of a command applied, read from its files and put in order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.command.outputs import LeftBehind
from optim2optax.parity.recording.any_optimizer import kind_from
from optim2optax.parity.recording.methods import UNKNOWN
from optim2optax.parity.recording.sketch import Part
from optim2optax.parity.recording.stream import SUFFIX, read

Parts: TypeAlias = dict[Part, NDArray[Any]]
Kind: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
Correspondence: TypeAlias = tuple[str, str, int]
"""A place in the new state, the place in the old one that it corresponds to, and the sign."""


@dataclass(frozen=True)
class Update:
    """One step of one optimizer: its count, if that is known, and the parameters after it.

    Only the first update of a kind in a process has the parameters `before` it. An update that
    moved nothing is idle. Values that a program hands over itself, under the name in `observed`,
    are an update as well; its step is their number among those of that name. `state` is what the
    optimizer keeps beside the parameters, `sizes` how large the gradient of each leaf is, if that
    is known.
    """

    step: int | None
    before: Parts
    after: Parts
    idle: bool = False
    observed: str = ""
    state: Parts = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What distinguishes the updates of different optimizers: the leaves and their shapes."""
        if self.observed:
            return ((f"observed {self.observed}", ()),)
        # A large leaf has several parts.
        leaves = {(part.leaf, part.shape) for part in self.after}
        return tuple(sorted(leaves))


ByKind: TypeAlias = Mapping[Kind, list[Update]]


def by_kind(updates: Iterable[Update]) -> ByKind:
    """The updates of each kind, in order."""
    kinds: dict[Kind, list[Update]] = {}
    for update in updates:
        kinds.setdefault(update.kind, []).append(update)
    return kinds


@dataclass
class Recording:
    """The records of all processes of one side.

    `legacy` says whether there is a legacy optimizer. `foreign` are the files that were loaded
    from the user's own tree, `processes` is how many wrote anything. `replays` are the steps with
    the other side's gradients, `not_replayed` the reasons where there are none. `corresponding`
    has the places of the new state that correspond to some of the old. `left` has the files and
    lines that the command wrote.
    """

    updates: ByKind = field(default_factory=dict)
    legacy: bool = False
    foreign: set[str] = field(default_factory=set)
    processes: int = 0
    replays: ByKind = field(default_factory=dict)
    not_replayed: dict[Kind, str] = field(default_factory=dict)
    corresponding: dict[Kind, list[Correspondence]] = field(default_factory=dict)
    left: LeftBehind = field(default_factory=dict)

    @property
    def of_optimizers(self) -> ByKind:
        """The updates of each optimizer, without what the program hands over itself."""
        # observe("accuracy", accuracy)
        return {
            kind: updates
            for kind, updates in self.updates.items()
            if not updates[0].observed
        }


def recording_of(folder: Path) -> Recording:
    """Read all that the processes of a side wrote into a folder."""
    found = Recording()
    updates: list[Update] = []
    replays: list[Update] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        found.processes += 1
        for facts, arrays in read(path):
            # A record has facts of one kind, such as a step or a file from the user's tree.
            match facts:
                case {"legacy": _}:
                    found.legacy = True
                case {"foreign": files}:
                    found.foreign.update(files)
                case {"step": _}:
                    updates.append(_update(facts, arrays))
                case {"replayed": step}:
                    replays.append(Update(step, {}, arrays["after"]))
                case {"not_replayed": reason}:
                    found.not_replayed[kind_from(facts)] = reason
                case {"corresponding": places}:
                    # JSON has lists in the place of tuples.
                    tuples = [(new, old, sign) for new, old, sign in places]
                    found.corresponding[kind_from(facts)] = tuples
    return replace(found, updates=by_kind(updates), replays=by_kind(replays))


def _update(
    facts: Mapping[str, Any], arrays: Mapping[str, dict[Part, NDArray[Any]]]
) -> Update:
    sizes = arrays.get("sizes", {})
    return Update(
        step=None if facts["step"] == UNKNOWN else facts["step"],
        before=arrays.get("before", {}),
        after=arrays.get("after", {}),
        idle=facts["idle"],
        observed=facts.get("observed", ""),
        state=arrays.get("state", {}),
        sizes={part.leaf: float(value) for part, value in sizes.items()},
    )


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


def uncounted(old: ByKind, new: ByKind) -> Iterator[str]:
    """Where one side repeats what the other does not, as a second run with the same seed does."""
    for kind, updates in old.items():
        before, after = (
            sum(not update.idle for update in side)
            for side in (updates, new.get(kind, ()))
        )
        if before != after:
            yield (
                f"The old side applied {before} updates and the new one {after}; those with the "
                "same step and the same values count once."
            )


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
        for value in part.astype(np.float64).flat[:FIRST]:
            shortened = float(f"{value:.{DIGITS}g}")
            # NaN has no order.
            values.append(shortened if math.isfinite(value) else math.inf)
    return values


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
