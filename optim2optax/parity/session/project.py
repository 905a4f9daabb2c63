"""The project that a session is about: its files, the old tree, and what `rewrite` makes of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import click

from codemods.model import EmittedOptimizer, FileResult, Options
from optim2optax.parity.command.runs import USUAL, RunOptions
from optim2optax.parity.running.trees import (
    TreeError,
    copy_before,
    copy_tree,
    tree_around,
)
from optim2optax.project import Found, Patterns, find_files

SCENARIO = "scenario.py"


@dataclass(frozen=True)
class Request:
    """What is to be compared, and how.

    `paths` are files and folders, `folder` is where they were given. The old side is the tree
    `before`, a git revision or a folder, if there is one, or the baselines in a file `against`
    which to compare. `command` is a training command, which runs with `options`.
    """

    paths: tuple[Path, ...]
    folder: Path
    before: str | None = None
    against: Path | None = None
    steps: int = 120
    seed: int = 0
    command: tuple[str, ...] = ()
    options: RunOptions = USUAL


class Project:
    """The files that a session is about, old and new.

    Each answer is found when it is first asked for, and stays. Copies of trees are below `scratch`.
    """

    def __init__(self, request: Request, scratch: Path) -> None:
        self.request = request
        self.scratch = scratch.resolve()

    def shown(self, path: Path) -> str:
        """The path of a file, from the folder where the session was started."""
        folder = self.request.folder.resolve()
        inside = path.is_relative_to(folder)
        return str(path.relative_to(folder) if inside else path)

    @cached_property
    def files(self) -> list[Path]:
        """The files of Python and notebooks as they are now."""
        return [Path(file.location) for file in self._found(self.request.paths)]

    def _found(self, paths: Iterable[Path]) -> list[Found]:
        return find_files(map(str, paths), Patterns(str(self.request.folder), ()))

    @cached_property
    def emitted(self) -> Mapping[Path, tuple[EmittedOptimizer, ...]]:
        """The optimizers that `rewrite` would emit, by file.

        All files that are collected are one project. With an old tree, that is
        rewritten, and what it would become is replaced by what the new tree has.
        """
        if not self.request.paths:
            return {}
        if self.old_tree is None:
            return {path: result.optimizers for path, result in self.rewritten.items()}
        from optim2optax.parity.pairing.counterpart import Pairing

        old, new = self.old_tree, self.root
        results = {
            str(path.relative_to(old)): result
            for path, result in self.rewritten.items()
        }
        pairing = Pairing(self._contents(old), self._contents(new), results)
        own = (path for path in self.files if path.is_relative_to(new))
        paths = dict.fromkeys((*results, *(str(path.relative_to(new)) for path in own)))
        return {new / path: pairing.in_new_tree(path) for path in paths}

    def _contents(self, root: Path) -> dict[str, bytes]:
        """What is in the files of a tree, by their paths in it."""
        files = (Path(file.location) for file in self._found([root]))
        inside = (path for path in files if path.is_relative_to(root))
        return {str(path.relative_to(root)): path.read_bytes() for path in inside}

    @cached_property
    def rewritten(self) -> Mapping[Path, FileResult]:
        """What `rewrite` would make of each collected file, or of its form in the old tree.

        Files that it would add are among them.
        """
        before = map(self.before, self.request.paths)
        found = self._found(path for path in before if path.exists())
        if not found:
            return {}
        from optim2optax.rewriting import rewrite_files

        results = rewrite_files(found, Options(), write=False)
        paths = [Path(file.location) for file in found]
        # Behind those of the files are results for new ones, such as a module of helpers.
        paths += [Path(result.path).resolve() for result in results[len(found) :]]
        return dict(zip(paths, results, strict=True))

    @cached_property
    def _rewritten_tree(self) -> Path:
        """A copy of the tree as `rewrite` would leave it."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        copy_tree(self.root, folder)
        for path, result in self.rewritten.items():
            # A file outside of the repository is not in the copy.
            if result.changed and path.is_relative_to(self.root):
                inside = path.relative_to(self.root)
                (folder / inside).write_bytes(result.after)
        return folder

    @cached_property
    def root(self) -> Path:
        return tree_around(self.request.folder)

    @cached_property
    def old_tree(self) -> Path | None:
        """A copy of the old tree, if one is given.

        Raises:
            click.UsageError: if there is no such tree.
        """
        if self.request.before is None:
            return None
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            copy_before(self.request.before, self.root, folder)
        except TreeError as error:
            raise click.UsageError(str(error)) from error
        # A scenario may have been written after the old code.
        code = (path for path in self.request.paths if path.name != SCENARIO)
        inside = [*filter(None, map(self._inside, code))]
        if inside and not any((folder / path).exists() for path in inside):
            raise click.UsageError(
                f"the old code has no {inside[0]}: the folder of --before has to be laid out "
                f"as {self.root}"
            )
        return folder

    def before(self, path: Path) -> Path:
        """Where a path of the new tree was in the old one.

        It is the path itself where there is no old tree, or where the path is outside of it.
        """
        inside = self._inside(path)
        if self.old_tree is None or inside is None:
            return path
        return self.old_tree / inside

    def after(self, path: Path) -> Path:
        """The new form of a file.

        With an old tree it is the file as it is now, else that in a rewritten copy of the tree.
        """
        inside = self._inside(path)
        if self.old_tree is not None or inside is None:
            return path
        return self._rewritten_tree / inside

    def _inside(self, path: Path) -> Path | None:
        """A path from the root on; None if it is outside."""
        full = path.resolve()
        return full.relative_to(self.root) if full.is_relative_to(self.root) else None
