"""Run the user's own training command on both trees, and compare every update that it applies."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from optim2optax.parity.judge import CLOSED_LOOP_GATE, Comparison, Verdict
from optim2optax.parity.left_behind import (
    Wanted,
    compare_left_behind,
    left_behind,
    with_left_behind,
)
from optim2optax.parity.noise import settled
from optim2optax.parity.processes import NOT_FOUND, run_whole, watched
from optim2optax.parity.record import is_small
from optim2optax.parity.recorded import Recording, recording_of
from optim2optax.parity.reports.text import figures
from optim2optax.parity.side import Side
from optim2optax.parity.states import NOT_COMPARED, merged
from optim2optax.parity.trees import TreeError, copy_before, copy_tree, repository_root, surround
from optim2optax.parity.updates import (
    DifferentParametersError,
    Kind,
    Update,
    by_kind,
    compare_replays,
    compare_states,
    compare_updates,
)

LAST_LINES = 15
OUTPUT = "output.txt"
NOTHING = Wanted()

PATIENCE = 10
"""The new side may take so many times what the old one took,"""

SHORTEST = 120.0
"""and so many seconds at least."""

FLOAT32_GATE = 1e-5
"""The gate of a closed loop in float32, unless rounding explains more,"""

FACTOR_IN_FLOAT32 = 20
"""which is so many times what becomes of one unit in the last place.

The usual factor would let faults of a thousandth pass.
"""

IN_FLOAT32 = (
    "The program insists on float32. "
    "It ran in that, and its updates alone are judged, computed anew in float64."
)
OPEN_LOOP = "This is the open loop: the old side's gradients, replayed."


class CommandError(RuntimeError):
    """A side could not run, or the two cannot be compared; the message says which, and why."""


def compare_command(
    command: Sequence[str],
    before: str,
    folder: Path,
    timeout: float | None = None,
    links: Sequence[Path] = (),
    legacy_python: Path | None = None,
    wanted: Wanted = NOTHING,
) -> Comparison:
    """Run a command on both sides, and judge whether they applied the same updates.

    Each side runs in a working copy of its own.

    Args:
        command: a training command, as it is given in `folder`.
        before: the old tree: a folder, or a revision of the git repository around `folder`.
        folder: where the command is given; the tree around it, as it is now, is the new one.
        timeout: how many seconds a side may take. With None, the old side has no limit, and the
            new one may take PATIENCE times as long as the old one took.
        links: what is not copied but linked, such as data that git ignores.
        legacy_python: an interpreter with an old Flax, under which the old side runs; None
            stands for the one of this process.
        wanted: files and lines that the command writes, to be compared as well.

    Raises:
        CommandError: if a side failed, took no step or ran code of the user's own tree, or if
            the old side has no legacy optimizer.
        TreeError: if the old tree cannot be copied, or a link leads nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="optim2optax-") as temporary:
        runs = _Runs(
            command,
            before,
            folder,
            timeout,
            links,
            legacy_python,
            wanted,
            Path(temporary).resolve(),
        )
        try:
            return _judged(runs)
        except DifferentParametersError as error:
            raise CommandError(str(error)) from error


def _judged(runs: _Runs) -> Comparison:
    """Judge the runs in float64, or in the program's own precision where it insists on float32."""
    in_float32 = replace(runs, wide=False)
    try:
        found = _compared(runs)
        insists = found.verdict is Verdict.DIFFERENT and _keeps_float32(runs)
        instead = _compared_in_float32(in_float32) if insists else None
    except _FailedError:
        # The program may not run in float64: `jnp.zeros(3, jnp.float32)` as the carry of a scan.
        instead = _compared_in_float32(in_float32)
        if instead is None:
            raise
    if instead is None:
        return _with_left_behind(found, runs)
    return _with_left_behind(instead, in_float32)


class _FailedError(CommandError):
    """A side that ended with an exit code."""


def _compared(runs: _Runs) -> Comparison:
    """Judge the closed loop by parameters, then by states of optimizers, and then the open loop."""
    old, new = runs.old.updates, runs.new.updates

    def compare(gate: float | None = None) -> Comparison:
        return compare_updates(old, new, gate)

    def noise() -> Comparison | None:
        try:
            return None if runs.again is None else compare_updates(old, runs.again.updates)
        except DifferentParametersError:
            return None

    closed = _with_states(settled(compare(), compare, noise), runs)
    return _with_open_loop(closed, runs)


def _keeps_float32(runs: _Runs) -> bool:
    """Whether either side has parameters in float32, though float64 is the default."""
    for side in (runs.old, runs.new):
        for updates in _of_optimizers(side).values():
            if any(values.dtype == np.float32 for values in updates[0].after.values()):
                return True
    return False


def _compared_in_float32(runs: _Runs) -> Comparison | None:
    """Judge a program that insists on float32 by its updates, which are computed anew in float64.

    The closed loop has the last word where it departs by more than rounding explains. The result
    is None if the program does not run in its own precision either.
    """
    try:
        closed = _closed_loop_in_float32(runs)
    except (CommandError, DifferentParametersError):
        return None
    if closed.verdict is Verdict.DIFFERENT:
        return replace(closed, remarks=(IN_FLOAT32, *closed.remarks))
    shadows = by_kind(runs.old.replays)
    replays = by_kind(runs.new.replays)
    judged = []
    for kind, updates in _of_optimizers(runs.old).items():
        if kind not in shadows or kind not in replays:
            reason = _why_not_replayed(kind, updates, runs.new)
            why = f"Of {_shown(kind)} that cannot be done: {reason}."
            return replace(closed, verdict=Verdict.NOTHING_PROVEN, remarks=(IN_FLOAT32, why))
        judged.append(compare_replays(updates, replays[kind], shadows[kind]))
    worst = _worst(judged)
    return replace(
        worst,
        drift=closed.error,
        drift_by_step=closed.error_by_step,
        remarks=(IN_FLOAT32, *worst.remarks),
    )


def _closed_loop_in_float32(runs: _Runs) -> Comparison:
    """The closed loop, by a gate that takes in what rounding in float32 does to this program."""
    old, new = runs.old.updates, runs.new.updates
    closed = compare_updates(old, new, FLOAT32_GATE)
    if closed.error >= FLOAT32_GATE and runs.again is not None:
        noise = compare_updates(old, runs.again.updates).error
        closed = compare_updates(old, new, max(FLOAT32_GATE, FACTOR_IN_FLOAT32 * noise))
    return closed


def _worst(judged: Sequence[Comparison]) -> Comparison:
    """The comparison with the largest error, of those that differ, else the unproven, else all."""
    different = [found for found in judged if found.verdict is Verdict.DIFFERENT]
    unproven = [found for found in judged if found.verdict is Verdict.NOTHING_PROVEN]
    return max(different or unproven or judged, key=lambda found: found.error)


def _with_states(found: Comparison, runs: _Runs) -> Comparison:
    """The comparison, with that of the optimizers' states, such as their momentum."""
    for kind, updates in _of_optimizers(runs.old).items():
        if found.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN):
            return found
        state = _states_compared(kind, updates, runs)
        if state is None:
            found = replace(found, remarks=(*found.remarks, NOT_COMPARED))
        elif state.verdict is Verdict.NOTHING_PROVEN:
            found = replace(found, remarks=(*found.remarks, *state.remarks))
        else:
            found = merged(found, state)
    return found


def _states_compared(kind: Kind, old: Sequence[Update], runs: _Runs) -> Comparison | None:
    """The comparison of the states of one optimizer; None if no places are known to correspond."""
    places = runs.new.corresponding.get(kind, ())
    new = by_kind(runs.new.updates)[kind]

    def compare(gate: float | None = None) -> Comparison | None:
        return compare_states(old, new, places, gate)

    def noise() -> Comparison | None:
        rounded = [] if runs.again is None else by_kind(runs.again.updates).get(kind, [])
        # Both are runs of the old side: each place corresponds to itself.
        return compare_states(old, rounded, [(source, source, 1) for _, source, _ in places])

    found = compare()
    if found is None:
        return None
    return settled(found, lambda gate: compare(gate) or found, noise)


def _with_open_loop(found: Comparison, runs: _Runs) -> Comparison:
    """The comparison, with that of the new transformations alone, on the old side's gradients."""
    replays = by_kind(runs.new.replays)
    opened: list[Comparison] = []
    without: list[str] = []
    for kind, updates in _of_optimizers(runs.old).items():
        if kind in replays:
            opened.append(compare_replays(updates, replays[kind]))
        else:
            reason = _why_not_replayed(kind, updates, runs.new)
            without.append(f"In open loop, {_shown(kind)} cannot be compared: {reason}.")
    worst = max(opened, key=lambda comparison: comparison.error, default=None)
    if worst is None:
        return replace(found, remarks=(*found.remarks, *without))
    if worst.verdict is Verdict.DIFFERENT and found.verdict is not Verdict.DIFFERENT:
        return replace(worst, remarks=(OPEN_LOOP,))
    note = f"In open loop: {figures(worst)}."
    return replace(found, remarks=(*found.remarks, note, *without))


def _with_left_behind(found: Comparison, runs: _Runs) -> Comparison:
    """The comparison, with that of files and lines, which needs a further run of the old side."""
    # A difference of updates explains any difference of files.
    if not runs.wanted or found.verdict is Verdict.DIFFERENT:
        return found
    again = None if runs.again is None else runs.again.left
    gate = CLOSED_LOOP_GATE if runs.wide else FLOAT32_GATE
    return with_left_behind(found, compare_left_behind(runs.old.left, runs.new.left, again, gate))


def _why_not_replayed(kind: Kind, old: Sequence[Update], new: Recording) -> str:
    if not is_small(kind):
        return "its gradients are too large to be kept"
    # params = optax.apply_updates(params, updates)
    if any(update.step is None for update in old):
        return "the old side applies its updates by hand"
    return new.not_replayed.get(kind, "the new side applies its updates by hand")


def _shown(kind: Kind) -> str:
    """An optimizer as people read it: by the first of its leaves."""
    leaf, _ = kind[0]
    text = f"the optimizer of {leaf}"
    return f"{text} and {len(kind) - 1} more" if len(kind) > 1 else text


def _of_optimizers(side: Recording) -> dict[Kind, list[Update]]:
    """The updates of each optimizer, without what the program hands over itself."""
    kinds = by_kind(side.updates)
    return {kind: updates for kind, updates in kinds.items() if not updates[0].observed}


@dataclass
class _Runs:
    """The runs of a command, each in a copy of its own below `scratch`.

    A run takes place when its record is first asked for.
    """

    command: Sequence[str]
    before: str
    folder: Path
    timeout: float | None
    links: Sequence[Path]
    legacy_python: Path | None
    wanted: Wanted
    scratch: Path
    wide: bool = True

    @cached_property
    def root(self) -> Path:
        """The root of the repository around the folder, or the folder."""
        return (repository_root(self.folder) or self.folder).resolve()

    @cached_property
    def old(self) -> Recording:
        """What the old side records.

        Raises:
            CommandError: if that is nothing, or there is no legacy optimizer.
        """
        started = time.monotonic()
        found = self._record(self._side("before"), self.timeout)
        if not found.legacy:
            raise CommandError(
                "the old side met no legacy optimizer: "
                "nothing that it stepped is of flax.optim or a copy of it"
            )
        # A new side that hangs ends by itself, without an option.
        self.patience = self.timeout or max(SHORTEST, PATIENCE * (time.monotonic() - started))
        return found

    @cached_property
    def new(self) -> Recording:
        """What the new side records, and what it makes of the old side's gradients.

        Raises:
            CommandError: if that is nothing.
        """
        return self._record(self._side("after"), self.patience)

    @cached_property
    def again(self) -> Recording | None:
        """What the old side records if it rounds otherwise; None if it does not run then."""
        try:
            return self._record(self._side("again"), self.patience)
        except CommandError:
            return None

    def _called(self, name: str) -> str:
        return name if self.wide else f"{name}-in-float32"

    def _side(self, name: str) -> Side:
        """A side with its copy of the tree.

        Args:
            name: "before" for the old tree, "again" for the old tree with rounding, "after".
        """
        legacy = name != "after"
        before_is_folder = Path(self.before).is_dir()
        side = Side(
            legacy,
            (self.root, Path(self.before)) if before_is_folder else (self.root,),
            self.scratch / self._called(name) / self.root.name,
            self.scratch,
            rounding=name == "again",
            elsewhere=self.legacy_python if legacy else None,
            inputs=name == "before",
            replays=None if legacy else self.scratch / f"records-{self._called('before')}",
            wide=self.wide,
        )
        linked = [_within(path, self.root) for path in self.links]
        if legacy:
            copy_before(self.before, self.root, side.copy, linked)
        else:
            copy_tree(self.root, side.copy, linked)
        # The program may read `../data`.
        surround(self.root, side.copy.parent)
        return side

    def _record(self, side: Side, timeout: float | None) -> Recording:
        """Run one side. Raises CommandError if there is nothing to compare."""
        folder = side.copy / self.folder.resolve().relative_to(self.root)
        words = watched(side.command(self.command))
        environment = side.environment(folder)
        output = side.records / OUTPUT
        output.touch()
        # Files that are older than this were not written by the command.
        since = output.stat().st_mtime_ns
        try:
            code, errors = run_whole(words, folder, environment, timeout, output)
        except subprocess.TimeoutExpired as hanging:
            errors = (hanging.stderr or b"").decode()
            raise CommandError(
                f"the {side.name} side was ended after {timeout:.0f} seconds; "
                f"--timeout gives it more:\n{_end_of(errors)}"
            ) from hanging
        if code:
            kind = CommandError if code == NOT_FOUND else _FailedError
            last = _end_of(_problems(side) + errors)
            raise kind(f"the {side.name} side ended with exit code {code}:\n{last}")
        found = _checked(recording_of(side.records), side)
        try:
            # Without lines to compare, the output may be long and is not read.
            printed = ""
            if self.wanted.lines:
                printed = output.read_text(encoding="utf-8", errors="replace")
            return replace(found, left=left_behind(folder, printed, since, self.wanted))
        except (LookupError, ValueError) as error:
            raise CommandError(f"the {side.name} side {error}") from error


def _problems(side: Side) -> str:
    """Why processes of a side could not be recorded."""
    paths = sorted(side.records.glob("*.error"))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def _checked(found: Recording, side: Side) -> Recording:
    """What a side recorded.

    Raises:
        CommandError: if it is not of that side's own code, or has no step.
    """
    if found.foreign:
        files = ", ".join(sorted(found.foreign)[:3])
        raise CommandError(
            f"the {side.name} side ran code that is not of its own copy of the tree: {files}. "
            "Find modules by their names, and install a package of the tree with `pip install -e`"
        )
    if not found.processes:
        reason = _problems(side).strip() or (
            "no Python process of the command imported JAX, Flax or optax "
            "where it could be recorded; "
            "`python -I`, `-E` and `-S`, or another PYTHONPATH, keep the recorder out"
        )
        raise CommandError(f"the {side.name} side took no step of an optimizer: {reason}")
    if all(update.observed for update in found.updates):
        raise CommandError(f"the {side.name} side took no step of an optimizer")
    return found


def _within(path: Path, root: Path) -> Path:
    """A path from the root on. Raises TreeError if it does not exist, or is outside."""
    full = Path(os.path.abspath(path))
    if not full.exists() or not full.is_relative_to(root):
        raise TreeError(f"{path} cannot be linked into the copies: it is not in {root}")
    return full.relative_to(root)


def _end_of(text: str) -> str:
    """The last lines of what a command wrote to its stderr."""
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])
