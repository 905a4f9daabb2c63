"""The first module that each Python process of a command imports.

It lets modules come from the side's own copy, and has steps recorded. The folder of this file is
put first on PYTHONPATH. It uses the standard library alone, as it runs in processes that may have
no other package.
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
"""The packages ahead of which the recording starts.

A process that imports none of them takes no step.
"""

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
"""The audit events of other changes to files than by `open`, and how many arguments are paths."""


class Copies:
    """The user's trees, and the copies in which the side runs instead."""

    def __init__(self, copies: Sequence[Sequence[str]], kept: Sequence[str]) -> None:
        self.copies = copies
        self.kept = kept
        self._elsewhere = [*(place for _, place in copies), *kept]

    def of(self, path: str) -> str | None:
        """The place in the copy of a path into one of the user's trees.

        It is None if the path leads elsewhere, or to files that are not copied.
        """
        full = os.path.abspath(path)
        if any(_inside(full, place) for place in self._elsewhere):
            return None
        for original, place in self.copies:
            if _inside(full, original):
                inside = full[len(original) :]
                if "site-packages" not in inside.split(os.sep):
                    return place + inside
        return None

    def instead(self, path: str) -> str:
        """The path in the copy, or the path itself."""
        return self.of(path) or path

    def foreign(self) -> list[str]:
        """The files of modules that were loaded from the user's trees, or from installed copies."""
        modules = list(sys.modules.values())
        files = {getattr(module, "__file__", None) for module in modules}
        paths = [file for file in files if isinstance(file, str)]
        return sorted(
            file for file in paths if self.of(file) or self._is_installed(file)
        )

    def _is_installed(self, file: str) -> bool:
        """Whether a module is from an installed package, and the tree has one of its name."""
        _, found, inside = file.rpartition(f"{os.sep}site-packages{os.sep}")
        if not found or os.sep not in inside or inside.partition(os.sep)[0] in RECORDED:
            return False
        for _, place in self.copies:
            for folder in (place, os.path.join(place, "src")):
                if os.path.exists(os.path.join(folder, inside)):
                    return True
        return False


class Loaded(Loader):
    """The loader of a package that the recorder has imported just ahead of the user's program."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec: Any = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module as it is."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do but to give the module its own spec: it has been executed."""
        module.__spec__ = self.spec

    def __getattr__(self, name: str) -> Any:
        """Other methods of the loader, such as those for files in the package."""
        return getattr(self.spec.loader, name)


class Finder:
    """Finds modules of the user's tree in the copy, and starts the recording when it is needed."""

    def __init__(self, side: dict[str, Any], copies: Copies) -> None:
        self.side = side
        self.copies = copies
        self.started = False
        self.starting = False

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of a module, as `sys.meta_path` asks for it."""
        if name == APPLICATION and self.side["elsewhere"]:
            # An old Python has no LibCST, which `__init__.py` would import.
            bare = ModuleSpec(name, None, is_package=True)
            bare.submodule_search_locations = [os.path.join(self.side["ours"], name)]
            return bare
        # The user's environment may have another version of this package, or none.
        if name in OURS:
            return PathFinder.find_spec(name, [self.side["ours"]])
        if name in RECORDED and not self.started:
            # `import jax`, `flax` or `optax`, for the first time
            self.started = True
            self.start()
            if name in sys.modules:
                return _already(sys.modules[name])
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self.redirected(spec)
        return None

    def start(self) -> None:
        """Start the recording; the recorder imports no modules of the user's for itself."""
        before = list(sys.path)
        copies = [root for _, root in self.copies.copies]

        def is_in_copy(place: str) -> bool:
            return any(_inside(os.path.abspath(place), root) for root in copies)

        sys.path[:] = [place for place in before if not is_in_copy(place)]
        self.starting = True
        try:
            world = "old" if self.side["elsewhere"] else "today"
            recording = import_module(f"{APPLICATION}.parity.instrumentation.{world}")
            recording.record(self.side, self.copies.foreign)
        except ImportError as error:
            _tell(self.side["out"], f"{sys.executable} cannot record: {error}")
        finally:
            self.starting = False
            sys.path[:] = before

    def redirected(self, spec: ModuleSpec) -> ModuleSpec | None:
        """A spec whose files are in the copy."""
        located = spec.origin if spec.has_location else None
        origin = self.copies.of(located) if located else None
        places = spec.submodule_search_locations
        moved = None
        if places is not None:
            moved = [self.copies.instead(place) for place in places]
        if not origin and (places is None or moved == list(places)):
            return spec
        # The recorder has no imports from the user's tree, and a file may not be in the copy.
        if self.starting or (origin and not os.path.exists(origin)):
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        if origin:
            return spec_from_file_location(
                spec.name, origin, submodule_search_locations=moved
            )
        # A namespace package has no file, only folders.
        namespace = ModuleSpec(spec.name, None, is_package=True)
        namespace.submodule_search_locations = moved or []
        return namespace


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _already(module: ModuleType) -> ModuleSpec:
    """A spec by which the current import gets a module as it is.

    The import looks at the module's own spec as well.
    """
    spec = copy.copy(module.__spec__)
    assert spec is not None
    spec.loader = Loaded(module)
    module.__spec__ = spec
    return spec


def _tell(folder: str, message: str) -> None:
    with open(
        os.path.join(folder, f"{os.getpid()}.error"), "a", encoding="utf-8"
    ) as file:
        file.write(message + "\n")


def _refuse_changes(copies: Copies, scratch: str) -> None:
    """Refuse to write into the user's own tree, by an absolute path or a link out of the copy."""

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        paths: tuple[Any, ...] = ()
        # open("/home/me/project/model.msgpack", "wb")
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            paths = arguments[:1]
        elif event in CHANGES:
            paths = arguments[: CHANGES[event]]
        for path in paths:
            # open(1, "w"): a descriptor has been opened before
            if not isinstance(path, (str, bytes)):
                continue
            name = os.fsdecode(path)
            if _is_the_users(name, event == "open"):
                reason = (
                    "parity writes nothing to your own files; give a path in the tree"
                )
                raise PermissionError(13, reason, name)

    def _is_the_users(path: str, followed: bool) -> bool:
        full = os.path.abspath(path)
        # Elsewhere, only the user's trees are protected; a link in a copy may lead anywhere.
        if not _inside(full, scratch):
            return copies.of(full) is not None
        real = os.path.realpath(full if followed else os.path.dirname(full))
        return not any(_inside(real, place) for place in (scratch, *copies.kept))

    sys.addaudithook(check)


def _run_the_users() -> None:
    """Run the `sitecustomize` of the user's own that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _install(side: dict[str, Any]) -> None:
    """Let this process run in the copy, if its folder is in the user's tree."""
    copies = Copies(side["copies"], side["kept"])
    # A script of the user's may have changed into the folder of the original.
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
