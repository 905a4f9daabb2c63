"""Whole states of programs, loaded from legacy checkpoints. First, what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flax
import jax
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.loading import load_legacy_checkpoint

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PARAMS = {"kernel": np.arange(6, dtype=np.float32).reshape(3, 2), "bias": np.ones(2, np.float32)}
GRADS = {"kernel": np.full((3, 2), 0.5, np.float32), "bias": np.full(2, -1.0, np.float32)}


def fresh(tx: Any = None) -> Any:
    zeros = jax.tree_util.tree_map(np.zeros_like, PARAMS)
    return TrainState.create(apply_fn=None, params=zeros, tx=tx or optax.adam(0.1))  # type: ignore[no-untyped-call]


def stored(path: Path, tree: Any, name: str = "Adam") -> Path:
    """A checkpoint of the old Flax; `tree` is given an optimizer after three steps."""
    from optim2optax.parity.legacy import legacy_flax

    with legacy_flax() as old:
        optimizer = getattr(old.optim, name)(0.1).create(PARAMS)
        for _ in range(3):
            optimizer = optimizer.apply_gradient(GRADS)
        path.write_bytes(old.serialization.to_bytes(tree(optimizer)))
    return path


@pytest.fixture
def bigger(tmp_path: Path) -> Path:
    """An optimizer with other things beside it."""
    return stored(
        tmp_path / "checkpoint_3", lambda optimizer: {"epoch": 7, "optimizer": optimizer, "ema": {"w": np.ones(2)}}
    )


def test_something_that_the_program_has_not(bigger: Path) -> None:
    with pytest.raises(CheckpointError, match="`ema/w` of the checkpoint has no place in the new state"):
        load_legacy_checkpoint(bigger, {"epoch": 0, "optimizer": fresh()})


def test_something_that_the_checkpoint_has_not(bigger: Path) -> None:
    with pytest.raises(CheckpointError, match="`best` of the new state is not in the checkpoint"):
        load_legacy_checkpoint(bigger, {"epoch": 0, "optimizer": fresh(), "ema": {"w": np.zeros(2)}, "best": 0.0})


def test_no_optimizer_where_there_is_a_train_state(bigger: Path) -> None:
    with pytest.raises(CheckpointError, match="no legacy optimizer at `state`"):
        load_legacy_checkpoint(bigger, {"epoch": 0, "state": fresh(), "ema": {"w": np.zeros(2)}})


def test_an_optimizer_where_there_is_none(bigger: Path) -> None:
    with pytest.raises(CheckpointError, match="`optimizer` of the checkpoint has no place"):
        load_legacy_checkpoint(bigger, {"epoch": 0, "ema": {"w": np.zeros(2)}})


def test_a_state_of_no_parameter(tmp_path: Path) -> None:
    """The noise of `optax.add_noise` has a random key, which no legacy optimizer had."""
    noisy = fresh(optax.chain(optax.add_noise(0.01, 0.55, 0), optax.adam(0.1)))
    with pytest.raises(
        CheckpointError,
        match="`opt_state/0/rng_key` of the new state is none of a parameter, and nothing tells what it is",
    ):
        load_legacy_checkpoint(stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer), noisy)


def test_an_optimizer_alone(tmp_path: Path) -> None:
    state = load_legacy_checkpoint(stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer), fresh())

    assert int(state.step) == int(state.opt_state[0].count) == 3
    assert not np.allclose(state.params["bias"], 1.0)
    np.testing.assert_allclose(state.opt_state[0].mu["bias"], -1.0 * (1 - 0.9**3), rtol=1e-6)


def test_a_bigger_state(bigger: Path) -> None:
    state = load_legacy_checkpoint(bigger, {"epoch": 0, "optimizer": fresh(), "ema": {"w": np.zeros(2)}})

    assert (state["epoch"], int(state["optimizer"].step)) == (7, 3)
    assert state["ema"]["w"].tolist() == [1.0, 1.0]


def test_a_dataclass_that_has_become_a_train_state_itself(tmp_path: Path) -> None:
    class OwnState(TrainState):  # type: ignore[no-untyped-call]
        batch_stats: Any = None

    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: {"step": 3, "optimizer": optimizer, "batch_stats": {"mean": np.full(2, 5.0)}},
    )
    start: Any = OwnState.create(apply_fn=None, params=PARAMS, tx=optax.adam(0.1), batch_stats={"mean": np.zeros(2)})  # type: ignore[no-untyped-call]
    state = load_legacy_checkpoint(path, start)

    assert int(state.step) == 3
    assert state.batch_stats["mean"].tolist() == [5.0, 5.0]


def test_several_optimizers_in_a_tuple(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: (optimizer, {"other": optimizer}))
    first, rest = load_legacy_checkpoint(path, (fresh(), {"other": fresh()}))

    assert int(first.step) == int(rest["other"].step) == 3


def test_the_first_of_several_copies(tmp_path: Path) -> None:
    def replicated(optimizer: Any) -> Any:
        return jax.tree_util.tree_map(lambda leaf: np.stack([leaf] * 4), optimizer)

    state = load_legacy_checkpoint(stored(tmp_path / "checkpoint_3", replicated), fresh())

    assert int(state.step) == 3
    assert state.params["kernel"].shape == (3, 2)


def test_all_copies_where_the_program_has_as_many(tmp_path: Path) -> None:
    def replicated(state: Any) -> Any:
        return jax.tree_util.tree_map(lambda leaf: np.stack([leaf] * 4), state)

    path = stored(tmp_path / "checkpoint_3", replicated)
    state = load_legacy_checkpoint(path, replicated(fresh()))

    assert np.asarray(state.step).tolist() == [3] * 4
    assert state.params["kernel"].shape == (4, 3, 2)


def test_frozen_parameters(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer)
    frozen: Any = fresh()
    frozen = frozen.replace(params=flax.core.freeze(frozen.params))
    state = load_legacy_checkpoint(path, frozen.replace(opt_state=frozen.tx.init(frozen.params)))

    assert isinstance(state.params, flax.core.FrozenDict)


def parts(tx: Any = None) -> Any:
    state = fresh(tx)
    return state.params, state.opt_state


def test_parameters_and_a_state_of_optax(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer)
    params, opt_state = parts()
    whole = load_legacy_checkpoint(path, fresh())
    pair, counted, named = (
        load_legacy_checkpoint(path, (params, opt_state)),
        load_legacy_checkpoint(path, (params, opt_state, 0)),
        load_legacy_checkpoint(path, {"params": params, "opt_state": opt_state}),
    )

    assert int(counted[2]) == 3
    for found in (pair, counted[:2], (named["params"], named["opt_state"])):
        jax.tree_util.tree_map(np.testing.assert_array_equal, found, (whole.params, whole.opt_state))


def test_parts_in_a_bigger_state(bigger: Path) -> None:
    state = load_legacy_checkpoint(bigger, {"epoch": 0, "optimizer": parts(), "ema": {"w": np.zeros(2)}})

    assert (state["epoch"], int(state["optimizer"][1][0].count)) == (7, 3)


def test_parts_of_which_the_sign_cannot_be_told(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer, "LARS")
    with pytest.raises(
        CheckpointError, match="`opt_state/3/trace/bias` of the new state may follow the way up or down"
    ):
        load_legacy_checkpoint(path, parts(optax.lars(0.1)))

    assert load_legacy_checkpoint(path, parts(optax.sgd(0.1, momentum=0.9)))[1][0].trace["bias"].shape == (2,)
