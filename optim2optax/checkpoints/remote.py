"""Checkpoints at addresses such as `gs://bucket/run`, which `fsspec` opens, as local copies.

The code that reads and writes checkpoints knows only local paths. A file is sent whole: under
another name first, and then renamed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from optim2optax.checkpoints import CheckpointError, UnwritablePathError
from optim2optax.checkpoints.files import newest_at

SEPARATOR = "://"
OF_THIS_MACHINE = "file:///"


def is_address(path: Path | str) -> bool:
    """Whether this is an address, and not a local path."""
    if not isinstance(path, str):
        return False
    return SEPARATOR in path and not path.startswith(OF_THIS_MACHINE)


@contextmanager
def local_copies() -> Iterator[LocalCopies]:
    """Local copies of what is at addresses, which are removed when the context ends."""
    with tempfile.TemporaryDirectory() as folder:
        yield LocalCopies(Path(folder))


class LocalCopies:
    """Local copies in a folder of what is at addresses. A local path is its own copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._addresses: dict[Path, str] = {}

    def named(self, text: str) -> str:
        """A text with addresses in place of the paths of their copies."""
        for place, address in self._addresses.items():
            text = text.replace(str(place), address)
        return text

    def copy_of(self, path: Path | str, everything: bool = False) -> Path:
        """What is at a path: all of it, or, of a folder with several checkpoints, the newest.

        Raises:
          CheckpointError: if it cannot be read.
        """
        if not is_address(path):
            return _local(path)
        address = _without_end(str(path))
        place = self._place_of(str(path))
        with _explained(f"{address} cannot be read", CheckpointError):
            system, root = _opened(address)
            files = {
                place.joinpath(*_parts_of(name, root)): name
                for name in system.find(root)
            }
            if not files:
                raise CheckpointError(f"{address} does not exist.")
            # empty files are enough to find the newest checkpoint; only that is downloaded
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            wanted = place if everything else newest_at(place)
            for file, name in files.items():
                if file.is_relative_to(wanted):
                    system.get_file(name, str(file))
        return place

    def place_for(self, path: Path | str, source: Path | str) -> Path:
        """Where to write a file that `send` then sends to a path.

        The place has a copy of what is at the path now.

        Raises:
          CheckpointError: if the path is the source, or is in it, or contains it.
          UnwritableError: if the system does not tell what is at the path.
        """
        if not is_address(path):
            return _local(path)
        # with a slash, so that runs/1 does not contain runs/10
        here = f"{_without_end(str(path))}/"
        there = f"{_without_end(str(source))}/"
        if here.startswith(there) or there.startswith(here):
            raise CheckpointError(
                f"{path} is or holds what is read, or is in it: choose another name."
            )
        address = _without_end(str(path))
        with _explained(f"{address} cannot be written", UnwritablePathError):
            system, root = _opened(address)
            is_there = system.exists(root)
        place = (
            self.copy_of(path, everything=True)
            if is_there
            else self._place_of(str(path))
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def send(self, place: Path) -> None:
        """Send the file that has been written in a place. It appears whole or not at all.

        Raises:
          UnwritableError: if it cannot be sent.
        """
        address = self._addresses.get(place)
        if address is None:  # a local path, where the file is already
            return
        with _explained(f"{address} cannot be written", UnwritablePathError):
            system, root = _opened(address)
            part = f"{root}.{uuid4().hex}.tmp"
            try:
                system.put_file(str(place), part)
                system.mv(part, root)
            except BaseException:
                # no part of the file stays there
                with suppress(Exception):
                    system.rm_file(part)
                raise

    def _place_of(self, address: str) -> Path:
        """A local path for the copy of what is at an address."""
        address = _without_end(address)
        name = PurePosixPath(urlsplit(address).path).name or "root"
        place = self._folder / str(len(self._addresses)) / name
        self._addresses[place] = address
        return place


def _local(path: Path | str) -> Path:
    """A local path, which may be given as an address."""
    text = str(path)
    if text.startswith(OF_THIS_MACHINE):
        return Path(unquote(urlsplit(text).path))
    return Path(path)


def _without_end(address: str) -> str:
    return address.rstrip("/")


def _opened(address: str) -> tuple[Any, str]:
    """The file system of fsspec for an address, and the path in it."""
    import fsspec

    system, root = fsspec.core.url_to_fs(address)
    return system, str(root)


def _parts_of(name: str, root: str) -> tuple[str, ...]:
    """The place of a file below a root."""
    parts = PurePosixPath(name[len(root) :].lstrip("/")).parts
    if ".." in parts:  # an archive may have such names
        raise CheckpointError(f"{name} has a name that leads out of its folder.")
    return parts


@contextmanager
def _explained(what: str, kind: type[CheckpointError]) -> Iterator[None]:
    """Say what could not be done, and why. The file systems of fsspec have errors of their own."""
    try:
        yield
    except CheckpointError:
        raise
    except ImportError as error:
        missing = str(error)
        if getattr(error, "name", "") == "fsspec":
            missing = "fsspec is missing: install it"
        raise kind(f"{what}: {missing}.") from None
    except Exception as error:
        raise kind(f"{what} ({type(error).__name__}: {error}).") from error
