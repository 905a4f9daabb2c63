"""Run the user's own training command on the old tree and on the new, and compare every update that it applies."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from optim2optax.parity.judge import Comparison
from optim2optax.parity.noise import settled
from optim2optax.parity.processes import run_whole, watched
from optim2optax.parity.record import UNKNOWN
from optim2optax.parity.side import Side
from optim2optax.parity.sketch import Part
from optim2optax.parity.stream import SUFFIX, read
from optim2optax.parity.trees import TreeError, copy_before, copy_tree, repository_root, surround
from optim2optax.parity.updates import DifferentParametersError, Update, compare_updates

LAST_LINES = 15

PATIENCE = 10
"""The new side may take so many times what the old one took,"""

SHORTEST = 120.0
"""and so many seconds at least."""


class CommandError(RuntimeError):
    """A side that could not be run, or two that cannot be compared; the message says which, and why."""


class WidenedError(CommandError):
    """A side that failed after parameters were given to an optimizer in float64 that were to be in float32."""


@dataclass
class Recording:
    """What the processes of one side recorded."""

    updates: list[Update] = field(default_factory=list)
    legacy: bool = False
    widened: bool = False
    foreign: set[str] = field(default_factory=set)
    processes: int = 0


def compare_command(
    command: Sequence[str],
    before: str,
    folder: Path,
    timeout: float | None = None,
    links: Sequence[Path] = (),
) -> Comparison:
    """Run a command on both sides, each in a working copy of its own, and judge whether they applied the same updates.

    Args:
        command: a training command, as it is given in `folder`.
        before: the old tree: a folder, or a revision of the git repository around `folder`.
        folder: where the command is given; the tree around it, as it is now, is the new one.
        timeout: how many seconds a side may take; None lets the old side take its time, and the new one PATIENCE times that.
        links: what is not copied but linked, such as data that git ignores.

    Raises:
        CommandError: if a side failed, took no step or ran code of the user's own tree, or the old side no legacy optimizer.
        TreeError: if the old tree cannot be had, or what is to be linked.
    """
    try:
        return _compare_command(command, before, folder, timeout, links, wide=True)
    except WidenedError:
        return _compare_command(command, before, folder, timeout, links, wide=False)


def _compare_command(
    command: Sequence[str], before: str, folder: Path, timeout: float | None, links: Sequence[Path], wide: bool
) -> Comparison:
    root = (repository_root(folder) or folder).resolve()
    inside = folder.resolve().relative_to(root)
    originals = (root, Path(before)) if Path(before).is_dir() else (root,)
    with tempfile.TemporaryDirectory(prefix="optim2optax-") as temporary:
        scratch = Path(temporary).resolve()
        old, new, again = (
            Side(name != "after", originals, scratch / name / root.name, scratch, name == "again", wide)
            for name in ("before", "after", "again")
        )
        linked = [_within(path, root) for path in links]
        copy_before(before, root, old.copy, linked)
        copy_tree(root, new.copy, linked)
        for side in (old, new):
            surround(root, side.copy.parent)
        started = time.monotonic()
        first = _record(command, old, inside, timeout)
        if not first.legacy:
            raise CommandError(
                "the old side met no legacy optimizer: nothing that it stepped is of flax.optim or a copy of it"
            )
        patience = timeout or max(SHORTEST, PATIENCE * (time.monotonic() - started))
        second = _record(command, new, inside, patience)

        def compare(gate: float | None = None) -> Comparison:
            return compare_updates(first.updates, second.updates, gate)

        def noise() -> Comparison | None:
            copy_before(before, root, again.copy, linked)
            surround(root, again.copy.parent)
            try:
                third = _record(command, again, inside, patience)
                return compare_updates(first.updates, third.updates)
            except (CommandError, DifferentParametersError):
                return None

        try:
            return settled(compare(), compare, noise)
        except DifferentParametersError as error:
            raise CommandError(str(error)) from error


def _within(path: Path, root: Path) -> Path:
    """A path from the root on. Raises TreeError if it is not there, or outside."""
    full = Path(os.path.abspath(path))
    if not full.exists() or not full.is_relative_to(root):
        raise TreeError(f"{path} cannot be linked into the copies: it is not in {root}")
    return full.relative_to(root)


def _record(command: Sequence[str], side: Side, inside: Path, timeout: float | None) -> Recording:
    """Run one side. Raises CommandError if there is nothing to compare."""
    folder = side.copy / inside
    words = watched(side.command(command))
    try:
        code, errors = run_whole(words, folder, side.environment(folder), timeout)
    except subprocess.TimeoutExpired as hanging:
        said = (hanging.stderr or b"").decode()
        raise CommandError(
            f"the {side.name} side was ended after {timeout:.0f} seconds; --timeout gives it more:\n{_end_of(said)}"
        ) from hanging
    found = _recording(side.records)
    if code:
        kind = WidenedError if found.widened else CommandError
        raise kind(f"the {side.name} side ended with exit code {code}:\n{_end_of(errors)}")
    if found.foreign:
        files = ", ".join(sorted(found.foreign)[:3])
        raise CommandError(
            f"the {side.name} side ran code that is not of its own copy of the tree: {files}. "
            "Find modules by their names, and install a package of the tree with `pip install -e`"
        )
    if not found.processes:
        problems = [path.read_text(encoding="utf-8") for path in sorted(side.records.glob("*.error"))]
        reason = "".join(problems).strip() or (
            "no Python process of the command imported JAX, Flax or optax where it could be recorded; "
            "`python -I`, `-E` and `-S`, or another PYTHONPATH, keep the recorder out"
        )
        raise CommandError(f"the {side.name} side took no step of an optimizer: {reason}")
    if all(update.observed for update in found.updates):
        raise CommandError(f"the {side.name} side took no step of an optimizer")
    return found


def _end_of(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])


def _recording(folder: Path) -> Recording:
    found = Recording()
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        found.processes += 1
        for facts, arrays in read(path):
            found.legacy |= "legacy" in facts
            found.widened |= "widened" in facts
            found.foreign |= set(facts.get("foreign", ()))
            if "step" in facts:
                found.updates.append(_update(facts, arrays))
    return found


def _update(facts: Mapping[str, Any], arrays: Mapping[str, dict[Part, NDArray[Any]]]) -> Update:
    step = facts["step"]
    step = None if step == UNKNOWN else step
    return Update(step, arrays.get("before", {}), arrays.get("after", {}), facts["idle"], facts.get("observed", ""))
