"""Which updates of two recordings correspond: several models, devices, members, and steps that move nothing."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from optim2optax.parity.command.compare import DifferentParametersError, compare_updates
from optim2optax.parity.command.updates import Update, by_kind, uncounted
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.recording.sketch import Part
from tests.optim2optax.parity.differences import first_difference

START = np.zeros(3)


def compared(old: Sequence[Update], new: Sequence[Update]) -> Comparison:
    return compare_updates(by_kind(old), by_kind(new))


def update(
    step: int | None, model: float, count: int, leaf: str = "w", idle: bool = False
) -> Update:
    """The update of a model that is `model` times as far from its start after each."""
    part = Part(leaf, "whole", (3,))
    after = np.array([0.3, 0.1, 0.7]) * model * (count + 1)
    return Update(step, {part: START}, {part: after}, idle)


def run(models: Sequence[float], known: bool = True) -> list[Update]:
    taken = [(step, model) for step in range(12) for model in models]
    return [update(step if known else None, model, step) for step, model in taken]


def models(step: Any, *factors: float) -> list[Update]:
    """Models one after the other; `step` gives the count of a step."""
    return [update(step(n), model, n) for model in factors for n in range(12)]


def idling() -> list[Update]:
    """Steps between which others move nothing, as `optax.MultiSteps` takes while it accumulates."""
    idle = [update(2 * step, 1.0, step - 1, idle=True) for step in range(12)]
    moving = [update(2 * step + 1, 1.0, step) for step in range(12)]
    return [found for pair in zip(idle, moving, strict=True) for found in pair]


SAME = {
    "one model": (run([1.0]), run([1.0])),
    "several, without counts": (models(int, 1, 2), models(lambda _: None, 1, 2)),
    "members whose callbacks race": (run([1.0, 2.0, 3.0]), run([3.0, 1.0, 2.0])),
    "devices that do alike": (run([1.0] * 4), run([1.0])),
    "steps that move nothing": (run([1.0]), idling()),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_the_same(old: list[Update], new: list[Update]) -> None:
    assert compared(old, new).verdict is Verdict.IDENTICAL


def test_a_member_that_differs() -> None:
    found = compared(run([1.0, 2.0, 3.0]), run([3.001, 1.0, 2.0]))
    assert found.verdict is Verdict.DIFFERENT


def test_other_parameters() -> None:
    message = r"only the old side steps w of shape \(3,\); only the new side steps v of shape \(3,\)"
    with pytest.raises(DifferentParametersError, match=message):
        compared([update(0, 1.0, 0)], [update(0, 1.0, 0, "v")])


def test_too_few_steps_of_one_model_prove_nothing_of_it() -> None:
    few = [update(step, 1.0, step, "head") for step in range(3)]
    found = compared([*run([1.0]), *few], [*run([1.0]), *few])
    assert found.verdict is Verdict.IDENTICAL
    assert found.remarks[0].startswith("Of head: Only 3 steps were taken")
    assert compared(few, few).verdict is Verdict.NOTHING_PROVEN


@pytest.mark.parametrize("known", [True, False])
def test_a_step_that_one_side_takes_alone(known: bool) -> None:
    for old, new, missing in ((12, 10, "after"), (10, 12, "before")):
        found = compared(run([1.0], known)[:old], run([1.0], known)[:new])
        first = first_difference(found)
        assert found.steps == first.step == 10
        assert math.isnan(getattr(first, missing))
        told = f"the old side took {old} steps of this optimizer, the new side {new}"
        assert told in str(first.link)


def test_a_difference_ahead_of_a_step_that_one_side_takes_alone() -> None:
    found = compared(run([1.0]), [*run([1.0])[:1], *run([1.5])[1:4]])
    assert first_difference(found).step == 1


def test_what_a_program_hands_over() -> None:
    def observed(values: Sequence[float]) -> list[Update]:
        part = Part("accuracy", "whole", ())
        after = [{part: np.array(value)} for value in values]
        return [Update(n, {}, one, observed="accuracy") for n, one in enumerate(after)]

    same = [*run([1.0]), *observed([0.5, 0.75])]
    assert compared(same, same).verdict is Verdict.IDENTICAL
    found = compared(same, [*run([1.0]), *observed([0.5, 0.76])])
    told = "step 1, accuracy: 0.75 before, 0.76 after"
    assert str(first_difference(found)).startswith(told)
    with pytest.raises(DifferentParametersError, match="observed accuracy"):
        compared(same, run([1.0]))


@pytest.mark.parametrize("old", [run([1.0]), idling()], ids=["all", "some idle"])
def test_a_run_that_is_repeated_on_one_side_alone_is_told(old: list[Update]) -> None:
    new = run([1.0])
    assert [*uncounted(by_kind(old), by_kind(new))] == []
    [told] = uncounted(by_kind([*old, *old]), by_kind(new))
    assert "applied 24 updates and the new one 12" in told
    assert compared([*old, *old], new).verdict is Verdict.IDENTICAL
