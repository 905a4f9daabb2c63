"""What each Python process of a command imports first: its modules come from the side's own copy, and its steps are recorded.

The folder of this file is put first on PYTHONPATH. Standard library alone: it runs in processes that have nothing of ours.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

VARIABLE = "OPTIM2OPTAX_SIDE"
RECORDED = {"jax", "flax", "optax"}
"""The packages ahead of which the recording starts: a process that imports none of them takes no step."""

APPLICATION = "optim2optax"
OURS = {APPLICATION, "codemods"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.remove": 1,
    "os.rmdir": 1,
    "os.mkdir": 1,
    "os.truncate": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
}
"""What changes files by other means than `open`, and how many of its arguments are paths."""


class Copies:
    """The trees of the user's, and the copies in which the side runs instead."""

    def __init__(self, copies: Sequence[Sequence[str]], kept: Sequence[str]) -> None:
        self.copies = copies
        self.kept = kept

    def of(self, path: str) -> str | None:
        """Where a path into a tree of the user's is in the copy; None if it is in none, or no part of what was copied."""
        full = os.path.abspath(path)
        if any(_inside(full, place) for _, place in self.copies) or any(
            _inside(full, place) for place in self.kept
        ):
            return None
        for original, place in self.copies:
            if _inside(full, original) and "site-packages" not in full[len(original) :].split(
                os.sep
            ):
                return place + full[len(original) :]
        return None

    def instead(self, path: str) -> str:
        """The path in the copy, or the path itself."""
        return self.of(path) or path

    def foreign(self) -> list[str]:
        """The files of modules that were loaded from a tree of the user's all the same, or from an installed copy of it."""
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        return sorted(
            file
            for file in files
            if isinstance(file, str) and (self.of(file) or self._is_installed(file))
        )

    def _is_installed(self, file: str) -> bool:
        """Whether a module of a package comes from among the installed ones, and the tree has one of its name."""
        _, found, inside = file.rpartition(f"{os.sep}site-packages{os.sep}")
        if not found or os.sep not in inside or inside.partition(os.sep)[0] in RECORDED:
            return False
        return any(
            os.path.exists(os.path.join(place, *src, inside))
            for _, place in self.copies
            for src in ((), ("src",))
        )


class Loaded(Loader):
    """The loader of a package that the recorder has imported while the user's program was about to."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec: Any = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module as it is."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed."""
        module.__spec__ = self.spec

    def __getattr__(self, name: str) -> Any:
        """What is asked of the loader besides, such as for files in the package."""
        return getattr(self.spec.loader, name)


class Finder:
    """Finds in the copy what any other finder finds in the user's tree, and starts the recording when it is needed."""

    def __init__(self, side: dict[str, Any], copies: Copies) -> None:
        self.side = side
        self.copies = copies
        self.armed = False
        self.arming = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module, as `sys.meta_path` asks for it."""
        if name == APPLICATION and self.side["elsewhere"]:
            # Its own imports, such as LibCST, are not there.
            bare = ModuleSpec(name, None, is_package=True)
            bare.submodule_search_locations = [os.path.join(self.side["ours"], name)]
            return bare
        if name in OURS:
            return PathFinder.find_spec(name, [self.side["ours"]])
        if name in RECORDED and not self.armed:
            self.armed = True
            self.arm()
            if name in sys.modules:
                return _already(sys.modules[name])
        for finder in sys.meta_path:
            spec = (
                None
                if finder is self or not hasattr(finder, "find_spec")
                else finder.find_spec(name, path, target)
            )
            if spec is not None:
                return self.redirected(spec)
        return None

    def arm(self) -> None:
        """Start the recording. What the recorder imports for itself is nothing of the user's."""
        before = list(sys.path)
        sys.path[:] = [
            place
            for place in before
            if not any(_inside(os.path.abspath(place), c) for _, c in self.copies.copies)
        ]
        self.arming = True
        try:
            arming = "legacy_arming" if self.side["elsewhere"] else "arming"
            import_module(f"{APPLICATION}.parity.{arming}").arm(self.side, self.copies.foreign)
        except ImportError as error:
            _tell(self.side["out"], f"{sys.executable} cannot record: {error}")
        finally:
            self.arming = False
            sys.path[:] = before

    def redirected(self, spec: ModuleSpec) -> ModuleSpec | None:
        """A spec whose files are in the copy."""
        located = spec.origin if spec.has_location else None
        origin = self.copies.of(located) if located else None
        places = spec.submodule_search_locations
        moved = None if places is None else [self.copies.instead(place) for place in places]
        if not origin and (places is None or moved == list(places)):
            return spec
        if self.arming or (origin and not os.path.exists(origin)):
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        if origin:
            return spec_from_file_location(spec.name, origin, submodule_search_locations=moved)
        namespace = ModuleSpec(spec.name, None, is_package=True)
        namespace.submodule_search_locations = moved or []
        return namespace


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _already(module: ModuleType) -> ModuleSpec:
    """A spec by which the import that is under way gets a module as it is. Whoever imports looks at the module's own."""
    spec = copy.copy(module.__spec__)
    assert spec is not None
    spec.loader = Loaded(module)
    module.__spec__ = spec
    return spec


def _tell(folder: str, message: str) -> None:
    with open(os.path.join(folder, f"{os.getpid()}.error"), "a", encoding="utf-8") as file:
        file.write(message + "\n")


def _refuse_changes(copies: Copies, scratch: str) -> None:
    """Refuse to write into the user's own tree, by an absolute path or a link out of the copy."""

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        paths: tuple[Any, ...] = ()
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            paths = arguments[:1]
        elif event in CHANGES:
            paths = arguments[: CHANGES[event]]
        for path in paths:
            if isinstance(path, (str, bytes)) and _is_the_users(os.fsdecode(path), event == "open"):
                reason = "parity writes nothing to your own files; give a path in the tree"
                raise PermissionError(13, reason, os.fsdecode(path))

    def _is_the_users(path: str, followed: bool) -> bool:
        full = os.path.abspath(path)
        if not _inside(full, scratch):
            return copies.of(full) is not None
        real = os.path.realpath(full if followed else os.path.dirname(full))
        return not any(_inside(real, place) for place in (scratch, *copies.kept))

    sys.addaudithook(check)


def _run_the_users() -> None:
    """Run the `sitecustomize` that this one stands before."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _install(side: dict[str, Any]) -> None:
    copies = Copies(side["copies"], side["kept"])
    here = copies.of(os.getcwd())
    if here is not None and os.path.isdir(here):
        os.chdir(here)
    sys.path[:] = [copies.instead(place) if place else place for place in sys.path]
    sys.meta_path.insert(0, Finder(side, copies))
    _refuse_changes(copies, side["scratch"])


try:
    _run_the_users()
finally:
    if VARIABLE in os.environ:
        _install(json.loads(os.environ[VARIABLE]))
