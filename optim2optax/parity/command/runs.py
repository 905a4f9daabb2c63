"""The runs of a command: each side in a working copy of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from optim2optax.parity.command.outputs import left_behind
from optim2optax.parity.command.side import Role, Side
from optim2optax.parity.command.updates import Recording, recording_of
from optim2optax.parity.running.processes import NOT_FOUND, end_of, run_whole, watched
from optim2optax.parity.running.trees import (
    TreeError,
    copy_before,
    copy_tree,
    is_ignored,
    surround,
    tree_around,
)

OUTPUT = "output.txt"

QUOTED = re.compile(r"""['"]([^'"\n]+)['"]""")

PATIENCE = 10
"""The new side may take so many times what the old one took,"""

SHORTEST = 120.0
"""and so many seconds at least."""


class CommandError(RuntimeError):
    """A side could not run, or the two cannot be compared; the message says which, and why."""


class FailedError(CommandError):
    """A side that ended with an exit code."""


@dataclass(frozen=True)
class RunOptions:
    """How a command runs.

    `timeout` is how many seconds a side may take; with None, the old side has no limit, and the new
    one may take PATIENCE times as long as the old one took. `links` is what is not copied but
    linked, such as data that git ignores. The old side runs under `legacy_python`, an interpreter
    with an old Flax, or else that of this process. `files` and `lines` are what the command writes
    and prints, to be compared as well: patterns of paths, and regular expressions.
    """

    timeout: float | None = None
    links: Sequence[Path] = ()
    legacy_python: Path | None = None
    files: Sequence[str] = ()
    lines: Sequence[str] = ()


USUAL = RunOptions()


@dataclass
class Runs:
    """The runs of a command, each in a copy of its own below `scratch`.

    A run takes place when its record is first asked for. `linked` are paths that the old side did
    not find, since a revision has nothing that git ignores.
    """

    command: Sequence[str]
    before: str
    folder: Path
    options: RunOptions
    scratch: Path
    wide: bool = True
    linked: dict[Path, None] = field(default_factory=dict)

    @cached_property
    def root(self) -> Path:
        return tree_around(self.folder)

    @cached_property
    def old(self) -> Recording:
        """What the old side records.

        Raises:
            CommandError: if that is nothing, or there is no legacy optimizer.
        """
        started = time.monotonic()
        found = self._found("before", self.options.timeout)
        if not found.legacy:
            raise CommandError(
                "the old side met no legacy optimizer: "
                "nothing that it stepped is of flax.optim or a copy of it"
            )
        # A new side that hangs ends by itself, without an option.
        taken = time.monotonic() - started
        self.patience = self.options.timeout or max(SHORTEST, PATIENCE * taken)
        return found

    @cached_property
    def new(self) -> Recording:
        """What the new side records, and what it makes of the old side's gradients.

        Raises:
            CommandError: if that is nothing.
        """
        return self._found("after", self.patience)

    @cached_property
    def again(self) -> Recording | None:
        """What the old side records if it rounds otherwise; None if it does not run then."""
        try:
            return self._found("again", self.patience)
        except CommandError:
            return None

    def _found(self, role: Role, timeout: float | None) -> Recording:
        """What a side records, with a link to data that git ignores where it asks for some."""
        while True:
            side = self._side(role)
            try:
                return self._record(side, timeout)
            except FailedError as error:
                missing = self._missing(side, str(error))
                if not missing:
                    raise
                self.linked.update(dict.fromkeys(missing))
                shutil.rmtree(side.copy.parent)

    def _missing(self, side: Side, errors: str) -> list[Path]:
        """The paths in error messages that only the user's tree has, because git ignores them."""
        if not side.legacy or Path(self.before).is_dir():
            return []
        inside = self.folder.resolve().relative_to(self.root)
        found: list[Path] = []
        # No such file or directory: 'data/train.npz'
        for word in QUOTED.findall(errors):
            path = Path(os.path.normpath(side.copy / inside / word))
            if not path.is_relative_to(side.copy):
                continue
            within = path.relative_to(side.copy)
            steps = (*reversed(within.parents[:-1]), within)
            # `data`, if the copy has no such folder
            absent = [one for one in steps if not (side.copy / one).exists()]
            if absent and is_ignored(self.root, absent[0]):
                found.append(absent[0])
        return found

    def _side(self, role: Role) -> Side:
        """A side with its copy of the tree."""
        # With `--before ../old`, paths into either tree mean the copy.
        before = Path(self.before)
        originals = (self.root, before) if before.is_dir() else (self.root,)
        side = Side(
            role, originals, self.scratch, self.options.legacy_python, self.wide
        )
        linked = [_within(path, self.root) for path in self.options.links]
        if side.legacy:
            linked += self.linked
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
                f"--timeout gives it more:\n{end_of(errors)}"
            ) from hanging
        if code:
            kind = CommandError if code == NOT_FOUND else FailedError
            last = end_of(_problems(side) + errors)
            raise kind(f"the {side.name} side ended with exit code {code}:\n{last}")
        found = _checked(recording_of(side.records), side)
        try:
            # Without lines to compare, the output may be long and is not read.
            printed = ""
            files, lines = self.options.files, self.options.lines
            if lines:
                printed = output.read_text(encoding="utf-8", errors="replace")
            left = left_behind(folder, printed, since, files, lines)
            return replace(found, left=left)
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
        raise CommandError(
            f"the {side.name} side took no step of an optimizer: {reason}"
        )
    if not found.of_optimizers:
        raise CommandError(f"the {side.name} side took no step of an optimizer")
    return found


def _within(path: Path, root: Path) -> Path:
    """A path from the root on. Raises TreeError if it does not exist, or is outside."""
    full = Path(os.path.abspath(path))
    if not full.exists() or not full.is_relative_to(root):
        raise TreeError(f"{path} cannot be linked into the copies: it is not in {root}")
    return full.relative_to(root)
