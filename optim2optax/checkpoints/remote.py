"""Checkpoints at addresses such as `gs://bucket/run`, which `fsspec` opens, as local copies.

What reads and writes checkpoints knows local paths alone. A file is sent whole: under another name first, and then renamed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from optim2optax.checkpoints import CheckpointError, UnwritableError
from optim2optax.checkpoints.files import newest_at

SEPARATOR = "://"
OF_THIS_MACHINE = "file:///"


def is_address(path: Path | str) -> bool:
    """Whether this is no path of this machine's."""
    return isinstance(path, str) and SEPARATOR in path and not path.startswith(OF_THIS_MACHINE)


@contextmanager
def local_copies() -> Iterator[Copies]:
    """Local copies of what is at addresses, for as long as this context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        yield Copies(Path(folder))


class Copies:
    """Local copies in a folder of what is at addresses. A local path is its own copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._addresses: dict[Path, str] = {}

    def named(self, text: str) -> str:
        """A text that has addresses instead of the places of their copies."""
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
        address, place = _without_end(str(path)), self._place_of(str(path))
        with _told(f"{address} cannot be read", CheckpointError):
            system, root = _opened(address)
            files = {place.joinpath(*_parts_of(name, root)): name for name in system.find(root)}
            if not files:
                raise CheckpointError(f"{address} does not exist.")
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            wanted = place if everything else newest_at(place)
            for file, name in files.items():
                if file.is_relative_to(wanted):
                    system.get_file(name, str(file))
        return place

    def place_for(self, path: Path | str, source: Path | str) -> Path:
        """Where to write what `send` then sends to a path; what is there now is there, too.

        Raises:
          CheckpointError: if that is, or is in, or holds what is read.
          UnwritableError: if it cannot be seen what is there.
        """
        if not is_address(path):
            return _local(path)
        here, there = (f"{_without_end(str(one))}/" for one in (path, source))
        if here.startswith(there) or there.startswith(here):
            raise CheckpointError(
                f"{path} is or holds what is read, or is in it: choose another name."
            )
        address = _without_end(str(path))
        with _told(f"{address} cannot be written", UnwritableError):
            system, root = _opened(address)
            is_there = system.exists(root)
        place = self.copy_of(path, everything=True) if is_there else self._place_of(str(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def send(self, place: Path) -> None:
        """Send the file that has been written in a place. It appears whole or not at all.

        Raises:
          UnwritableError: if it cannot be sent.
        """
        address = self._addresses.get(place)
        if address is None:
            return
        with _told(f"{address} cannot be written", UnwritableError):
            system, root = _opened(address)
            part = f"{root}.{uuid4().hex}.tmp"
            try:
                system.put_file(str(place), part)
                system.mv(part, root)
            except BaseException:
                with suppress(Exception):
                    system.rm_file(part)
                raise

    def _place_of(self, address: str) -> Path:
        """A local path for the copy of what is at an address."""
        address = _without_end(address)
        place = Path(
            self._folder,
            str(len(self._addresses)),
            PurePosixPath(urlsplit(address).path).name or "root",
        )
        self._addresses[place] = address
        return place


def _local(path: Path | str) -> Path:
    """A path of this machine's, which may be given as an address."""
    text = str(path)
    return Path(unquote(urlsplit(text).path) if text.startswith(OF_THIS_MACHINE) else path)


def _without_end(address: str) -> str:
    return address.rstrip("/")


def _opened(address: str) -> tuple[Any, str]:
    """What opens the files at an address, and what that calls it."""
    import fsspec

    system, root = fsspec.core.url_to_fs(address)
    return system, str(root)


def _parts_of(name: str, root: str) -> tuple[str, ...]:
    """The place of a file below a root."""
    parts = PurePosixPath(name[len(root) :].lstrip("/")).parts
    if ".." in parts:
        raise CheckpointError(f"{name} has a name that leads out of its folder.")
    return parts


@contextmanager
def _told(what: str, kind: type[CheckpointError]) -> Iterator[None]:
    """Say what could not be done, and why; whatever opens files at an address has errors of its own."""
    try:
        yield
    except CheckpointError:
        raise
    except ImportError as error:
        missing = (
            "fsspec is missing: install it"
            if getattr(error, "name", "") == "fsspec"
            else str(error)
        )
        raise kind(f"{what}: {missing}.") from None
    except Exception as error:
        raise kind(f"{what} ({type(error).__name__}: {error}).") from error
