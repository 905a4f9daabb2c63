"""Programs whose last legacy optimizers speak to a copy of `flax.optim`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from codemods import FileResult, Options, Source, migrate
from codemods.vendoring.copies import read_copies
from optim2optax.legacy_wheel import find_wheel
from optim2optax.vendoring.optim import OPTIM_CONTENT

Files = dict[str, str]


@cache
def _package() -> Mapping[str, str]:
    return {
        name: content.decode()
        for name, content in OPTIM_CONTENT.files(find_wheel()).items()
    }


def vendored(
    files: Mapping[str, str],
    options: Options | None = None,
    existing: tuple[str, ...] = (),
    wanted: bool = True,
) -> tuple[Files, list[FileResult], str | None]:
    """What becomes of a program with `--vendor`: its files and those of the copy, an account, and where a new copy is."""
    copies = read_copies(
        [Source(path, text.encode()) for path, text in files.items()], existing
    )
    migrated = migrate(copies.pointed_back, options)
    results, modules = migrated[: len(files)], migrated[len(files) :]
    new = copies.without_copy(results) if wanted else []
    places = copies.places_for(new, OPTIM_CONTENT.name) if new else {}
    results = copies.pointed_at(results, new, places)
    changed = (*results, *modules)
    after = {**files, **{result.path: result.after.decode() for result in changed}}
    place = ", ".join(sorted({*places.values()} - {*existing}))
    for copy in {*places.values()} - {*existing}:
        after |= {f"{copy}/{name}": text for name, text in _package().items()}
    return after, results, place or None
