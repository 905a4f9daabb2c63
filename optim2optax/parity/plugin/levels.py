"""The items of the three levels: optimizers of a file, scenarios, and a training command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optim2optax.parity.plugin.item import ParityItem, as_words
from optim2optax.parity.plugin.project import SCENARIO, project_of

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


BEFORE, AFTER = "before.py", "after.py"
VARIANTS = "after_*.py"
NOTEBOOK = ".ipynb"

RUN = re.compile(r"^def run\(", re.MULTILINE)


def is_scenario(path: Path) -> bool:
    """Whether a file drives old code and new, and is no module of the program itself."""
    if path.name != SCENARIO:
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return RUN.search(text) is not None or any(path.parent.glob("before.*"))


class ScenarioFile(pytest.File):
    """A scenario beside its old and new code."""

    def collect(self) -> Iterator[ScenarioItem]:
        """An item for `after.py`, and one for each `after_*.py` beside it."""
        yield ScenarioItem.from_parent(self, name="scenario")
        for path in sorted(self.path.parent.glob(VARIANTS)):
            yield ScenarioItem.from_parent(self, name=path.stem, after=path)


class ScenarioItem(ParityItem):
    """A scenario, and the new code that it drives if that is another than usual."""

    def __init__(self, *, after: Path | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.after = after

    def run(self) -> Case:
        """Drive both sides.

        They are `before.py` and `after.py` beside the scenario, or the module that it names, old
        and new. Notebooks may take the place of these two.
        """
        from optim2optax.parity.cases import scenario_case
        from optim2optax.parity.reports.result import Case
        from optim2optax.parity.scenario.driving import module_of

        name = str(Path(self.shown).parent)
        try:
            module = module_of(self.path)
        except (SyntaxError, ValueError) as error:
            return Case(
                name, "scenario", None, reason=f"{type(error).__name__}: {error}"
            )
        if self.after is not None:
            name = f"{name} ({self.after.stem.removeprefix('after_')})"
        before, after = self._sides(module)
        given = self.config.getoption("--parity-against")
        against = Path(given) if given else None
        case = scenario_case(
            name, self.path, before, after, self.legacy_python, against
        )
        if self.config.getoption("--parity-save") and case.comparison is not None:
            self._save(name, before)
        return case

    def _save(self, name: str, before: Path) -> None:
        """Keep what the old side yields, for the file of baselines."""
        from optim2optax.parity.cases import as_module
        from optim2optax.parity.scenario.scenario import baseline_of

        # The old side runs once more, as the comparison does not have its values.
        with as_module(before) as old:
            baseline = baseline_of(self.path, old, self.legacy_python)
        project_of(self.config).baselines[name] = baseline

    def repetition(self) -> str:
        """The scenario again; where it has several new sides, with this one."""
        chosen = [] if self.after is None else ["-k", self.name]
        return self.repeated(*chosen, self.shown)

    def _sides(self, module: str | None) -> tuple[Path, Path]:
        """The files with the old code and the new.

        Where no new code is given, it is what `rewrite` makes of the old.
        """
        project = project_of(self.config)
        folder = self.path.parent
        if self.after is not None:
            return folder / BEFORE, self.after
        # module = "../train.py"
        if module is not None:
            return project.before(folder / module), project.after(folder / module)
        before = folder / BEFORE
        after = folder / AFTER
        if before.with_suffix(NOTEBOOK).exists() and not before.exists():
            before, after = before.with_suffix(NOTEBOOK), after.with_suffix(NOTEBOOK)
        return before, after if after.exists() else project.after(before)


class CommandItem(ParityItem):
    """A training command."""

    def __init__(self, *, command: list[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.command = command

    def repetition(self) -> str:
        """The command again, with its own options."""
        option = self.config.getoption
        given = {
            "--timeout": [option("--parity-timeout")],
            "--link": option("--parity-link"),
            "--compare": option("--parity-compare"),
            "--compare-lines": option("--parity-lines"),
        }
        return self.repeated(*as_words(given), "--", *self.command)

    def run(self) -> Case:
        """Run it on both trees."""
        from optim2optax.parity.cases import command_case
        from optim2optax.parity.command.runs import RunOptions

        option = self.config.getoption
        options = RunOptions(
            option("--parity-timeout"),
            [Path(link) for link in option("--parity-link")],
            self.legacy_python,
            option("--parity-compare"),
            option("--parity-lines"),
        )
        before, folder = option("--parity-before"), self.config.invocation_params.dir
        return command_case(self.name, self.command, before, Path(folder), options)
