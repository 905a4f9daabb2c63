"""The page for a browser: cases in which there is little to plot, or too much."""

from math import inf

import numpy as np
import pytest

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.judge import compare_trajectories
from optim2optax.parity.reports.rendering import render
from optim2optax.parity.reports.result import Case, Report
from tests.optim2optax.parity.reports.cases import ENVIRONMENT


def page(comparison: Comparison) -> str:
    case = Case("train.py:3 Adam", "optimizer", comparison)
    return render(Report((case,), ENVIRONMENT), "html")


@pytest.mark.parametrize(
    "errors",
    [(1e-9,), (inf, inf), (0.0, inf, 1e-3), (1e-300, 1e308)],
    ids=["one step", "infinite", "mixed", "wide"],
)
def test_whatever_the_error_it_is_plotted(errors: tuple[float, ...]) -> None:
    figures = (max(errors), len(errors))
    found = Comparison(Verdict.DIFFERENT, *figures, error_by_step=errors)
    assert page(found).count("<svg") == 1


def test_a_leaf_that_should_not_move_is_plotted() -> None:
    still = [{"bias": np.zeros(2)}] * 3
    moving = [{"bias": np.full(2, value)} for value in (0.0, 1.0, 2.0)]

    assert page(compare_trajectories(still, moving)).count("<svg") == 1


SAID = {
    "The same function: not one bit differs in 10 steps.": ([1.0, 2.0], [1.0, 2.0]),
    "The same function: in 10 steps, the largest difference is": ([1.0], [1.0 + 1e-15]),
    "Another function: in 10 steps, the largest difference is 1.0e": ([1.0], [2.0]),
    "Nothing is proven in 10 steps.": ([0.0], [0.0]),
}


@pytest.mark.parametrize("said", SAID)
def test_a_verdict_is_a_sentence(said: str) -> None:
    before, after = (
        [{"kernel": np.array(one) * step} for step in range(10)] for one in SAID[said]
    )
    assert said in page(compare_trajectories(before, after))


def test_without_errors_by_step_nothing_is_claimed() -> None:
    text = page(Comparison(Verdict.DIFFERENT, inf, 3))

    assert "<svg" not in text
    assert "The error was not recorded by step." in text
