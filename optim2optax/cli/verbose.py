"""What `--verbose` tells: what was looked at, and what was left out and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from codemods.model import FileResult
from optim2optax.project import shown
from optim2optax.wording import counted, printable


def looked_at(
    results: Iterable[FileResult], code: Collection[str], left_out: Mapping[str, str]
) -> Iterator[str]:
    """The lines for standard error.

    `code` has the paths of the files that were found, and `left_out` the reasons for others.
    """
    for location, why in sorted(left_out.items()):
        yield f"{printable(shown(location))}: {why}"
    for result in results:
        # requirements.txt, setup.py
        what = "read for dependencies"
        if result.error is not None:
            what = "error"
        elif result.analysed:
            what = f"analysed, {counted(len(result.sites), 'site')}"
        elif result.path in code:
            what = "not analysed: no optimizer gets there"
        yield f"{printable(result.path)}: {what}"
        yield from result.tracebacks
