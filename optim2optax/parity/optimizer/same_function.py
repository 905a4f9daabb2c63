"""Whether an old optimizer and a new one are the same function.

Both get the same gradients, and the judge decides: in the main replay, and in short special ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.judge import first_far_apart, judge
from optim2optax.parity.judging.movement import (
    LeafTrajectories,
    PyTree,
    leaves_by_path,
)
from optim2optax.parity.optimizer.probe import (
    extreme_gradients,
    few_params,
    params_around,
    probe_params,
    recorded_gradients,
)
from optim2optax.parity.replaying import stepping
from optim2optax.precision import precise

Side: TypeAlias = Callable[[PyTree, PyTree, Any], PyTree]
"""A function of initial parameters, gradients and learning rates to the parameters of each step.

Gradients and rates are stacked over steps, as are the results.
"""

VETO = "In float64 the two agree; in float32 this value is finite on one side alone."

LIKELY = 1e-9
"""How far finite values may be apart where gradients are extreme.

It is in relation to the movement of the element, or to its value.
"""

EXTREME = "what becomes of an extreme gradient"

FEW_STEPS = 12
"""The steps of the replay for leaves of other sizes."""


def compare_transformations(
    old: Any,
    new: Any,
    steps: int = 120,
    seed: int = 0,
    params: PyTree = None,
    overrides: Callable[[int], ArrayLike] | None = None,
) -> Comparison:
    """Replay the same gradients into two optimizers, and judge whether they are the same function.

    It is "identical" only if no bit differs, neither in float64 nor in the parameters' own
    precision, and "different", too, if a value stays finite on one side alone in that precision.

    Args:
        old: an `OptimizerDef` of the old `flax.optim`, or a gradient transformation.
        new: what is to replace it, likewise.
        steps: how many updates; fewer than 100 let small mistakes pass.
        seed: of the probe parameters and the gradients.
        params: parameters to probe with instead of `probe_params`.
        overrides: the learning rate given to each `apply_gradient`, as a function of the step
            from 0. A transformation gets it as its injected hyperparameter; one that has none is
            taken to have a schedule of its own.

    Raises:
        TypeError: if one of the two is no optimizer.
    """
    params = probe_params(seed) if params is None else params
    return _compare(Pair(old, new), steps, seed, params, overrides)


def _compare(
    pair: Pair,
    steps: int,
    seed: int,
    params: PyTree,
    overrides: Callable[[int], ArrayLike] | None,
) -> Comparison:
    """The comparison of the main replay, in float64 and in the parameters' own precision."""
    gradients = recorded_gradients(params, steps, seed)
    rates = _rates(overrides, steps)
    by_path = leaves_by_path(gradients)
    # Weight decay may move a leaf without gradients, and nothing else does.
    idle = [leaf for leaf, values in by_path.items() if not np.any(values)]
    evidence = Evidence(idle=idle)
    exact = judge(*pair.replay(params, gradients, rates), evidence=evidence)
    if exact.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN):
        return exact
    replay = pair.replay(params, gradients, rates, wide=False)
    narrow = judge(*replay, evidence=evidence)
    apart = first_far_apart(*replay)
    measured = replace(exact, drift=narrow.error, drift_by_step=narrow.error_by_step)
    if apart is not None:
        return replace(
            measured, verdict=Verdict.DIFFERENT, first_difference=apart, remarks=(VETO,)
        )
    same_bits = exact.verdict is narrow.verdict is Verdict.IDENTICAL
    verdict = Verdict.IDENTICAL if same_bits else Verdict.EQUIVALENT
    return replace(measured, verdict=verdict)


def compare_probed(
    old: Any,
    new: Any,
    steps: int = 120,
    seed: int = 0,
    params: PyTree = None,
    overrides: Callable[[int], float] | None = None,
    horizon: int = 0,
    sizes: Sequence[int] = (),
) -> Comparison:
    """Compare as `compare_transformations` does, and in further replays.

    These have extreme gradients; `horizon` steps of few parameters, if they are more than `steps`;
    and leaves around the `sizes` at which the optimizer does otherwise.

    Returns:
        The comparison of the main replay, or of the first further one in which the two differ.
    """
    params = probe_params(seed) if params is None else params
    pair = Pair(old, new)
    found = _compare(pair, steps, seed, params, overrides)
    if found.verdict not in (Verdict.IDENTICAL, Verdict.EQUIVALENT):
        return found

    further: list[tuple[PyTree, int]] = []
    if horizon > steps:
        further.append((few_params(params), horizon))
    if sizes:
        further.append((params_around(sizes, seed), FEW_STEPS))
    for few, number in further:
        gradients = recorded_gradients(few, number, seed)
        other = judge(*pair.replay(few, gradients, _rates(overrides, number)))
        if other.verdict is Verdict.DIFFERENT:
            return other
    gradients = extreme_gradients(params, steps, seed)
    for wide in (True, False):
        replay = pair.replay(params, gradients, _rates(overrides, steps), wide)
        # In float32, only what overflows on one side alone counts.
        apart = first_far_apart(*replay, gate=LIKELY if wide else np.inf)
        if apart is not None:
            apart = replace(apart, ulp=None, link=EXTREME)
            return replace(found, verdict=Verdict.DIFFERENT, first_difference=apart)
    return found


EXACT: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_parallel_codegen_split_count": "1",
    "xla_cpu_use_fusion_emitters": True,
}
"""On CPU, compiling takes far longer than running, so that optimizing the code is wasted.

To split a small function for several threads takes longer than it saves. The last option
distinguishes identical from equivalent, whatever XLA_FLAGS say.
"""


class Pair:
    """Two optimizers that take the same steps. Raises TypeError if one of the two is none."""

    def __init__(self, old: Any, new: Any) -> None:
        self.sides = _side(old), _side(new)
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def replay(
        self, params: PyTree, gradients: PyTree, rates: Any = None, wide: bool = True
    ) -> tuple[LeafTrajectories, LeafTrajectories, LeafTrajectories]:
        """Let both sides take steps, in float64 or else in float32.

        The leaves of `gradients` have a leading axis of steps, and `rates` are None if none are
        given. The result are the parameters of the old side and of the new, stacked over steps,
        and what both start from.
        """

        def starting(leaf: Any) -> jax.Array:
            return jnp.asarray(leaf, jnp.float64 if wide else None)

        def alike(leaf: jax.Array, values: Any) -> jax.Array:
            return jnp.asarray(values, leaf.dtype)

        with precise(wide):
            start = jax.tree_util.tree_map(starting, params)
            inputs = jax.tree_util.tree_map(alike, start, gradients)
            leaves, structure = jax.tree_util.tree_flatten((inputs, rates))
            # Another replay of as many steps has only other values.
            key = wide, structure, tuple(map(jnp.shape, leaves))
            if key not in self._compiled:
                lowered = jax.jit(self._both).lower(start, inputs, rates)
                self._compiled[key] = _compiled(lowered)
            before, after = jax.device_get(self._compiled[key](start, inputs, rates))
            return leaves_by_path(before), leaves_by_path(after), leaves_by_path(start)

    def _both(self, *arguments: Any) -> tuple[PyTree, PyTree]:
        # Both are compiled as one function, which takes a fifth less time than two.
        before, after = self.sides
        return before(*arguments), after(*arguments)


def _compiled(lowered: Any) -> Any:
    # The options are those of the CPU.
    if jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(EXACT)
    except jax.errors.JaxRuntimeError:
        # A version of XLA may not have the option.
        known = EXACT.keys() - {"xla_cpu_use_fusion_emitters"}
        return lowered.compile({name: EXACT[name] for name in known})


def _rates(
    overrides: Callable[[int], ArrayLike] | None, steps: int
) -> NDArray[np.float64] | None:
    """The learning rate of each step as an array, if there are overrides."""
    if overrides is None:
        return None
    with precise():
        return np.asarray([overrides(step) for step in range(steps)], np.float64)


def _side(optimizer: Any) -> Side:
    """The steps of an optimizer, old or new. Raises TypeError if it is none."""
    if hasattr(optimizer, "init") and hasattr(optimizer, "update"):
        return _optax_side(optimizer)
    if hasattr(optimizer, "apply_gradient") and hasattr(optimizer, "create"):
        return _legacy_side(optimizer)
    raise TypeError(
        f"neither a gradient transformation nor an OptimizerDef: {optimizer!r}"
    )


def _legacy_side(definition: Any) -> Side:
    def trajectory(params: PyTree, gradients: PyTree, rates: Any) -> PyTree:
        def step(optimizer: Any, inputs: tuple[PyTree, Any]) -> tuple[Any, PyTree]:
            gradient, rate = inputs
            # optimizer.apply_gradient(gradient, learning_rate=rate)
            override = {} if rate is None else {"learning_rate": rate}
            optimizer = optimizer.apply_gradient(gradient, **override)
            return optimizer, optimizer.target

        _, trajectory = jax.lax.scan(
            step, definition.create(params), (gradients, rates)
        )
        return trajectory

    return trajectory


def _optax_side(transformation: Any) -> Side:
    def trajectory(params: PyTree, gradients: PyTree, rates: Any) -> PyTree:
        take = stepping(transformation, gives_rate=rates is not None)

        def step(
            carry: tuple[PyTree, Any], inputs: tuple[PyTree, Any]
        ) -> tuple[tuple[PyTree, Any], PyTree]:
            params, state = take(*carry, *inputs)
            return (params, state), params

        start = params, transformation.init(params)
        _, trajectory = jax.lax.scan(step, start, (gradients, rates))
        return trajectory

    return trajectory
