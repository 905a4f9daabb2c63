"""Run the user's own training command on both trees, and compare every update that it applies."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from optim2optax.parity.command.compare import (
    DifferentParametersError,
    compare_updates,
)
from optim2optax.parity.command.float32 import (
    FLOAT32_GATE,
    compared_in_float32,
    keeps_float32,
)
from optim2optax.parity.command.left_behind import compare_left_behind, with_left_behind
from optim2optax.parity.command.optimizers import with_open_loop, with_states
from optim2optax.parity.command.outputs import Wanted
from optim2optax.parity.command.runs import CommandError, FailedError, Runs
from optim2optax.parity.judging.comparison import CLOSED_LOOP_GATE, Comparison, Verdict
from optim2optax.parity.judging.noise import settled

NOTHING = Wanted()


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
        runs = Runs(
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


def _judged(runs: Runs) -> Comparison:
    """Judge the runs in float64, or in the program's own precision where it insists on float32."""
    in_float32 = replace(runs, wide=False)
    try:
        found = _compared(runs)
        insists = found.verdict is Verdict.DIFFERENT and keeps_float32(runs)
        instead = compared_in_float32(in_float32) if insists else None
    except FailedError:
        # The program may not run in float64: `jnp.zeros(3, jnp.float32)` as the carry of a scan.
        instead = compared_in_float32(in_float32)
        if instead is None:
            raise
    if instead is None:
        return _with_left_behind(found, runs)
    return _with_left_behind(instead, in_float32)


def _compared(runs: Runs) -> Comparison:
    """Judge the closed loop by parameters, then by states of optimizers, and then the open loop."""
    old, new = runs.old.updates, runs.new.updates

    def compare(gate: float | None = None) -> Comparison:
        return compare_updates(old, new, gate)

    def noise() -> Comparison | None:
        try:
            if runs.again is None:
                return None
            return compare_updates(old, runs.again.updates)
        except DifferentParametersError:
            return None

    closed = with_states(settled(compare(), compare, noise), runs)
    return with_open_loop(closed, runs)


def _with_left_behind(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of files and lines, which needs a further run of the old side."""
    # A difference of updates explains any difference of files.
    if not runs.wanted or found.verdict is Verdict.DIFFERENT:
        return found
    again = None if runs.again is None else runs.again.left
    gate = CLOSED_LOOP_GATE if runs.wide else FLOAT32_GATE
    return with_left_behind(
        found, compare_left_behind(runs.old.left, runs.new.left, again, gate)
    )
