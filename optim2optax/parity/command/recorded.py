"""The records of one side of a command, read from the files of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from optim2optax.parity.command.outputs import LeftBehind
from optim2optax.parity.command.updates import Correspondence, Kind, Update, by_kind
from optim2optax.parity.recording.kinds import kind_from
from optim2optax.parity.recording.recorder import UNKNOWN
from optim2optax.parity.recording.sketch import Part
from optim2optax.parity.recording.stream import SUFFIX, read


@dataclass
class Recording:
    """The records of all processes of one side.

    `legacy` says whether there is a legacy optimizer. `foreign` are the files that were loaded
    from the user's own tree, `processes` is how many wrote anything. `replays` are the steps with
    the other side's gradients, `not_replayed` the reasons where there are none. `corresponding`
    has the places of the new state that correspond to some of the old. `left` has the files and
    lines that the command wrote.
    """

    updates: list[Update] = field(default_factory=list)
    legacy: bool = False
    foreign: set[str] = field(default_factory=set)
    processes: int = 0
    replays: list[Update] = field(default_factory=list)
    not_replayed: dict[Kind, str] = field(default_factory=dict)
    corresponding: dict[Kind, list[Correspondence]] = field(default_factory=dict)
    left: LeftBehind = field(default_factory=dict)


def recording_of(folder: Path) -> Recording:
    """Read all that the processes of a side wrote into a folder."""
    found = Recording()
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
                    found.updates.append(_update(facts, arrays))
                case {"replayed": step}:
                    found.replays.append(Update(step, {}, arrays["after"]))
                case {"not_replayed": reason}:
                    found.not_replayed[kind_from(facts)] = reason
                case {"corresponding": places}:
                    # JSON has lists in the place of tuples.
                    tuples = [(new, old, sign) for new, old, sign in places]
                    found.corresponding[kind_from(facts)] = tuples
    return found


def of_optimizers(side: Recording) -> dict[Kind, list[Update]]:
    """The updates of each optimizer, without what the program hands over itself."""
    kinds = by_kind(side.updates)
    # observe("accuracy", accuracy)
    return {kind: updates for kind, updates in kinds.items() if not updates[0].observed}


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
