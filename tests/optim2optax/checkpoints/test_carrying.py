"""Half-trained legacy optimizers go on as train states. First, what has no place, or no leaf."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from codemods import Options, Source, migrate
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.carrying import Carrying, parts_of
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.optim2optax.checkpoints.trajectories import assert_near
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel")

STEPS = 50

OPTIMIZERS = {
    "Adam": "optim.Adam(0.01, beta1=0.8, weight_decay=0.1)",
    "AdaBelief": "optim.AdaBelief(0.01)",
    "LAMB": "optim.LAMB(0.01, weight_decay=0.1)",
    "LARS": "optim.LARS(0.1, weight_decay=0.1)",
    "LARS without decay": "optim.LARS(0.1)",
    "Momentum": "optim.Momentum(0.01, nesterov=True, weight_decay=0.1)",
    "GradientDescent": "optim.GradientDescent(0.01)",
    "Adagrad": "optim.Adagrad(0.01)",
    "Adadelta": "optim.Adadelta(0.5)",
    "RMSProp": "optim.RMSProp(0.001)",
    "centered RMSProp": "optim.RMSProp(0.001, centered=True)",
    "Adafactor": "optim.Adafactor(0.01, min_dim_size_to_factor=2)",
    "Adafactor with an average": "optim.Adafactor(0.01, beta1=0.9, dtype_momentum=jnp.float64)",
    "WeightNorm": "optim.WeightNorm(optim.Momentum(0.01), wn_decay=0.1)",
    "MultiOptimizer": (
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'kernel' in path), optim.Adam(0.01)),"
        " (optim.ModelParamTraversal(lambda path, _: 'bias' in path), optim.Momentum(0.01)))"
    ),
}
PROGRAM = "import jax.numpy as jnp\nfrom flax import optim\n\ndef create(params):\n    return {definition}.create(params)\n"


KEPT = "\n\ndef asked(params):\n    return create(params).optimizer_def.update_hyper_params()\n"
"""For the sake of this, the definition keeps its interface."""


def carried(old: Any, state: Any) -> dict[str, Any]:
    """The state dict of a train state that goes on from a legacy optimizer."""
    return Carrying(old, parts_of(state), state.tx).carried()


def migrated(program: str) -> dict[str, Any]:
    """The names of a program after its migration."""
    [result] = migrate([Source("train.py", program.encode())], Options())
    names: dict[str, Any] = {"__name__": "migrated"}
    exec(compile(result.after, "train.py", "exec"), names)
    return names


def new_state(definition: str, params: Any, more: str = "") -> Any:
    """A train state as the migrated program creates it."""
    program = PROGRAM.replace("{definition}", definition) + more
    state: Any = migrated(program)["create"](params)
    return state


def parameters() -> Any:
    random = np.random.default_rng(0)
    return {
        "dense": {"kernel": random.normal(size=(6, 4)), "bias": random.normal(size=4)},
        "out": {"kernel": np.ones((4, 3))},
        # What optimizers call their fields, and what sorts and splits otherwise, is a name like others.
        "trace": {
            "count": random.normal(size=(3, 2)),
            "a/\u03b2": random.normal(size=2),
        },
        "10": {"mu": random.normal(size=2), "v": np.ones(1), "m": np.ones(1)},
    }


def gradients(step: int) -> Any:
    random = np.random.default_rng(100 + step)
    return jax.tree_util.tree_map(
        lambda leaf: random.normal(size=leaf.shape) * 10.0 ** random.integers(-3, 2),
        parameters(),
    )


def old_run(definition: str, path: Path) -> Any:
    """The parameters after 100 old steps, of which the first 50 are in a checkpoint."""
    # in this order, lest the old Flax keep float64 as its float32
    with legacy_flax() as flax, precise():
        made = eval(definition, {"optim": flax.optim, "jnp": jnp})
        optimizer = made.create(parameters())
        for number in range(2 * STEPS):
            if number == STEPS:
                path.write_bytes(flax.serialization.to_bytes(optimizer))
            step = jax.jit(type(optimizer).apply_gradient)
            optimizer = step(optimizer, gradients(number))
        return optimizer.target


# the grid of checkpoints has all of them, written by the old Flax itself
@pytest.mark.parametrize(
    "definition",
    thinned(OPTIMIZERS, "Adam", "centered RMSProp", "WeightNorm", "MultiOptimizer"),
)
def test_goes_on_as_if_nothing_had_happened(definition: str, tmp_path: Path) -> None:
    """As a transformation of optax, and as one that keeps its interface."""
    expected = old_run(definition, tmp_path / "checkpoint_50")
    for more in ("", KEPT):
        assert_goes_on(definition, more, tmp_path / "checkpoint_50", expected)


def assert_goes_on(definition: str, more: str, path: Path, expected: Any) -> None:
    with precise():
        state = new_state(definition, parameters(), more)
        assert hasattr(state.tx, "update_hyper_params") == bool(more)
        state = load_legacy_checkpoint(path, state)
        assert int(state.step) == STEPS
        step = jax.jit(lambda state, grads: state.apply_gradients(grads=grads))
        for number in range(STEPS, 2 * STEPS):
            state = step(state, gradients(number))

        assert_near(state.params, expected, parameters())


STEP = "\n\ndef step(optimizer, grads, rate):\n    return optimizer.apply_gradient(grads, learning_rate={rate})\n"
SCHEDULES = {
    "of the step and a number": "jnp.where(optimizer.state.step < 60, 0.01, 0.002) * rate",
    "of the step, and zero at first": "jnp.where(optimizer.state.step < 40, 0.0, 0.002)",
}


RATES = {
    f"{name}: {schedule}": (name, rate)
    for name in ("Adam", "LARS", "LARS without decay")
    for schedule, rate in SCHEDULES.items()
}
OTHERS = ("Adam: of the step, and zero at first", "LARS: of the step and a number")


@pytest.mark.parametrize(("name", "schedule"), thinned(RATES, *RATES.keys() - OTHERS))
def test_a_rate_that_each_step_sets(name: str, schedule: str, tmp_path: Path) -> None:
    made = PROGRAM.replace("{definition}", OPTIMIZERS[name])
    program = made + STEP.replace("{rate}", schedule)
    path = tmp_path / "checkpoint_50"
    with legacy_flax() as flax, precise():
        names: dict[str, Any] = {"optim": flax.optim}
        exec(program.replace("from flax import optim", ""), names)
        optimizer = names["create"](parameters())
        for number in range(2 * STEPS):
            if number == STEPS:
                path.write_bytes(flax.serialization.to_bytes(optimizer))
            given = (gradients(number), 0.5 + number / 100)
            optimizer = jax.jit(names["step"])(optimizer, *given)
    with precise():
        new = migrated(program)
        state = load_legacy_checkpoint(path, new["create"](parameters()))
        for number in range(STEPS, 2 * STEPS):
            state = jax.jit(new["step"])(state, gradients(number), 0.5 + number / 100)

        assert_near(state.params, optimizer.target, parameters())


def test_a_state_of_one_number_is_no_placeholder() -> None:
    """Adafactor alone keeps one number for an average that it does not keep."""
    old = {
        "target": {"w": np.ones(1)},
        "state": {"step": 3, "param_states": {"w": {"v": np.ones(1, np.float32)}}},
    }
    why = "`state/param_states/w/v` has no place in the new state"
    with pytest.raises(CheckpointError, match=why):
        carried(old, new_state("optim.GradientDescent(0.1)", {"w": np.ones(1)}))
