"""Run the user's own training command on the old tree and on the new, and compare every update that it applies."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judge import Comparison, judge
from optim2optax.parity.processes import run_whole
from optim2optax.parity.record import UNKNOWN
from optim2optax.parity.trees import copy_before, copy_tree, repository_root

LAST_LINES = 15


class CommandError(RuntimeError):
    """A side that could not be run, or two that cannot be compared; the message says which, and why."""


@dataclass(frozen=True)
class Update:
    """One step of one optimizer: its count, and the parameters ahead of it and after it, by leaf."""

    step: int
    before: dict[str, NDArray[Any]]
    after: dict[str, NDArray[Any]]

    @property
    def kind(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """What tells the updates of different optimizers apart: leaves and shapes."""
        return tuple((leaf, values.shape) for leaf, values in sorted(self.after.items()))


def compare_command(command: Sequence[str], before: str, folder: Path) -> Comparison:
    """Run a command on both sides, each in a working copy of its own, and judge whether they applied the same updates.

    Args:
        command: `python script.py …` or `python -m module …`, as it is given in `folder`.
        before: the old tree: a folder, or a revision of the git repository around `folder`.
        folder: where the command is given; the tree around it, as it is now, is the new one.

    Raises:
        CommandError: if a side failed or took no step, or the two did not take the same steps.
        TreeError: if the old tree cannot be had.
    """
    root = repository_root(folder) or folder
    with tempfile.TemporaryDirectory(prefix="optim2optax-") as scratch:
        old, new = Path(scratch, "before"), Path(scratch, "after")
        copy_before(before, root, old)
        copy_tree(root, new)
        inside = folder.resolve().relative_to(root.resolve())
        sides = [
            _record(command, tree / inside, Path(scratch, f"{side}.npz"), side)
            for side, tree in (("legacy", old), ("modern", new))
        ]
    return compare_updates(*sides)


def _record(command: Sequence[str], folder: Path, out: Path, side: str) -> list[Update]:
    recorder = [sys.executable, "-m", "optim2optax.parity.record", "--out", str(out), "--side", side]
    recorder += ["--parent", str(os.getpid()), "--"]
    code, errors = run_whole([*recorder, *command], folder, {**os.environ, "PYTHONSAFEPATH": "1"})
    name = "old" if side == "legacy" else "new"
    if code:
        lines = "\n".join(errors.strip().splitlines()[-LAST_LINES:])
        raise CommandError(f"the {name} side ended with exit code {code}:\n{lines}")
    updates = _load(out)
    if not updates:
        raise CommandError(f"the {name} side took no step of an optimizer")
    return updates


def _load(path: Path) -> list[Update]:
    found: dict[int, Update] = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            number, _, rest = key.partition("/")
            update = found.setdefault(int(number), Update(int(arrays[f"{number}/step"]), {}, {}))
            side, _, leaf = rest.partition("/")
            if side != "step":
                {"before": update.before, "after": update.after}[side][leaf] = arrays[key]
    return [found[number] for number in sorted(found)]


def compare_updates(old: Sequence[Update], new: Sequence[Update]) -> Comparison:
    """Judge two recordings. Updates correspond by their leaves, their count if that is known, and the order in which they came.

    Raises:
        CommandError: if one side has updates that the other has not.
    """
    before, after = _by_kind(old), _by_kind(new)
    if before.keys() != after.keys():
        raise CommandError("the two sides step different parameters")
    compared = []
    for kind, updates in before.items():
        others = after[kind]
        by_order = any(update.step == UNKNOWN for update in (*updates, *others))
        steps, other_steps = ([update.step for update in side] for side in (updates, others))
        if len(steps) != len(other_steps) or (steps != other_steps and not by_order):
            raise CommandError(f"the old side took {len(updates)} steps of an optimizer, the new side {len(others)}")
        start = updates[0].before
        compared.append(judge(_stacked(updates), _stacked(others), start, closed_loop=True))
    worst = max(compared, key=lambda comparison: comparison.error)
    first = min(
        (found.first_difference for found in compared if found.first_difference is not None),
        key=lambda difference: difference.step,
        default=None,
    )
    different = next((found for found in compared if found.first_difference is first), worst)
    return different if first is not None else worst


def _by_kind(updates: Sequence[Update]) -> dict[Any, list[Update]]:
    """The updates of each optimizer in the order of their steps. What several devices did alike counts once."""
    kinds: dict[Any, dict[tuple[int, bytes], Update]] = {}
    for update in updates:
        content = b"".join(values.tobytes() for _, values in sorted({**update.after}.items()))
        kinds.setdefault(update.kind, {}).setdefault((update.step, content), update)
    return {kind: sorted(found.values(), key=lambda update: update.step) for kind, found in kinds.items()}


def _stacked(updates: Sequence[Update]) -> dict[str, NDArray[Any]]:
    return {leaf: np.stack([update.after[leaf] for update in updates]) for leaf in updates[0].after}
