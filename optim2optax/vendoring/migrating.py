"""A migration of a project that has copies of what Flax removed, or gets some."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from codemods.model import FileResult, Source
from optim2optax.project import Found, Root, UnreadableError, read_file, upwards
from optim2optax.vendoring.content import (
    NN_CONTENT,
    OPTIM_CONTENT,
    Content,
    is_vendored,
)

Migrate = Callable[[Sequence[Source]], list[FileResult]]

CONTENTS = (OPTIM_CONTENT, NN_CONTENT)
INIT = "__init__.py"


def may_concern(content: bytes, vendor: bool) -> bool:
    """Whether a file is of a copy, or may need one. False is certain."""
    if is_vendored(content):
        return True
    return vendor and any(one.package.mentions(content) for one in CONTENTS)


def migrated_with_copies(
    root: Root,
    files: Sequence[Found],
    sources: Sequence[Source],
    migrate: Migrate,
    vendor: bool,
) -> list[FileResult]:
    """Migrate a project as if it had no copies, and point what is left at them.

    Args:
      root: the root of the project.
      files: the files as they are on the disk.
      sources: their contents.
      migrate: migrates other contents of the same files.
      vendor: whether files that need a removed package, and have no copy, get one.

    Returns:
      A result for each source, in the same order, and one for each new file.

    Raises:
      LegacyWheelError: if a copy is needed, and the wheel that has it cannot be found or fetched.
    """
    for content in CONTENTS:
        migrate = partial(_migrated_with_copy, root, files, content, migrate, vendor)
    return migrate(sources)


def _migrated_with_copy(
    root: Root,
    files: Sequence[Found],
    content: Content,
    migrate: Migrate,
    vendor: bool,
    sources: Sequence[Source],
) -> list[FileResult]:
    """Migrate a project as if it had no copy of one package."""
    existing = _copies_near(root, _folders(root, sources, content), content)
    if not existing and not vendor:
        return migrate(sources)
    from codemods.vendoring.copies import read_copies

    copies = read_copies(
        sources, existing, _packages_around(root, files), content.package
    )
    # `from . import legacy_flax_optim as optim` is read as `from flax import optim`
    migrated = migrate(copies.pointed_back)
    count = len(copies.sources)
    results, modules = migrated[:count], migrated[count:]
    new = copies.without_copy(results) if vendor else []
    found = copies.places_for(new, content.name) if new else {}
    places = {
        path: place for path, place in found.items() if _is_free(place, root, existing)
    }
    finished = copies.pointed_at(results, new, places) if existing or new else results
    by_path = {result.path: result for result in finished}
    kept = [
        by_path.get(source.path)
        or FileResult(source.path, source.content, source.content)
        for source in sources
    ]
    new_copies = sorted({*places.values()} - existing)
    files_of_copies = (_new_files(place, content) for place in new_copies)
    return [*kept, *modules, *chain.from_iterable(files_of_copies)]


def _is_free(place: str, root: Root, existing: Collection[str]) -> bool:
    """Whether a copy is, or can be, at a path: nothing of the user's is overwritten."""
    if place in existing:
        return True
    return root.is_around(place) and not os.path.lexists(root.location(place))


def _folders(root: Root, sources: Iterable[Source], content: Content) -> set[str]:
    """The folders of the files that mention a package."""
    folders: set[str] = set()
    for source in sources:
        if content.package.mentions(source.content):
            folders.add(os.path.dirname(root.location(source.path)))
    return folders


def _new_files(place: str, content: Content) -> Iterator[FileResult]:
    """The files of a new copy, from the wheel of Flax."""
    from optim2optax.legacy_wheel import find_wheel

    wheel = find_wheel(content.release)
    for name, text in content.files(wheel).items():
        yield FileResult(f"{place}/{name}", b"", text, kind="new")


def _copies_near(root: Root, folders: Collection[str], content: Content) -> set[str]:
    """The paths of the copies in some folders, and in those around them in the project."""
    found: set[str] = set()
    for folder in _around(root.folder, folders):
        with contextlib.suppress(OSError):
            locations = [os.path.join(folder, name) for name in os.listdir(folder)]
            found.update(one for one in locations if _is_copy(one, content))
    return {root.path(location) for location in found}


def _packages_around(root: Root, files: Iterable[Found]) -> list[str]:
    """The paths of the `__init__.py` around some files, whether they are among these or not."""
    own = {os.path.dirname(file.location) for file in files}
    folders = _around(root.folder, own)
    inits = [os.path.join(folder, INIT) for folder in sorted(folders)]
    return [root.path(location) for location in inits if os.path.isfile(location)]


def _around(root: str, folders: Collection[str]) -> set[str]:
    """Some folders and those around them, up to the root of the project."""
    around = (outer for folder in folders for outer in upwards(folder))
    return {outer for outer in around if outer.startswith(root)}


def _is_copy(folder: str, content: Content) -> bool:
    try:
        return content.origin_of(read_file(os.path.join(folder, INIT))) == INIT
    except UnreadableError:
        return False
