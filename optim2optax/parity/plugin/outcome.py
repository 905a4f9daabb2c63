"""How a session ended, for the code that started it."""

from __future__ import annotations

import pytest

from optim2optax.parity.plugin.session import NAME, ParitySession
from optim2optax.parity.plugin.writing import FAILED


class Listener:
    """Keeps how a session ended.

    That is the exit code of its report, or 2 if pytest itself failed; whether there was nothing to
    compare; and errors.
    """

    exit_code = FAILED
    nothing_found = False
    nothing_ran = False

    def __init__(self) -> None:
        self.errors: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why something could not be collected."""
        if report.failed:
            self._keep(report.nodeid or "collection", report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep why a case failed ahead of any outcome."""
        if report.failed and not hasattr(report, "parity_case"):
            self._keep(report.nodeid, report.longreprtext)

    def _keep(self, name: str, text: str) -> None:
        self.errors.append(f"{name}: {text.strip()}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """End at once, as the words of pytest are about its own options.

        pytest calls this for errors in collection, too.
        """
        if excinfo.type is KeyboardInterrupt:
            raise KeyboardInterrupt

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Take the exit code from the cases that ran."""
        parity = session.config.pluginmanager.get_plugin(NAME)
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self.nothing_found = True
        if not isinstance(parity, ParitySession):
            return
        self.nothing_ran = not parity.cases
        # A session that was interrupted, or that pytest itself ended, has no result.
        if parity.cases and exitstatus <= pytest.ExitCode.TESTS_FAILED:
            self.exit_code = FAILED if self.errors else parity.report().exit_code
