"""The cases of parity as a part of a user's tests: a plugin of pytest, `pytest --parity src/`."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optim2optax.parity import what_is_missing

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case
    from optim2optax.parity.session.tasks import Task


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    add = parser.getgroup("parity", "parity of flax.optim and optax").addoption
    add("--parity", action="store_true", help="run the cases of parity")
    text = "compare with this revision or folder, not with what rewrite emits"
    add("--parity-before", metavar="REF", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Run parity cases if that was asked for.

    Raises:
        pytest.UsageError: if something is missing that they need.
    """
    if config.getoption("--parity"):
        if reason := what_is_missing():
            raise pytest.UsageError(reason)
        config.pluginmanager.register(ParitySession(config))


class ParitySession:
    """The cases of one session of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.cases: list[Case] = []

    @cached_property
    def tasks(self) -> list[Task]:
        """The cases to run. Without `--parity`, nobody waits for these imports."""
        from optim2optax.parity.session.project import Project, Request
        from optim2optax.parity.session.tasks import selecting, tasks

        scratch = tempfile.TemporaryDirectory(prefix="optim2optax-")
        self.config.add_cleanup(scratch.cleanup)
        # An argument may be `test_own.py::test_one`, which names one test of a file.
        paths = [argument.partition("::")[0] for argument in self.config.args]
        request = Request(
            tuple(Path(path).resolve() for path in paths),
            Path(self.config.invocation_params.dir),
            self.config.getoption("--parity-before"),
        )
        return [*tasks(Project(request, Path(scratch.name)), selecting(None))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add an item for each case."""
        items += [
            ParityItem.from_parent(session, name=task.name, task=task)
            for task in self.tasks
        ]

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Keep pytest from importing a legacy file or scenario that is given by name as a test."""
        if module_path.resolve() in [task.path for task in self.tasks]:
            return NoTests.from_parent(parent, path=module_path)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the case to the report, on which it travels from worker processes."""
        report = yield
        case = getattr(item, "case", None)
        if case is not None and call.when == "call":
            # pytest-xdist sends only plain values to the first process.
            vars(report)["parity_case"] = pickle.dumps(case)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the case of a report."""
        packed = getattr(report, "parity_case", None)
        if packed is not None:
            self.cases.append(pickle.loads(packed))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the report as text."""
        if self.cases:
            import click

            from optim2optax.parity.reports.rendering import render
            from optim2optax.parity.reports.result import Report, environment, urgency

            cases = tuple(sorted(self.cases, key=urgency))
            report = Report(cases, environment(seed=0))
            terminalreporter.ensure_newline()
            text = render(report, "text")
            is_colored = terminalreporter.hasmarkup
            terminalreporter.write(text if is_colored else click.unstyle(text))


class ParityItem(pytest.Item):
    """A case to run."""

    case: Case | None = None

    def __init__(self, *, task: Task, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.task = task

    def runtest(self) -> None:
        """Run the case; only identical and equivalent ones pass."""
        self.case = self.task.run()
        if not self.case.passes:
            # A difference needs no traceback.
            pytest.fail(str(self.case.comparison or self.case.reason), pytrace=False)


class NoTests(pytest.File):
    """A file that is no test module."""

    def collect(self) -> list[pytest.Item]:
        """Collect nothing."""
        return []
