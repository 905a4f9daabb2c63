"""What two trajectories are called, and where the judge says that they part."""

from typing import Any

import numpy as np
import pytest
from flax.core import freeze

from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.judge import compare_trajectories
from tests.optim2optax.parity.differences import first_difference

STEPS = 20


def trajectory(**changes: Any) -> list[dict[str, Any]]:
    """A walk of two leaves over some steps; a change is a function applied to a leaf, which is stacked over steps."""
    random = np.random.default_rng(0)
    leaves = {
        "kernel": random.normal(size=(STEPS, 3, 2)).cumsum(axis=0),
        "bias": random.normal(size=(STEPS, 2)),
    }
    for leaf, change in changes.items():
        leaves[leaf] = change(leaves[leaf].copy())
    steps = [{leaf: leaves[leaf][step] for leaf in leaves} for step in range(STEPS)]
    return [{"Dense_0": step} for step in steps]


def walk(steps: int = STEPS, /, **leaves: Any) -> list[dict[str, Any]]:
    """A kernel that moves at each step beside leaves that hold a value."""
    return [{"kernel": np.full(3, 1.5 * step), **leaves} for step in range(steps)]


def put(step: int, index: tuple[int, ...], value: float) -> Any:
    def change(values: Any) -> Any:
        place = step, *index
        values[place] = value
        return values

    return change


def test_the_same_bits_are_identical() -> None:
    comparison = compare_trajectories(trajectory(), trajectory())
    assert comparison.verdict is Verdict.IDENTICAL
    assert (comparison.error, comparison.steps) == (0.0, STEPS)
    assert str(comparison) == "identical after 20 steps, error over movement 0.0e+00"


def scaled(leaf: str, factor: float) -> list[dict[str, Any]]:
    return trajectory(**{leaf: lambda values: values * factor})


def noisy(seed: int) -> list[dict[str, Any]]:
    """A walk whose bias is moved by noise alone."""
    noise = np.random.default_rng(seed).normal(size=(STEPS, 2)) * 1e-9
    return trajectory(bias=lambda _: noise)


def counting(factor: float) -> list[dict[str, Any]]:
    """A counter beside a leaf that hardly moves."""
    steps = map(np.asarray, range(STEPS))
    return [{"step": step, "scale": factor * step} for step in steps]


def still(bias: float) -> list[dict[str, Any]]:
    return walk(bias=np.full(3, bias))


HALF = [step["Dense_0"]["kernel"].astype(np.float16) for step in trajectory()]
NEXT = [np.nextafter(step, np.float16(np.inf)) for step in HALF]
FAR, FARTHER = [np.full(2, 100.0)] * STEPS, [np.full(2, 100.0 + 1e-10)] * STEPS
CLOSED = {"closed_loop": True}
VERDICTS: dict[str, tuple[Any, Any, dict[str, Any], Verdict]] = {
    "rounding": (trajectory(), scaled("kernel", 1 + 1e-15), {}, Verdict.EQUIVALENT),
    "much rounding": (trajectory(), scaled("kernel", 1 + 1e-13), {}, Verdict.EQUIVALENT),
    "a small mistake": (trajectory(), scaled("kernel", 1 + 1e-10), {}, Verdict.DIFFERENT),
    "zeros of two signs": (walk(bias=np.zeros(1)), walk(bias=-np.zeros(1)), {}, Verdict.EQUIVALENT),
    "a FrozenDict": ([freeze(step) for step in trajectory()], trajectory(), {}, Verdict.IDENTICAL),
    "a zero that stays": (still(0.0), still(0.0), {}, Verdict.IDENTICAL),
    "a zero that does not": (still(0.0), still(1e-300), {}, Verdict.DIFFERENT),
    "a one that stays": (still(1.0), still(1.0 + 1e-16), {}, Verdict.IDENTICAL),
    "a one that rounds": (still(1.0), still(1.0 + 1e-15), {}, Verdict.EQUIVALENT),
    "a one that does not": (still(1.0), still(1.0 + 1e-12), {}, Verdict.DIFFERENT),
    "movement from the first value": (FAR, FARTHER, {}, Verdict.DIFFERENT),
    "movement from the start": (FAR, FARTHER, {"start": np.zeros(2)}, Verdict.EQUIVALENT),
    "half precision": (HALF, HALF, {}, Verdict.IDENTICAL),
    "a bit of half precision": (HALF, NEXT, {}, Verdict.DIFFERENT),
    "a drift": (trajectory(), scaled("kernel", 1 + 4e-9), {}, Verdict.DIFFERENT),
    "a drift of a closed loop": (trajectory(), scaled("kernel", 1 + 4e-9), CLOSED, Verdict.EQUIVALENT),
    "a mistake in a closed loop": (trajectory(), scaled("kernel", 1 + 1e-6), CLOSED, Verdict.DIFFERENT),
    "a leaf that noise moves": (noisy(1), noisy(2), {}, Verdict.DIFFERENT),
    "a leaf that noise moves in a closed loop": (noisy(1), noisy(2), CLOSED, Verdict.EQUIVALENT),
    "a counter beside it lends no movement": (counting(1e-6), counting(1e-6 * (1 + 1e-5)), CLOSED, Verdict.DIFFERENT),
    "imaginary parts": (trajectory(), trajectory(kernel=lambda values: values + 1e-6j), {}, Verdict.DIFFERENT),
    "few steps that differ": (walk(3), walk(3, kernel=np.ones(3)), {}, Verdict.DIFFERENT),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "options", "expected"), VERDICTS.values(), ids=VERDICTS
)
def test_verdicts(
    before: Any, after: Any, options: dict[str, Any], expected: Verdict
) -> None:
    comparison = compare_trajectories(before, after, **options)
    assert comparison.verdict is expected, comparison


def test_the_first_difference_is_named() -> None:
    wrong = trajectory(
        kernel=lambda values: put(9, (0, 0), 7.0)(put(4, (2, 1), 5.0)(values)),
        bias=put(6, (0,), 3.0),
    )
    comparison = compare_trajectories(trajectory(), wrong)
    first = first_difference(comparison)
    right = trajectory()[4]["Dense_0"]["kernel"][2, 1]
    assert (first.step, first.leaf, first.index) == (4, "Dense_0/kernel", (2, 1))
    assert (first.before, first.after) == (right, 5.0)
    assert "first at step 4, Dense_0/kernel[2, 1]" in str(comparison)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_equal_to_themselves(value: float) -> None:
    both = trajectory(kernel=put(5, (1, 1), value))
    assert compare_trajectories(both, both).verdict is Verdict.IDENTICAL


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_on_one_side_differ(value: float) -> None:
    broken = trajectory(kernel=put(5, (1, 1), value))
    for before, after in [(broken, trajectory()), (trajectory(), broken)]:
        comparison = compare_trajectories(before, after)
        first = first_difference(comparison)
        assert comparison.error == np.inf
        assert (first.step, first.index) == (5, (1, 1))


def test_rounding_that_moves_a_leaf_is_a_remark() -> None:
    comparison = compare_trajectories(noisy(1), noisy(2), closed_loop=True)
    assert comparison.remarks == (
        "Rounding alone moves Dense_0/bias, so it is judged by the leaves beside it.",
    )


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9, 1e-12])
def test_in_a_closed_loop_a_leaf_with_gradients_is_judged_by_its_own_movement(
    size: float,
) -> None:
    """However much larger the movement of the leaves beside it is."""
    larger = {"kernel": lambda values: 100 * values}
    before = trajectory(bias=lambda values: size * values, **larger)
    after = trajectory(bias=lambda values: size * values[:1].repeat(STEPS, 0), **larger)
    evidence = Evidence(rounding={"Dense_0/bias": False})
    found = compare_trajectories(before, after, closed_loop=True, evidence=evidence)
    assert first_difference(found).leaf == "Dense_0/bias"


def test_a_leaf_is_told_from_one_whose_path_is_the_end_of_its_own() -> None:
    def side(sign: int) -> list[Any]:
        steps = [(float(step), 1e-14 * sign * step) for step in range(STEPS)]
        layers = [{"kernel": kernel, "bias": bias} for kernel, bias in steps]
        return [{"Block_0": {"Dense_0": layer}} for layer in layers]

    evidence = Evidence(rounding={"Block_0/Dense_0/bias": True, "Dense_0/bias": False})
    found = compare_trajectories(side(1), side(-1), closed_loop=True, evidence=evidence)
    assert found.verdict is Verdict.EQUIVALENT, found


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([np.ones(2)] * 2, [np.ones(2)], "2 steps, the new side 1"),
        ([{"a": 1.0, "b": 1.0}], [{"a": 1.0}], "only one of the two sides has b"),
        ([{"a": np.ones(3)}], [{"a": np.ones(1)}], r"a has shape \(3,\) before and \(1,\) after"),
        ([{"a": 1.0}, {"b": 1.0}], [{"a": 1.0}, {"a": 1.0}], "do not all have the same leaves"),
    ],
)  # fmt: skip
def test_what_does_not_correspond_cannot_be_compared(
    before: Any, after: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare_trajectories(before, after)


VACUOUS = {
    "nothing is held": ([{}] * STEPS, "Nothing was compared."),
    "no step": ([], "Nothing was compared."),
    "nine steps": (walk(9), "Only 9 steps were taken, and fewer than 10 prove nothing"),
    "no leaf moves": ([{"kernel": np.ones(3)}] * STEPS, "No parameter ever moved, as with a learning rate of zero"),
    "a counter alone moves": (
        [{"kernel": np.ones(3), "step": np.asarray(step)} for step in range(STEPS)],
        "No parameter ever moved",
    ),
    "NaN from a step on": (
        [{"kernel": np.full(3, step if step < 15 else np.nan)} for step in range(STEPS)],
        "From step 15 on, no value is finite on either side",
    ),
    "inf throughout": ([{"kernel": np.full(3, np.inf)}] * STEPS, "From step 0 on, no value is finite"),
}  # fmt: skip


@pytest.mark.parametrize(("held", "why"), VACUOUS.values(), ids=VACUOUS)
def test_two_sides_that_agree_where_nothing_happens_prove_nothing(
    held: Any, why: str
) -> None:
    comparison = compare_trajectories(held, held)
    assert comparison.verdict is Verdict.NOTHING_PROVEN
    assert comparison.remarks[0].startswith(why)
    assert why in str(comparison)


INFINITE = "From step 0 on, values of bias are not finite on either side, so nothing is proven of these."
REMARKS = {
    "all is exercised": (walk(), ()),
    "a leaf that stays": (walk(bias=np.ones(2)), ("bias never moved, so nothing is proven of it.",)),
    "many that stay": (
        walk(**{name: np.ones(2) for name in "abcde"}),
        ("a, b, c and 2 more never moved, so nothing is proven of them.",),
    ),
    "a leaf that is NaN": (walk(bias=np.full(2, np.nan)), (INFINITE,)),
}  # fmt: skip


@pytest.mark.parametrize(("held", "expected"), REMARKS.values(), ids=REMARKS)
def test_what_a_run_does_not_exercise_of_a_leaf_is_a_remark(
    held: Any, expected: tuple[str, ...]
) -> None:
    comparison = compare_trajectories(held, held)
    assert comparison.verdict is Verdict.IDENTICAL
    assert comparison.remarks == expected
