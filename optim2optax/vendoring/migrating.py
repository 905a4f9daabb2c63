"""A migration of a project that has a copy of `flax.optim`, or gets one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from codemods.model import FileResult, Source
from codemods.sources.prefilter import mentions_legacy
from optim2optax.project import Found, Root
from optim2optax.vendoring.content import PACKAGE_NAME, package_files
from optim2optax.vendoring.recognising import copies_among, copies_near, packages_around

Migrate = Callable[[Sequence[Source]], list[FileResult]]


@dataclass(frozen=True)
class Vendoring:
    """Whether files that need `flax.optim` get a copy of it, and where.

    `location` is the path of the package, or None for the best place.
    """

    wanted: bool = False
    location: str | None = None


def migrated_with_copies(
    root: Root,
    files: Sequence[Found],
    sources: Sequence[Source],
    migrate: Migrate,
    vendoring: Vendoring,
) -> list[FileResult]:
    """Migrate a project as if it had no copy of `flax.optim`, and point what is left at the copy.

    Args:
      root: the root of the project.
      files: the files as they are on the disk.
      sources: their contents.
      migrate: migrates other contents of the same files.
      vendoring: what the user asked for.

    Returns:
      A result for each source, in the same order, and one for each new file.

    Raises:
      LegacyWheelError: if a copy is needed, and the wheel of Flax 0.5.3, which has it, cannot be
        found or fetched.
    """
    # a copy may be among the files of the run, or elsewhere in the project
    own = copies_among([source for source in sources if source.writable])
    existing = {copy.path for copy in own}
    existing |= copies_near(root, _legacy_folders(files, sources))
    if not existing and not vendoring.wanted:
        return migrate(sources)
    from codemods.vendoring.copies import read_copies

    copies = read_copies(sources, existing, packages_around(root, files))
    # `from . import legacy_flax_optim as optim` is read as `from flax import optim`
    migrated = migrate(copies.pointed_back)
    results, modules = migrated[: len(sources)], migrated[len(sources) :]
    new = copies.without_copy(results) if vendoring.wanted else []
    place: str | None = None
    if new:
        # --vendor-as kit/old_optim is imported as `old_optim`
        location = vendoring.location
        name = os.path.basename(location) if location else PACKAGE_NAME
        wanted = root.path(os.path.abspath(location)) if location else None
        place = copies.place_for(new, name, wanted)
    if place is not None and not _is_free(place, root, existing):
        place = None
    finished = copies.pointed_at(results, new, place) if existing or new else results
    by_path = {result.path: result for result in finished}
    for copy in own:
        # what needed a copy may have been migrated now
        unneeded = copy.if_unneeded(finished, root, files)
        if unneeded is not None:
            by_path[unneeded.path] = unneeded
    kept = [by_path.get(source.path) or _unchanged(source) for source in sources]
    if place is None or place in existing:
        return [*kept, *modules]
    return [*kept, *modules, *_new_files(place)]


def _is_free(place: str, root: Root, existing: Collection[str]) -> bool:
    """Whether a copy is, or can be, at a path: nothing of the user's is overwritten."""
    if place in existing:
        return True
    return root.is_around(place) and not os.path.lexists(root.location(place))


def _legacy_folders(files: Sequence[Found], sources: Sequence[Source]) -> set[str]:
    """The folders of the files that mention `flax.optim`."""
    folders: set[str] = set()
    for file, source in zip(files, sources, strict=True):
        if mentions_legacy(source.content):
            folders.add(os.path.dirname(file.location))
    return folders


def _unchanged(source: Source) -> FileResult:
    return FileResult(source.path, source.content, source.content)


def _new_files(place: str) -> Iterator[FileResult]:
    """The files of a new copy, from the wheel of Flax."""
    from optim2optax.legacy_wheel import find_wheel

    for name, content in package_files(find_wheel()).items():
        yield FileResult(f"{place}/{name}", b"", content, kind="new")
