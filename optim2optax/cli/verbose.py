"""What `--verbose` tells: what was looked at, what was left out and why, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

import click

from codemods.model import FileResult, Progress, Stage
from optim2optax.project import shown
from optim2optax.wording import counted, printable


class Log:
    """Collects what there is to tell of a run."""

    def __init__(self) -> None:
        self._left_out: dict[str, str] = {}
        self._stage = "Finding"
        self._begun = time.perf_counter()
        self._seconds: dict[str, float] = {}

    def left_out(self, location: str, why: str) -> None:
        """Note a file or folder that is left out."""
        self._left_out[location] = why

    def timed(self, progress: Progress | None) -> Progress:
        """A function that measures the stages that it is told, and tells them on."""

        def tell(stage: Stage, done: int, of: int) -> None:
            self._end_stage(stage)
            if progress is not None:
                progress(stage, done, of)

        return tell

    def print(self, results: Iterable[FileResult], code: Collection[str]) -> None:
        """Print it all to standard error. `code` has the paths of the files that were found."""
        self._end_stage("")
        for line in self._lines(results, code):
            click.echo(line, err=True)

    def _end_stage(self, following: str) -> None:
        if following != self._stage:
            now = time.perf_counter()
            # a stage comes again with each project
            before = self._seconds.get(self._stage, 0.0)
            self._seconds[self._stage] = before + now - self._begun
            self._stage, self._begun = following, now

    def _lines(
        self, results: Iterable[FileResult], code: Collection[str]
    ) -> Iterator[str]:
        for location, why in sorted(self._left_out.items()):
            yield f"{printable(shown(location))}: {why}"
        for result in results:
            what = _looked_at(result, result.path in code)
            yield f"{printable(result.path)}: {what}"
            yield from result.tracebacks
        # Finding 0.01 s, Reading 0.02 s, Analysing 1.30 s; 1.33 s in all
        stages = [f"{stage} {taken:.2f} s" for stage, taken in self._seconds.items()]
        yield f"{', '.join(stages)}; {sum(self._seconds.values()):.2f} s in all"


def _looked_at(result: FileResult, is_code: bool) -> str:
    if result.error is not None:
        return "error"
    if result.analysed:
        return f"analysed, {counted(len(result.sites), 'site')}"
    if is_code:
        return "not analysed: no optimizer gets there"
    # requirements.txt, setup.py
    return "read for dependencies"
