"""Checkpoints at addresses such as `gs://bucket/run`, which `fsspec` opens, as local copies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from optim2optax.checkpoints import CheckpointError, UnwritablePathError
from optim2optax.checkpoints.files import newest_at


def is_address(path: Path | str) -> bool:
    """Whether this is an address, and not a local path."""
    return isinstance(path, str) and "://" in path


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
            return Path(path)
        place = self._place_of(str(path))
        with self._opened(place, "read", CheckpointError) as (system, root):
            files = {
                place.joinpath(*_parts_of(name, root)): name
                for name in system.find(root)
            }
            if not files:
                raise CheckpointError(f"{self._addresses[place]} does not exist.")
            # empty files are enough to find the newest checkpoint; only that is downloaded
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            wanted = place if everything else newest_at(place)
            for file, name in files.items():
                if file.is_relative_to(wanted):
                    system.get_file(name, str(file))
        return place

    def place_for(self, path: Path | str) -> Path:
        """Where to write a file that `send` then sends to a path.

        Raises:
          CheckpointError: if something is at an address already.
          UnwritablePathError: if the system does not tell.
        """
        if not is_address(path):
            return Path(path)
        place = self._place_of(str(path))
        with self._opened(place, "written", UnwritablePathError) as (system, root):
            if system.exists(root):
                address = self._addresses[place]
                raise CheckpointError(f"{address} exists: choose another name.")
        return place

    def send(self, place: Path) -> None:
        """Send the file that has been written in a place. It appears whole or not at all.

        Raises:
          UnwritablePathError: if it cannot be sent.
        """
        if place not in self._addresses:  # a local path, where the file is already
            return
        with self._opened(place, "written", UnwritablePathError) as (system, root):
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
        address = address.rstrip("/")
        place = self._folder / str(len(self._addresses)) / PurePosixPath(address).name
        self._addresses[place] = address
        return place

    @contextmanager
    def _opened(
        self, place: Path, done: str, kind: type[CheckpointError]
    ) -> Iterator[tuple[Any, str]]:
        """The file system of fsspec for an address, and the path in it.

        File systems have errors of their own: one says what could not be done, and why.
        """
        what = f"{self._addresses[place]} cannot be {done}"
        try:
            import fsspec

            system, root = fsspec.core.url_to_fs(self._addresses[place])
            yield system, str(root)
        except CheckpointError:
            raise
        except ImportError as error:
            is_missing = getattr(error, "name", "") == "fsspec"
            why = "fsspec is missing: install it" if is_missing else str(error)
            raise kind(f"{what}: {why}.") from None
        except Exception as error:
            raise kind(f"{what} ({type(error).__name__}: {error}).") from error


def _parts_of(name: str, root: str) -> tuple[str, ...]:
    """The place of a file below a root."""
    parts = PurePosixPath(name[len(root) :].lstrip("/")).parts
    if ".." in parts:  # an archive may have such names
        raise CheckpointError(f"{name} has a name that leads out of its folder.")
    return parts
