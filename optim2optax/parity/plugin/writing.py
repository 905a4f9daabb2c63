"""The reports and baselines of a session, written to their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optim2optax.parity.reports.result import Report
    from optim2optax.parity.scenario.baseline import Baseline

FORMATS = ("json", "markdown", "html")
"""The formats of reports, each of which has an option for its file."""

FAILED = 2
"""The exit code of a run that did not do what it was asked for."""


def write_report(report: Report, name: str, path: str) -> None:
    """Write a report to a file in a format, or end the run with exit code 2."""
    from optim2optax.parity import reports
    from optim2optax.project.replacing import replacing

    render: Any = getattr(reports, f"render_{name}")
    try:
        with replacing(Path(path)) as file:
            file.write(render(report).encode())
    except OSError as error:
        _exit(path, error)


def write_baselines(baselines: Mapping[str, Baseline], path: str) -> None:
    """Write baselines to a file, or end the run with exit code 2."""
    from optim2optax.parity.scenario.baseline import save_baselines

    try:
        save_baselines(Path(path), baselines)
    except OSError as error:
        _exit(path, error)


def _exit(path: str, error: OSError) -> None:
    pytest.exit(f"{path} cannot be written: {error.strerror}", returncode=FAILED)
