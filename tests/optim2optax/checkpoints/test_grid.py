"""Every optimizer, in every layout, style and precision, goes on as the old Flax on an old JAX would have."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from _pytest.mark import ParameterSet
from flax import serialization
from flax.training.train_state import TrainState

from codemods import Options, Source, migrate
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.precision import precise
from tests.optim2optax.checkpoints.old_world import grid
from tests.optim2optax.checkpoints.trajectories import assert_near
from tests.optim2optax.processes import environment, run_program

pytestmark = pytest.mark.network

GATES = {"float64": 1e-11, "float32": 1e-4}
"""Of each leaf's movement: in float32, both sides round."""

KEPT = "\n\ndef asked_{0}(params):\n    return create_{0}(params).optimizer_def.update_hyper_params()\n"
"""For the sake of this, a definition keeps its interface."""

STEPPED = """

def step_{0}(optimizer, grads):
    return optimizer.apply_gradient(grads)


def train_{0}(params, grads):
    optimizer = create_{0}(params)
    return step_{0}(optimizer, grads).target
"""
"""For the sake of this, a transformation is handed on."""

NAMES = [*grid.OPTIMIZERS]
NUMBERS = range(len(NAMES))
STYLES: dict[str, tuple[Options, str]] = {
    "train states": (Options(), ""),
    "chains": (Options(form="chain"), ""),
    "functional": (Options(style="functional"), "".join(map(STEPPED.format, NUMBERS))),
    "interfaces": (Options(), "".join(map(KEPT.format, NUMBERS))),
}


@pytest.fixture(scope="session")
def files(
    request: pytest.FixtureRequest,
    legacy_python: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """What the old Flax wrote of those parts of the grid that tests ask for."""
    folder = tmp_path_factory.mktemp("grid")
    asked = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module.__name__ == __name__
        if "files" in item.fixturenames
    ]
    parts = {f"{one['precision']}-{NAMES.index(one['name'])}" for one in asked}
    words = (legacy_python, "-W", "ignore", grid.__file__, folder, *parts)
    done = run_program(*words, env=environment(JAX_ENABLE_X64="1", XLA_FLAGS=""))
    assert done.returncode == 0, done.stderr
    return folder


@cache
def program(style: str) -> dict[str, Any]:
    """The names of the program after its migration."""
    options, more = STYLES[style]
    [result] = migrate([Source("train.py", (grid.PROGRAM + more).encode())], options)
    names: dict[str, Any] = {"__name__": "migrated"}
    exec(compile(result.after, "train.py", "exec"), names)
    return names


def counted(state: Any) -> Any:
    """What a dataclass with an optimizer has become: the same, or, where that is a train state, a train state itself."""
    if not isinstance(state, TrainState):
        return {"step": 0, "optimizer": state, "batch_stats": {}}
    own: Any = OwnState.create(
        apply_fn=None, params=state.params, tx=state.tx, batch_stats={}
    )  # type: ignore[no-untyped-call]
    return own


class OwnState(TrainState):  # type: ignore[no-untyped-call]
    batch_stats: Any = None


NEW: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "alone": (lambda state: state, lambda loaded: loaded),
    "in a dict": (lambda state: {"epoch": 0, "optimizer": state, "name": ""}, lambda loaded: loaded["optimizer"]),
    "in a tuple": (lambda state: (state, {"best": state}), lambda loaded: loaded[1]["best"]),
    "in a dataclass": (counted, lambda loaded: loaded["optimizer"] if isinstance(loaded, dict) else loaded),
    "replicated": (lambda state: {"optimizer": state, "epoch": 0}, lambda loaded: loaded["optimizer"]),
    "in pieces": (lambda state: state, lambda loaded: loaded),
}  # fmt: skip
"""A fresh state in each layout, and what of a loaded one goes on."""


def parts(state: Any) -> tuple[Any, Any, Any]:
    """The transformation, the parameters and the state of optax, of a train state or of a tuple."""
    if isinstance(state, TrainState):
        return state.tx, state.params, state.opt_state
    tx, params, opt_state, *_ = state
    return tx, params, opt_state


PAIRS = [
    *((style, "float64") for style in STYLES),
    *(("train states", precision) for precision in ("float32", "bfloat16", "float16")),
]
IN_16_BITS = ("adam", "adafactor, average", "momentum", "two groups")
"""What keeps numbers of each kind; with the others, 16 bits are thorough."""


def case(style: str, precision: str, name: str) -> ParameterSet:
    is_thorough = precision.endswith("16") and name not in IN_16_BITS
    marks = [pytest.mark.thorough] * is_thorough
    return pytest.param(style, precision, name, marks=marks)


CASES = [case(*pair, name) for pair in PAIRS for name in grid.OPTIMIZERS]


@pytest.mark.parametrize(("style", "precision", "name"), CASES)
def test_goes_on_from_every_layout(
    style: str, precision: str, name: str, files: Path
) -> None:
    """In another style, the layouts of one optimizer show what those of all would."""
    number = NAMES.index(name)
    start, later = grid.parameters(precision), grid.LATER[precision]
    with precise(later == "float64"):
        fresh = program(style)[f"create_{number}"](start)
        tx, *_ = parts(fresh)
        found = []
        layouts = [*NEW.values()]
        if style != "train states" and name != "adam":
            del layouts[1:]
        for index, (like, of) in enumerate(layouts):
            path = files / f"{precision}-{number}-{index}"
            loaded = of(load_legacy_checkpoint(path, like(fresh)))
            whole = loaded if isinstance(loaded, TrainState) else (tx, *loaded)
            found.append(parts(whole)[1:])
        for other in found[1:]:
            jax.tree_util.tree_map(np.testing.assert_array_equal, found[0], other)

        params, opt_state = found[0]
        stored = (files / f"{precision}-{number}-0").read_bytes()
        trees = (params, serialization.msgpack_restore(stored)["target"], start)
        leaves = map(jax.tree_util.tree_leaves, trees)
        for got, wanted, begun in zip(*leaves, strict=True):
            assert got.dtype == wanted.dtype == begun.dtype
            assert got.tobytes() == wanted.tobytes()
        params, opt_state = (grid.cast(tree, later) for tree in found[0])
        for step in range(grid.STEPS, 2 * grid.STEPS):
            grads = grid.gradients(later, step)
            updates, opt_state = tx.update(grads, opt_state, params)
            params = optax.apply_updates(params, updates)
        trained = (files / f"{precision}-{number}-params").read_bytes()
        expected = serialization.msgpack_restore(trained)
        assert_near(params, expected, grid.cast(start, later), GATES[later])
        both = jax.tree_util.tree_leaves((params, expected))
        assert {leaf.dtype.name for leaf in both} == {later}
