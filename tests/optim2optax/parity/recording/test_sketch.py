"""Of large leaves not all is kept; a fault in few of their elements shows all the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from optim2optax.parity.command.compare import compare_updates
from optim2optax.parity.command.updates import ByKind, Update, by_kind
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.recording.methods import UNKNOWN
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.parity.recording.sketch import Part, largest, positions, sketch
from optim2optax.parity.recording.stream import read
from optim2optax.precision import precise
from tests.optim2optax.parity.differences import first_difference

STEPS = 12
SHAPE = (500, 400)
Change = Callable[[int, jax.Array], jax.Array]


def updates(change: Change = lambda _, kernel: kernel) -> ByKind:
    """Steps of a kernel and of a bias that is large as well, in float64; the kernel is changed after its step."""
    rng = np.random.default_rng(0)
    found = []
    with precise():
        kernel = jnp.asarray(rng.normal(size=SHAPE))
        bias = jnp.asarray(rng.normal(size=5000))
        for step in range(STEPS):
            before = sketch({"kernel": kernel, "bias": bias}, whole_sketch=False)
            kernel = change(step, kernel + 1e-3 * rng.normal(size=SHAPE))
            bias = bias + 1e-5 * rng.normal(size=5000)
            after = sketch({"kernel": kernel, "bias": bias})
            sides = jax.tree_util.tree_map(np.asarray, [before, after])
            found.append(Update(step, *sides))
    return by_kind(found)


SAME = updates()


def compare(change: Change) -> Comparison:
    return compare_updates(SAME, updates(change))


def test_the_same_updates_are_identical() -> None:
    found = compare(lambda _, kernel: kernel)
    assert found.verdict is Verdict.IDENTICAL
    shapes = {leaf.leaf: leaf.shape for leaf in found.leaves}
    assert shapes == {"bias": (5000,), "kernel": SHAPE}


def test_the_last_bit_of_one_element_is_no_more_than_equivalent() -> None:
    element = jnp.s_[123, 45]
    found = compare(
        lambda _, one: one.at[element].set(jnp.nextafter(one[element], np.inf))
    )
    assert found.verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize("place", [(0, 0), (123, 45), (499, 399)])
def test_one_element_that_is_not_as_it_should_be(place: tuple[int, int]) -> None:
    found = compare(lambda step, kernel: kernel.at[place].add(1e-7 * (step >= 5)))
    difference = first_difference(found)
    assert difference.step == 5
    parts = difference.leaf.removeprefix("kernel (weighted sum of ").rstrip(")")
    ends = [json.loads(part) for part in parts.split(" to ")]
    first, last = (np.ravel_multi_index(end, SHAPE) for end in ends)
    assert first <= np.ravel_multi_index(place, SHAPE) <= last


def test_two_elements_that_are_exchanged() -> None:
    found = compare(
        lambda _, kernel: kernel.at[7, 7].set(kernel[7, 8]).at[7, 8].set(kernel[7, 7])
    )
    assert found.verdict is Verdict.DIFFERENT


def test_a_fault_in_every_element_names_a_true_one() -> None:
    places = positions("kernel", 500 * 400)
    with precise():
        wrong = jnp.zeros(500 * 400).at[places].set(1.0).reshape(SHAPE)
    first = first_difference(compare(lambda step, one: one + wrong * (step >= 3)))
    assert (first.step, first.leaf) == (3, "kernel")
    assert np.ravel_multi_index(first.index, SHAPE) in places


def test_one_value_that_is_not_finite() -> None:
    found = compare(lambda _, kernel: kernel.at[0, 0].set(np.nan))
    assert found.verdict is Verdict.DIFFERENT


def test_values_that_are_not_finite_hide_none_of_those_beside_them() -> None:
    """On both sides, from the start or from some step on."""

    def broken(step: int, kernel: jax.Array) -> jax.Array:
        return kernel.at[0, 0].set(np.nan).at[0, 1].set(np.inf if step >= 3 else 0.0)

    same = updates(broken)
    assert compare_updates(same, updates(broken)).verdict is Verdict.IDENTICAL
    other = updates(lambda step, one: broken(step, one).at[0, 2].add(1e-7))
    assert compare_updates(same, other).verdict is Verdict.DIFFERENT
    other = updates(lambda step, one: broken(step, one).at[0, 1].multiply(-1.0))
    assert first_difference(compare_updates(same, other)).step == 3


@pytest.mark.parametrize("wide", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("size", [5000, 200_003, 1_000_000])
def test_sums_counts_and_the_largest_are_those_of_the_leaf(
    size: int, wide: bool
) -> None:
    dtype = np.float64 if wide else np.float32
    values = np.random.default_rng(0).normal(size=size).astype(dtype)
    odd = values.copy()
    odd[np.arange(size) % 1000 == 7] = np.nan
    odd[np.arange(size) % 2000 == 8] = -np.inf
    finite = np.where(np.isfinite(odd), odd, dtype(0.0))
    with precise(wide):
        leaves = [jnp.asarray(leaf, dtype) for leaf in (values, odd, finite)]
        one, other, zeroed = (sketch({"leaf": leaf}) for leaf in leaves)
        sizes = [float(largest(leaf)) for leaf in leaves[:2]]
    sums, counts = Part("leaf", "sums", (size,)), Part("leaf", "counts", (size,))
    assert one[counts].tolist() == [0, 0, 0]
    assert other[counts].tolist() == [np.isnan(odd).sum(), 0, np.isneginf(odd).sum()]
    assert other[sums].tolist() == zeroed[sums].tolist()
    assert sizes == [np.abs(values).max(), np.abs(finite).max()]


@pytest.mark.parametrize("wide", [True, False], ids=["float64", "float32"])
def test_a_checksum_tells_signs_of_zeros(wide: bool) -> None:
    zeros = np.zeros(10_000, np.float64 if wide else np.float32)
    signed = zeros.copy()
    signed[[17, 4711]] = -0.0
    digest = Part("leaf", "digest", (10_000,))
    with precise(wide):
        leaves = [jnp.asarray(leaf) for leaf in (zeros, signed)]
        one, other = (sketch({"leaf": leaf})[digest] for leaf in leaves)
    assert one.tolist() != other.tolist()


NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("dtype", [*NARROW, np.float32, np.complex64, np.bool_])
def test_parameters_of_every_type_are_recorded(dtype: type, tmp_path: Path) -> None:
    large: Any = np.ones((100, 100), dtype)
    params = {"small": large[0, :3], "large": large}
    options = {"out": tmp_path, "inputs": False, "rounding": False, "wide": True}
    recorder = Recorder(options, dict)
    with precise():
        step = jax.jit(lambda tree: recorder.call_back(UNKNOWN, tree, tree))
        step(params)
        jax.effects_barrier()  # type: ignore[no-untyped-call]
    [path] = tmp_path.iterdir()
    [(facts, arrays)] = read(path)
    assert facts == {"step": -1, "idle": True}
    dtypes = {part.name: values.dtype for part, values in arrays["after"].items()}
    assert dtypes["sample"] == dtype
    path.write_bytes(path.read_bytes()[:-1])
    assert list(read(path)) == []
