"""Items for the optimizers of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optim2optax.parity.plugin.item import ParityItem
from optim2optax.parity.plugin.project import project_of

if TYPE_CHECKING:
    from codemods.model import EmittedOptimizer
    from optim2optax.parity.reports.result import Case


class OptimizerFile(pytest.File):
    """A file of legacy code."""

    def collect(self) -> Iterator[OptimizerItem]:
        """An item for each optimizer."""
        by_file = project_of(self.config).emitted
        optimizers = by_file[self.path.resolve()]
        yield from optimizer_items(self, self.path, optimizers)


def optimizer_items(
    parent: pytest.Collector, path: Path, optimizers: Sequence[EmittedOptimizer]
) -> Iterator[OptimizerItem]:
    """An item for each optimizer of a file."""
    for emitted in optimizers:
        name = f"{emitted.line}-{emitted.name}"  # 41-Adam
        yield OptimizerItem.from_parent(parent, name=name, path=path, emitted=emitted)


class OptimizerItem(ParityItem):
    """An optimizer that is emitted."""

    def __init__(self, *, emitted: EmittedOptimizer, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.emitted = emitted

    def run(self) -> Case:
        """Replay the same gradients into both."""
        from optim2optax.parity.cases import optimizer_case

        steps = self.config.getoption("--parity-steps")
        seed = self.config.getoption("--parity-seed")
        name = f"{self.shown}:{self.emitted.line} {self.emitted.name}"
        return optimizer_case(name, self.emitted, steps, seed)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The line of the definition."""
        # pytest counts lines from 0.
        return self.path, self.emitted.line - 1, self.name
