"""The updates that one side of a command applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from numpy.typing import NDArray

from optim2optax.parity.recording.sketch import Part

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


def by_kind(updates: Sequence[Update]) -> dict[Kind, list[Update]]:
    """The updates of each kind, in order."""
    kinds: dict[Kind, list[Update]] = {}
    for update in updates:
        of_kind = kinds.setdefault(update.kind, [])
        of_kind.append(update)
    return kinds
