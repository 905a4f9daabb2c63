"""Reports to render: every outcome, and names that mean something to each format."""

from dataclasses import replace

from optim2optax.parity.judging.comparison import (
    CLOSED_LOOP_GATE,
    Comparison,
    Difference,
    LeafError,
    Verdict,
)
from optim2optax.parity.reports.result import Case, Environment, Report, urgency

HOSTILE = "a|b <script>alert(1)</script> `c` *d*"
ENVIRONMENT = Environment(
    "cpu", "cpu", 2, {"python": "3.11.0", "jax": "0.4.36"}, 7, "highest", "--xla_flag=1"
)
SAME = Comparison(
    Verdict.EQUIVALENT,
    2e-15,
    3,
    drift=3e-7,
    leaves=(LeafError("Dense_0/kernel", (4, 3), 2e-15), LeafError("scale", (), 0.0)),
    error_by_step=(1e-16, 2e-15, 1e-15),
    drift_by_step=(1e-8, 3e-7, 2e-7),
)
PLACE = (1, "Dense_0/kernel", (0, 2))
CAUSE = (None, "decay", "the weight decay is missing")
APART = replace(
    SAME,
    verdict=Verdict.DIFFERENT,
    error=float("inf"),
    first_difference=Difference(*PLACE, 0.5, float("nan"), *CAUSE),
)
VACUOUS = replace(
    SAME,
    verdict=Verdict.NOTHING_PROVEN,
    error=0.0,
    drift=None,
    remarks=("No parameter ever moved.",),
    gate=CLOSED_LOOP_GATE,
    error_by_step=(0.0,) * 3,
    drift_by_step=(),
)
IDENTICAL = replace(
    SAME,
    verdict=Verdict.IDENTICAL,
    error=0.0,
    error_by_step=(0.0,) * 3,
    drift_by_step=(0.0,) * 3,
    remarks=("scale never moved.",),
)


def report() -> Report:
    adam, momentum = (
        ("optim.Adam(lr)", "optax.adam(lr)"),
        ("optim.Momentum(lr)", "optax.sgd(lr)"),
    )
    odd = (f"x = '{HOSTILE}'", "```\ny = 1\n```", "a known fault")
    why = "the old side ended with exit code 1:\nNo data <here>"
    cases = (
        Case("train.py:3 Adam", "optimizer", SAME, *adam, reproduction="print(1)"),
        Case("train.py:9 Momentum", "optimizer", IDENTICAL, *momentum),
        Case(HOSTILE, "scenario", APART, *odd),
        Case("fixtures/still", "scenario", VACUOUS),
        Case("python train.py", "command", None, reason=why),
    )
    return Report(tuple(sorted(cases, key=urgency)), ENVIRONMENT)
