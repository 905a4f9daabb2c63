"""The project that a session is about: its files, the old tree, and what `rewrite` makes of it."""

from __future__ import annotations

import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codemods.model import EmittedOptimizer, FileResult
    from optim2optax.parity.scenario.baseline import Baseline


SCENARIO = "scenario.py"


class Project:
    """The files that a session collects, old and new.

    Each answer is found when it is first asked for, and stays. `baselines` are what the old sides
    of scenarios yielded, by the names of their cases.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.baselines: dict[str, Baseline] = {}

    @cached_property
    def emitted(self) -> Mapping[Path, tuple[EmittedOptimizer, ...]]:
        """The optimizers that `rewrite` would emit, by file.

        All files that are collected are one project. With `--parity-before`, the old tree is
        rewritten, and what it would become is replaced by what the new tree has.
        """
        if self.old_tree is not None:
            return self._in_new_tree(self.old_tree)
        return {path: result.optimizers for path, result in self.rewritten.items()}

    def _in_new_tree(
        self, old_tree: Path
    ) -> Mapping[Path, tuple[EmittedOptimizer, ...]]:
        """The optimizers of the old tree, with what the new tree has in their place."""
        from optim2optax.project import Patterns, find_files

        patterns = Patterns(str(self.config.rootpath), ())
        paths = [str(path) for path in self.paths]
        now = [Path(file.location) for file in find_files(paths, patterns)]
        # A command alone has no files, and then the imports below would be a waste of time.
        if not self.rewritten and not now:
            return {}
        from optim2optax.parity.pairing.counterpart import Pairing

        pairing = Pairing(old_tree, self.root, self.rewritten)
        emitted: dict[Path, tuple[EmittedOptimizer, ...]] = {}
        for old in self.rewritten:
            path = self.root / old.relative_to(old_tree)
            emitted[path] = pairing.in_new_tree(old, path)
        for path in now:
            if path not in emitted and path.suffix == ".py":
                emitted[path] = pairing.of_new_file(path)
        return emitted

    @property
    def paths(self) -> list[Path]:
        """The files and folders that are collected."""
        # An argument may be `train.py::12-adam`, which names one item of a file.
        return [
            Path(argument.partition("::")[0]).resolve() for argument in self.config.args
        ]

    @cached_property
    def rewritten(self) -> Mapping[Path, FileResult]:
        """What `rewrite` would make of each collected file, or of its form in the old tree.

        Files that it would add are among them.
        """
        from optim2optax.project import Patterns, find_files

        before = map(self.before, self.paths)
        old = [str(path) for path in before if path.exists()]
        found = find_files(old, Patterns(str(self.config.rootpath), ()))
        if not found:
            return {}
        from codemods.model import Options
        from optim2optax.rewriting import rewrite_files

        results = rewrite_files(found, Options(), write=False)
        paths = [Path(file.location) for file in found]
        # Behind those of the files are results for new ones, such as a module of helpers.
        paths += [Path(result.path).resolve() for result in results[len(found) :]]
        return dict(zip(paths, results, strict=True))

    @cached_property
    def _rewritten_tree(self) -> Path:
        """A copy of the tree as `rewrite` would leave it."""
        from optim2optax.parity.running.trees import copy_tree

        folder = self._temporary_folder()
        copy_tree(self.root, folder)
        for path, result in self.rewritten.items():
            # A file outside of the repository is not in the copy.
            if result.changed and path.is_relative_to(self.root):
                inside = path.relative_to(self.root)
                (folder / inside).write_bytes(result.after)
        return folder

    def _temporary_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="optim2optax-"))
        self.config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        return folder.resolve()

    @cached_property
    def root(self) -> Path:
        """The root of the repository, or the folder where the session was started."""
        from optim2optax.parity.running.trees import repository_root

        folder = Path(self.config.invocation_params.dir)
        root = repository_root(folder) or folder
        return root.resolve()

    @cached_property
    def old_tree(self) -> Path | None:
        """A copy of the old tree, if `--parity-before` names one.

        Raises:
            pytest.UsageError: if there is no such tree.
        """
        from optim2optax.parity.running.trees import TreeError, copy_before

        before = self.config.getoption("--parity-before")
        if before is None:
            return None
        folder = self._temporary_folder()
        try:
            copy_before(before, self.root, folder)
        except TreeError as error:
            raise pytest.UsageError(str(error)) from error
        # A scenario may have been written after the old code.
        code = (path for path in self.paths if path.name != SCENARIO)
        inside = [*filter(None, map(self._inside, code))]
        if inside and not any((folder / path).exists() for path in inside):
            raise pytest.UsageError(
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


PROJECT = pytest.StashKey[Project]()


def project_of(config: pytest.Config) -> Project:
    """The project of the session with this configuration."""
    if PROJECT not in config.stash:
        config.stash[PROJECT] = Project(config)
    return config.stash[PROJECT]
