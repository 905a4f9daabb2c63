"""The runner of all parity cases: a pytest plugin. `optim2optax parity` is a front to it.

With `--parity`, each Python file that is collected gives an item for every optimizer that
`rewrite` would emit in it, and each `scenario.py` beside a `before.py` one for the scenario.
The cases of a session become one report.

This room knows pytest, and imports what a case needs only where it runs. The entry point of
pytest is this module itself.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from optim2optax.parity import what_is_missing
from optim2optax.parity.plugin.writing import FORMATS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("parity", "parity of flax.optim and optax")
    group.addoption(
        "--parity", action="store_true", help="collect optimizers and scenarios"
    )
    group.addoption(
        "--parity-steps",
        type=int,
        default=120,
        metavar="N",
        help="steps of each optimizer (default 120)",
    )
    group.addoption(
        "--parity-seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of parameters and gradients",
    )
    group.addoption(
        "--parity-before",
        metavar="REF",
        help="compare with this revision or folder, not with what rewrite emits",
    )
    group.addoption(
        "--parity-legacy-python",
        metavar="PATH",
        help="an interpreter that runs the old side of scenarios",
    )
    group.addoption(
        "--parity-save",
        metavar="FILE",
        help="keep what the old side of scenarios yields",
    )
    group.addoption(
        "--parity-against",
        metavar="FILE",
        help="compare scenarios with what was kept, not with old code",
    )
    group.addoption(
        "--parity-command", metavar="JSON", help="a training command as a list of words"
    )
    group.addoption(
        "--parity-timeout",
        type=float,
        metavar="SECONDS",
        help="how long a side of the command may take",
    )
    group.addoption(
        "--parity-link",
        action="append",
        default=[],
        metavar="PATH",
        help="what is linked, not copied",
    )
    group.addoption(
        "--parity-compare",
        action="append",
        default=[],
        metavar="FILE",
        help="what the command writes",
    )
    group.addoption(
        "--parity-lines",
        action="append",
        default=[],
        metavar="REGEX",
        help="what the command prints",
    )
    for name in FORMATS:
        group.addoption(
            f"--parity-{name}", metavar="PATH", help=f"write a report as {name}"
        )


def pytest_configure(config: pytest.Config) -> None:
    """Collect parity cases if that was asked for.

    Raises:
        pytest.UsageError: if something is missing that they need.
    """
    if config.getoption("--parity"):
        if reason := what_is_missing():
            raise pytest.UsageError(reason)
        # Without `--parity`, a session of somebody's tests is not to wait for more imports.
        from optim2optax.parity.plugin.session import NAME, ParitySession

        config.pluginmanager.register(ParitySession(config), NAME)
        _share_executables(config)


def _share_executables(config: pytest.Config) -> None:
    """Let workers of `--jobs` share what they compile, in a folder that is removed with the run."""
    from optim2optax.parity.running.processes import TEMPORARY

    folder = Path(tempfile.gettempdir())
    # Only a worker process of pytest-xdist has a `workerinput`.
    if hasattr(config, "workerinput") and folder.name.startswith(TEMPORARY):
        from optim2optax.parity.probing.compiling import share_executables

        share_executables(folder / "executables")
