"""The runner of all parity cases: a pytest plugin. `optim2optax parity` is a front to it.

With `--parity`, each Python file that is collected gives an item for every optimizer that
`rewrite` would emit in it, and each `scenario.py` beside a `before.py` one for the scenario.
The cases of a session become one report.

This room knows pytest, and imports what a case needs only where it runs. The entry point of
pytest is this module itself.
"""

from __future__ import annotations

import pytest

from optim2optax.parity import what_is_missing

GIVEN_ONCE = (
    (
        "before",
        "REF",
        "compare with this revision or folder, not with what rewrite emits",
    ),
    ("legacy-python", "PATH", "an interpreter that runs the old side of scenarios"),
    ("save", "FILE", "keep what the old side of scenarios yields"),
    ("against", "FILE", "compare scenarios with what was kept, not with old code"),
    ("command", "JSON", "a training command as a list of words"),
)
GIVEN_OFTEN = (
    ("link", "PATH", "what is linked, not copied"),
    ("compare", "FILE", "what the command writes"),
    ("lines", "REGEX", "what the command prints"),
)
"""The options with texts: their names, what stands for a value, and help."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    add = parser.getgroup("parity", "parity of flax.optim and optax").addoption
    add("--parity", action="store_true", help="collect optimizers and scenarios")
    steps = "steps of each optimizer (default 120)"
    add("--parity-steps", type=int, default=120, metavar="N", help=steps)
    seed = "seed of parameters and gradients"
    add("--parity-seed", type=int, default=0, metavar="N", help=seed)
    timeout = "how long a side of the command may take"
    add("--parity-timeout", type=float, metavar="SECONDS", help=timeout)
    for name, value, text in GIVEN_ONCE:
        add(f"--parity-{name}", metavar=value, help=text)
    for name, value, text in GIVEN_OFTEN:
        option = f"--parity-{name}"
        add(option, action="append", default=[], metavar=value, help=text)


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
