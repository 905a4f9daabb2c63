"""The session of pytest in which cases of parity are collected and run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Generator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from optim2optax.parity.plugin.item import ParityItem
from optim2optax.parity.plugin.levels import (
    CommandItem,
    OptimizerFile,
    ScenarioFile,
    is_scenario,
    optimizer_items,
)
from optim2optax.parity.plugin.project import project_of

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case, Report


NAME = "parity-session"
"""The name by which pytest knows the plugin of a session."""


class ParitySession:
    """The hooks of one session, and the cases that ran in it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.project = project_of(config)
        self.cases: list[Case] = []

    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add optimizers of files that the new tree does not have, and the training command."""
        for path, emitted in self.project.emitted.items():
            # Such as a file that was removed, whose optimizers have no counterpart.
            if emitted and not path.exists():
                items.extend(optimizer_items(session, path, emitted))
        given = self.config.getoption("--parity-command")
        if given:
            words = json.loads(given)
            items.append(
                CommandItem.from_parent(session, name=" ".join(words), command=words)
            )

    def pytest_report_collectionfinish(self) -> str:
        """The numbers of optimizers with and without a counterpart in the new tree."""
        if self.project.old_tree is None:
            return ""
        from optim2optax.parity.pairing.counterpart import paired_count

        return paired_count(list(chain.from_iterable(self.project.emitted.values())))

    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect a folder of legacy code without importing its package."""
        folder = path.resolve()
        for file, emitted in self.project.emitted.items():
            if emitted and folder in file.parents:
                # pytest itself would take a `pytest.Package`, which imports `__init__.py`.
                folder_alone: pytest.Collector = pytest.Dir.from_parent(
                    parent, path=path
                )
                return folder_alone
        return None

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect a Python file if there is anything to compare in it."""
        if is_scenario(file_path):
            return ScenarioFile.from_parent(parent, path=file_path)
        # A baseline has what the old side of scenarios yielded, and no optimizers.
        if self.config.getoption("--parity-against"):
            return None
        if self.project.emitted.get(file_path.resolve()):
            return OptimizerFile.from_parent(parent, path=file_path)
        return None

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Keep pytest from importing a legacy file or scenario that is given by name as a test."""
        if is_scenario(module_path) or self.project.emitted.get(module_path.resolve()):
            return NoTests.from_parent(parent, path=module_path)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the case to the report, on which it travels from worker processes."""
        report = yield
        if (
            isinstance(item, ParityItem)
            and call.when == "call"
            and item.case is not None
        ):
            # pytest-xdist sends only plain values to the first process.
            vars(report)["parity_case"] = pickle.dumps(item.case)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the case of a report."""
        # Reports of setup and teardown have no case.
        packed = getattr(report, "parity_case", None)
        if packed is not None:
            self.cases.append(pickle.loads(packed))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the report as text."""
        if self.cases and is_first_process():
            from optim2optax.parity.reports import render_text

            terminalreporter.ensure_newline()
            terminalreporter.write(
                render_text(self.report(), color=terminalreporter.hasmarkup)
            )

    def report(self) -> Report:
        """All cases that ran."""
        from optim2optax.parity.reports.result import Report, environment, urgency

        cases = tuple(sorted(self.cases, key=urgency))
        return Report(cases, environment(self.config.getoption("--parity-seed")))


class NoTests(pytest.File):
    """A file that is no test module."""

    def collect(self) -> list[pytest.Item]:
        """Collect nothing."""
        return []


def is_first_process() -> bool:
    """Whether this is process 0 among those of `jax.distributed`, or the only one."""
    import jax

    return jax.process_index() == 0
