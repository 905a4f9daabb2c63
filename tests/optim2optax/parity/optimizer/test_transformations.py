"""The judge calls equal forms equal, and finds every planted fault."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optim2optax.legacy import legacy_flax, legacy_optim
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.optimizer.probe import probe_params, recorded_gradients
from optim2optax.parity.optimizer.same_function import (
    compare_probed,
    compare_transformations,
)
from tests.optim2optax.parity.differences import first_difference

pytestmark = pytest.mark.usefixtures("legacy_wheel")

Definition = Callable[[Any], Any]
"""Makes the legacy definition from the old module `flax.optim`."""


def decay(step: Any) -> Any:
    """A schedule, as a function of the step from 0."""
    return 0.01 / (1.0 + step)


KERNEL = np.linspace(-0.5, 0.6, 12).reshape(4, 3)
PARAMS = {
    "Dense_0": {"kernel": KERNEL, "bias": np.zeros(3)},
    "LayerNorm_0": {"scale": np.ones(3)},
}
"""Fewer than `probe_params`: compiling takes a fifth."""


def compare(
    definition: Definition, transformation: optax.GradientTransformation, **options: Any
) -> Comparison:
    options = {"params": PARAMS, **options}
    with legacy_optim() as optim:
        return compare_transformations(definition(optim), transformation, **options)


inject = partial(optax.inject_hyperparams, static_args=("b1", "b2", "eps", "eps_root"))


def labels(params: Any) -> Any:
    def label(path: Any, _: Any) -> str:
        return path[-1].key if path[-1].key in ("kernel", "bias") else "frozen"

    return jax.tree_util.tree_map_with_path(label, params)


def partitioned(rest: optax.GradientTransformation) -> optax.GradientTransformation:
    groups = {"kernel": optax.adam(1e-2), "bias": optax.sgd(1e-1), "frozen": rest}
    return optax.transforms.partition(groups, labels)


def in_groups(optim: Any) -> Any:
    kernels = optim.ModelParamTraversal(lambda path, _: path.endswith("/kernel"))
    biases = optim.ModelParamTraversal(lambda path, _: path.endswith("/bias"))
    return optim.MultiOptimizer(
        (kernels, optim.Adam(1e-2)), (biases, optim.GradientDescent(1e-1))
    )


def momentum(optim: Any) -> Any:
    return optim.Momentum(0.1, 0.9, weight_decay=1e-3, nesterov=True)


def adam(*arguments: float) -> Definition:
    return lambda optim: optim.Adam(*arguments)


SGD = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(0.1, 0.9, nesterov=True))
LATE = optax.adam(lambda count: decay(count + 1))
VERDICTS: dict[str, tuple[Definition, Any, dict[str, Any], Verdict]] = {
    "no differing bit": (momentum, SGD, {}, Verdict.IDENTICAL),
    "only rounding": (adam(1e-3), optax.adam(1e-3), {}, Verdict.EQUIVALENT),
    "adam that hardly moves": (adam(1e-6), optax.adam(1e-6), {}, Verdict.EQUIVALENT),
    "nothing moves": (adam(0.0), optax.sgd(0.0), {}, Verdict.NOTHING_PROVEN),
    "frozen leaves": (in_groups, partitioned(optax.set_to_zero()), {}, Verdict.EQUIVALENT),
    "raw gradients outside": (in_groups, partitioned(optax.identity()), {}, Verdict.DIFFERENT),
    "an injected rate": (adam(), inject(optax.adam)(1.0), {"overrides": decay}, Verdict.EQUIVALENT),
    "a schedule": (adam(), optax.adam(decay), {"overrides": decay}, Verdict.EQUIVALENT),
    "a schedule that is a step late": (adam(), LATE, {"overrides": decay}, Verdict.DIFFERENT),
    "a rate that is ignored": (adam(), optax.adam(1.0), {"overrides": decay}, Verdict.DIFFERENT),
    "an array": (momentum, SGD, {"params": np.ones(3)}, Verdict.IDENTICAL),
    "a tuple": (momentum, SGD, {"params": (np.ones(3), np.asarray(0.5))}, Verdict.IDENTICAL),
}  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "tx", "options", "expected"), VERDICTS.values(), ids=VERDICTS
)
def test_verdicts(
    definition: Definition, tx: Any, options: dict[str, Any], expected: Verdict
) -> None:
    comparison = compare(definition, tx, **options)
    assert comparison.verdict is expected, comparison
    assert (comparison.first_difference is None) == (expected is not Verdict.DIFFERENT)
    if expected is Verdict.IDENTICAL:
        assert comparison.error == comparison.drift == 0.0


def test_float32_has_a_veto_where_it_overflows_on_one_side_alone() -> None:
    """Gradients that are blown up and shrunk again are the same in float64, and infinite in float32."""
    scales = [optax.scale(factor) for factor in (1e25, 1e25, 1e-25, 1e-25)]
    ahead = optax.chain(*scales, optax.sgd(0.1))
    comparison = compare(lambda optim: optim.GradientDescent(0.1), ahead)
    first = first_difference(comparison)
    assert np.isfinite(first.before) != np.isfinite(first.after)
    assert comparison.remarks == (
        "In float64 the two agree; in float32 this value is finite on one side alone.",
    )


def test_the_precision_of_the_process_stays() -> None:
    with legacy_flax():
        compare(lambda optim: optim.GradientDescent(0.1), optax.sgd(0.1), steps=2)
    assert jnp.ones(2).dtype == np.float32
    assert jnp.float32(1).dtype == np.float32


def test_the_seed_alone_decides_what_optimizers_are_probed_with() -> None:
    first, again, other = (
        jax.tree_util.tree_leaves(recorded_gradients(probe_params(seed), 5, seed))
        for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_recorded_gradients_hide_nothing() -> None:
    gradients = recorded_gradients(probe_params(), 120)
    kernel = gradients["Dense_0"]["kernel"]
    assert kernel.shape == (120, 7, 5)
    assert (kernel > 0).any()
    assert (kernel < 0).any()
    assert (kernel == 0).any()
    assert np.ptp([abs(step).max() for step in kernel]) > 1
    assert 0 < abs(gradients["tiny"]["kernel"]).max() < 1e-4
    assert abs(gradients["huge"]["kernel"]).max() > 1e3
    assert not gradients["unused"]["kernel"].any()


def test_what_overflows_in_float32_does_so_on_both_sides() -> None:
    """Where a compiler may fuse a product and a difference, infinity less infinity is finite on one side alone."""
    with legacy_optim() as optim:
        old = optim.RMSProp(0.013, centered=True)
    found = compare_probed(old, optax.rmsprop(0.013, centered=True, eps_in_sqrt=False))
    assert found.verdict is Verdict.EQUIVALENT, found
