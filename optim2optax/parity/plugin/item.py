"""A case as an item of pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optim2optax.parity.plugin.project import project_of

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case


class ParityError(Exception):
    """A case that does not pass; its text is the whole failure."""


class ParityItem(pytest.Item):
    """A case to run."""

    case: Case | None = None

    def runtest(self) -> None:
        """Run the case; only identical and equivalent ones pass."""
        case = self.run()
        self.case = (
            case if case.reproduction else replace(case, reproduction=self.repetition())
        )
        if not self.case.passes:
            raise ParityError(str(self.case.comparison or self.case.reason))

    def run(self) -> Case:
        """Run it, and give its result."""
        raise NotImplementedError

    def repetition(self) -> str:
        """A script that runs the case again, if its own run gives none."""
        return ""

    def repeated(self, *words: str) -> str:
        """A script that runs parity again, with options of this run and words of the case."""
        from optim2optax.parity.running.trees import commit_of

        options = as_words(self._common_options())
        now = commit_of("HEAD", project_of(self.config).root)
        remarks = [f"{self.name}, in the folder {self.config.invocation_params.dir}"]
        if now:
            remarks.append(
                f"The new side was the tree around commit {now}, with what was not committed."
            )
        return TEMPLATE.format(
            comments="".join(f"# {' '.join(line.split())}\n" for line in remarks),
            words="".join(f"    {word!r},\n" for word in (*options, *words)),
        )

    def _common_options(self) -> dict[str, list[Any]]:
        """The options of this run that matter to every case, each with its value, or with None."""
        import jax

        from optim2optax.parity.running.trees import commit_of

        option = self.config.getoption
        before = option("--parity-before")
        # A branch may move on until the script is run, a commit does not.
        if before is not None and not Path(before).is_dir():
            before = commit_of(before, project_of(self.config).root) or before
        has_virtual_devices = jax.default_backend() == "cpu" and jax.device_count() > 1
        return {
            "--platform": [jax.default_backend()],
            "--devices": [jax.device_count() if has_virtual_devices else None],
            "--before": [before],
            "--legacy-python": [option("--parity-legacy-python")],
            "--against": [option("--parity-against")],
        }

    @property
    def legacy_python(self) -> Path | None:
        """The interpreter for the old side, if one is given."""
        given = self.config.getoption("--parity-legacy-python")
        return Path(given) if given else None

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        """A difference needs no traceback."""
        if isinstance(excinfo.value, ParityError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case stands."""
        return self.path, None, self.name

    @property
    def shown(self) -> str:
        """The path of the file, from the folder where the session was started."""
        try:
            return str(self.path.relative_to(self.config.invocation_params.dir))
        except ValueError:
            return str(self.path)


TEMPLATE = """\
{comments}import subprocess
import sys

arguments = [
{words}]
sys.exit(subprocess.call([sys.executable, "-m", "optim2optax", "parity", *arguments]))
"""


def as_words(options: Mapping[str, Sequence[Any]]) -> list[str]:
    """Options as words of a command line: each is given once for each value that is not None."""
    words: list[str] = []
    for name, values in options.items():
        for value in values:
            if value is not None:
                words += [name, str(value)]
    return words
