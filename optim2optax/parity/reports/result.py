"""The results of a parity run: cases with their verdicts, and the environment of the run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

from optim2optax import __version__
from optim2optax.parity.judging.comparison import (
    SEVERITY,
    Comparison,
    Difference,
    Verdict,
    gate,
)

Level = Literal["optimizer", "scenario", "command"]


@dataclass(frozen=True)
class Case:
    """One optimizer, scenario or command, run on both sides.

    `name` is that of the case, such as `src/train.py:41 Adam`. `before` and `after` are the source
    texts that were compared, if there are any. `comparison` is None if the case could not run;
    `reason` then says why, in one sentence. For a case that ran, `reason` names a known fault of
    the old side, if one shows. `reproduction` is the command that runs the case again, alone.
    """

    name: str
    level: Level
    comparison: Comparison | None
    before: str = ""
    after: str = ""
    reason: str = ""
    reproduction: str = ""

    @property
    def outcome(self) -> Verdict:
        return self.comparison.verdict if self.comparison else Verdict.COULD_NOT_RUN

    @property
    def difference(self) -> Difference | None:
        """Where the two sides first differ, if they do."""
        return self.comparison.first_difference if self.comparison else None

    @property
    def cells(self) -> tuple[str, str, str]:
        """The error, the drift and the steps as in a table; empty where there are none."""
        found = self.comparison
        if found is None:
            return "", "", ""
        drift = "" if found.drift is None else f"{found.drift:.1e}"
        return f"{found.error:.1e}{gate(found)}", drift, str(found.steps)

    @property
    def passes(self) -> bool:
        """Whether it is identical or equivalent."""
        return self.outcome in (Verdict.IDENTICAL, Verdict.EQUIVALENT)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks of the comparison, if the case ran, and the lines of the reason."""
        remarks = self.comparison.remarks if self.comparison else ()
        return (*remarks, *self.reason.splitlines())


@dataclass(frozen=True)
class Environment:
    """Where a run took place.

    The platform of JAX (cpu, gpu, tpu), the kind and number of devices, the versions of Python and
    of the packages by name, the seed, the precision of matrix products, and the flags given to XLA.
    """

    platform: str
    device_kind: str
    device_count: int
    versions: Mapping[str, str]
    seed: int
    matmul_precision: str
    xla_flags: str

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {found}" for name, found in self.versions.items())
        devices = f"{self.device_count} × {self.device_kind} ({self.platform})"
        return f"{devices}; {versions}; seed {self.seed}"


@dataclass(frozen=True)
class Report:
    """All cases of a run; in order of `urgency`, those that do not pass come first."""

    cases: tuple[Case, ...]
    environment: Environment

    @property
    def summary(self) -> dict[str, int]:
        """The number of cases of each outcome."""
        return {
            outcome.value: sum(case.outcome is outcome for case in self.cases)
            for outcome in Verdict
        }

    @property
    def totals(self) -> str:
        """The summary in words."""
        # 12 identical, 3 equivalent, 0 different, …
        return ", ".join(
            f"{number} {Verdict(name).words}" for name, number in self.summary.items()
        )

    @property
    def exit_code(self) -> int:
        """The exit code of the command.

        It is 2 if there is no case, or one that could not run or proves nothing, else 1 if one is
        different, else 0.
        """
        # No case at all is an error in how parity was called.
        outcomes = {case.outcome for case in self.cases}
        # A run that proves less than it was asked for is no success, even beside a difference.
        if not outcomes or outcomes & {Verdict.COULD_NOT_RUN, Verdict.NOTHING_PROVEN}:
            return 2
        return 1 if Verdict.DIFFERENT in outcomes else 0


def urgency(case: Case) -> tuple[int, str, str]:
    """The order of cases in a report; all that pass are equal, and go by level and name."""
    severity = 0 if case.passes else SEVERITY.index(case.outcome)
    return -severity, case.level, case.name


PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


def environment(seed: int) -> Environment:
    """The environment of this process, as JAX found it."""
    import jax

    device = jax.devices()[0]
    return Environment(
        platform=device.platform,
        device_kind=device.device_kind,
        device_count=jax.device_count(),
        versions={
            "python": platform.python_version(),
            "optim2optax": __version__,
            **{name: version(name) for name in PACKAGES},
        },
        seed=seed,
        matmul_precision="highest",
        xla_flags=os.environ.get("XLA_FLAGS", ""),
    )
