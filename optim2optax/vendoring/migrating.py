"""A migration of a project that has a copy of `flax.optim`, or gets one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codemods.model import FileResult, Source
from codemods.sources.prefilter import mentions_legacy

from optim2optax.project import Found, root_of
from optim2optax.vendoring.content import PACKAGE_NAME, package_files
from optim2optax.vendoring.recognising import copies_among, copies_near, packages_around

Migrate = Callable[[Sequence[Source]], list[FileResult]]


@dataclass(frozen=True)
class Vendoring:
    """Whether files that need `flax.optim` get a copy of it, and where: the path of the package, or None for the best."""

    wanted: bool = False
    location: str | None = None


def migrated_with_copies(
    files: Mapping[Found, str], sources: Sequence[Source], migrate: Migrate, vendoring: Vendoring
) -> list[FileResult]:
    """Migrate the files of a project as if it had no copy of `flax.optim`, and point what is left at the copy.

    Args:
      files: the files as they are on the disk, with their paths within the project.
      sources: what is in them.
      migrate: migrates other contents of the same files.
      vendoring: what the user asked for.

    Returns:
      A result for each source, in the same order, and one for each new file.

    Raises:
      LegacyWheelError: if a copy is needed, and the wheel of Flax 0.5.3, which holds it, cannot be had.
    """
    own = copies_among(sources)
    root = root_of(files)
    speaking = (
        file for file, source in zip(files, sources, strict=True) if mentions_legacy(source.content)
    )
    near = copies_near(root, {os.path.dirname(file.location) for file in speaking})
    existing = {copy.path for copy in own} | near
    if not existing and not vendoring.wanted:
        return migrate(sources)
    from codemods.vendoring.copies import read_copies

    copies = read_copies(sources, existing, packages_around(root, files))
    results = migrate(copies.pointed_back)
    new = copies.homeless(results) if vendoring.wanted else []
    name = os.path.basename(vendoring.location) if vendoring.location else PACKAGE_NAME
    place = copies.place_for(new, name, _within(root, vendoring.location)) if new else None
    if place is not None and place not in existing and os.path.lexists(os.path.join(root, place)):
        place = None
    finished = copies.pointed_at(results, new, place) if existing or new else results
    unneeded = [found for copy in own for found in copy.if_unneeded(finished, root, files)]
    by_path = {result.path: result for result in (*finished, *unneeded)}
    kept = [
        by_path.get(one.path) or FileResult(one.path, one.content, one.content) for one in sources
    ]
    return [*kept, *(_new_files(place) if place is not None and place not in existing else ())]


def _within(root: str, location: str | None) -> str | None:
    """A path from the root of the project on."""
    return None if location is None else os.path.relpath(location, root).replace(os.sep, "/")


def _new_files(place: str) -> Iterator[FileResult]:
    from optim2optax.legacy_wheel import find_wheel

    for name, content in package_files(find_wheel()).items():
        yield FileResult(f"{place}/{name}", b"", content, kind="new")
