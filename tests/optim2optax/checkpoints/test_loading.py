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

PARAMS = {
    "kernel": np.arange(6, dtype=np.float32).reshape(3, 2),
    "bias": np.ones(2, np.float32),
}
GRADS = {
    "kernel": np.full((3, 2), 0.5, np.float32),
    "bias": np.full(2, -1.0, np.float32),
}


def fresh(tx: Any = None) -> Any:
    zeros = jax.tree_util.tree_map(np.zeros_like, PARAMS)
    return TrainState.create(apply_fn=None, params=zeros, tx=tx or optax.adam(0.1))  # type: ignore[no-untyped-call]


def stored(path: Path, tree: Any, name: str = "Adam") -> Path:
    """A checkpoint of the old Flax; `tree` is given an optimizer after three steps."""
    from optim2optax.legacy import legacy_flax

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
        tmp_path / "checkpoint_3",
        lambda optimizer: {
            "epoch": 7,
            "optimizer": optimizer,
            "ema": {"w": np.ones(2)},
        },
    )


def test_something_that_the_program_has_not(bigger: Path) -> None:
    with pytest.raises(
        CheckpointError, match="`ema/w` of the checkpoint has no place in the new state"
    ):
        load_legacy_checkpoint(bigger, {"epoch": 0, "optimizer": fresh()})


def test_something_that_the_checkpoint_has_not(bigger: Path) -> None:
    with pytest.raises(
        CheckpointError, match="`best` of the new state is not in the checkpoint"
    ):
        load_legacy_checkpoint(
            bigger,
            {"epoch": 0, "optimizer": fresh(), "ema": {"w": np.zeros(2)}, "best": 0.0},
        )


def test_no_optimizer_where_there_is_a_train_state(bigger: Path) -> None:
    with pytest.raises(CheckpointError, match="no legacy optimizer at `state`"):
        load_legacy_checkpoint(
            bigger, {"epoch": 0, "state": fresh(), "ema": {"w": np.zeros(2)}}
        )


def test_an_optimizer_where_there_is_none(bigger: Path) -> None:
    with pytest.raises(
        CheckpointError, match="`optimizer` of the checkpoint has no place"
    ):
        load_legacy_checkpoint(bigger, {"epoch": 0, "ema": {"w": np.zeros(2)}})


def test_a_state_of_no_parameter(tmp_path: Path) -> None:
    """The noise of `optax.add_noise` has a random key, which no legacy optimizer had."""
    noisy = fresh(optax.chain(optax.add_noise(0.01, 0.55, 0), optax.adam(0.1)))
    with pytest.raises(
        CheckpointError,
        match="`opt_state/0/count` of the new state is of the type AddNoiseState, which no legacy optimizer had",
    ):
        load_legacy_checkpoint(
            stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer), noisy
        )


def test_an_optimizer_alone(tmp_path: Path) -> None:
    state = load_legacy_checkpoint(
        stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer), fresh()
    )

    assert int(state.step) == int(state.opt_state[0].count) == 3
    assert not np.allclose(state.params["bias"], 1.0)
    np.testing.assert_allclose(
        state.opt_state[0].mu["bias"], -1.0 * (1 - 0.9**3), rtol=1e-6
    )


def test_a_bigger_state(bigger: Path) -> None:
    state = load_legacy_checkpoint(
        bigger, {"epoch": 0, "optimizer": fresh(), "ema": {"w": np.zeros(2)}}
    )

    assert (state["epoch"], int(state["optimizer"].step)) == (7, 3)
    assert state["ema"]["w"].tolist() == [1.0, 1.0]


def test_a_dataclass_that_has_become_a_train_state_itself(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: {
            "step": 3,
            "optimizer": optimizer,
            "batch_stats": {"mean": np.full(2, 5.0)},
        },
    )
    start: Any = OwnState.create(
        apply_fn=None,
        params=PARAMS,
        tx=optax.adam(0.1),
        batch_stats={"mean": np.zeros(2)},
    )  # type: ignore[no-untyped-call]
    state = load_legacy_checkpoint(path, start)

    assert int(state.step) == 3
    assert state.batch_stats["mean"].tolist() == [5.0, 5.0]


class OwnState(TrainState):  # type: ignore[no-untyped-call]
    """A dataclass around an optimizer that has become a train state itself."""

    batch_stats: Any = None


def test_a_dataclass_that_counted_otherwise_than_its_optimizer(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: {"step": 7, "optimizer": optimizer, "batch_stats": {}},
    )
    start: Any = OwnState.create(
        apply_fn=None, params=PARAMS, tx=optax.adam(0.1), batch_stats={}
    )  # type: ignore[no-untyped-call]
    with pytest.raises(
        CheckpointError,
        match="`step` of the checkpoint is 7, and its optimizer's step 3",
    ):
        load_legacy_checkpoint(path, start)


def with_step(optimizer: Any, step: Any) -> Any:
    return optimizer.replace(state=optimizer.state.replace(step=step))


STEPS = {
    "text": ("3", "but str"),
    "negative": (-3, "but negative"),
    "a truth value": (True, "but bool"),
    "a float": (np.float32(3.5), "but float32 of shape"),
    "nothing": (None, "but NoneType"),
    "a matrix": (np.ones((2, 2), np.int32), r"but int32 of shape \(2, 2\)"),
}


@pytest.mark.parametrize(("step", "why"), STEPS.values(), ids=STEPS)
def test_a_step_that_is_none(step: Any, why: str, tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: {"a": optimizer, "b": with_step(optimizer, step)},
    )
    with pytest.raises(
        CheckpointError,
        match=f"`b/state/step` of the checkpoint is no number of steps, {why}",
    ):
        load_legacy_checkpoint(path, {"a": fresh(), "b": fresh()})


def test_a_step_that_is_a_vector_where_nothing_has_copies(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: with_step(optimizer, np.array([3, 4])),
    )
    with pytest.raises(
        CheckpointError, match="`step` has 2 copies in the checkpoint, which differ"
    ):
        load_legacy_checkpoint(path, fresh())


BESIDE = {
    "a shape": (
        np.ones((2, 3)),
        np.ones((3, 2)),
        r"`more` has the shape \(2, 3\) in the checkpoint, and \(3, 2\)",
    ),
    "text": (
        "three",
        3,
        "`more` is of type str in the checkpoint, and a number in the new state",
    ),
    "a number": (
        3,
        "three",
        "`more` is a number in the checkpoint, and of type str in the new state",
    ),
}


@pytest.mark.parametrize(("old", "new", "why"), BESIDE.values(), ids=BESIDE)
def test_what_is_beside_an_optimizer_is_of_its_kind(
    old: Any, new: Any, why: str, tmp_path: Path
) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: {"optimizer": optimizer, "more": old},
    )
    with pytest.raises(CheckpointError, match=why):
        load_legacy_checkpoint(path, {"optimizer": fresh(), "more": new})


def test_moments_of_another_kind(tmp_path: Path) -> None:
    def of_integers(optimizer: Any) -> Any:
        moments = jax.tree_util.tree_map(
            lambda leaf: np.ones(leaf.shape, np.int8), optimizer.state.param_states
        )
        return optimizer.replace(state=optimizer.state.replace(param_states=moments))

    path = stored(tmp_path / "checkpoint_3", of_integers)
    with pytest.raises(
        CheckpointError,
        match=r"`opt_state/0/mu/bias` is of type int .*, and of type float",
    ):
        load_legacy_checkpoint(path, fresh())


def test_which_of_two_optimizers_has_another_shape(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3", lambda optimizer: (optimizer, {"other": optimizer})
    )
    other = fresh()
    params = {**other.params, "bias": np.ones(5)}
    other = other.replace(params=params, opt_state=other.tx.init(params))
    with pytest.raises(
        CheckpointError, match=r"at `1/other`: `params/bias` has the shape \(2,\)"
    ):
        load_legacy_checkpoint(path, (fresh(), {"other": other}))


def members(tree: Any, count: int, scale: float) -> Any:
    """Copies of a tree, each of which is the one before times a scale."""
    return jax.tree_util.tree_map(
        lambda leaf: np.stack(
            [leaf * np.asarray(scale**number, leaf.dtype) for number in range(count)]
        ),
        tree,
    )


def test_members_that_differ_are_no_copies(tmp_path: Path) -> None:
    def ensemble(optimizer: Any) -> Any:
        return members(optimizer, 3, 1.0).replace(
            target=members(optimizer.target, 3, 2.0)
        )

    path = stored(tmp_path / "checkpoint_3", ensemble)
    with pytest.raises(
        CheckpointError,
        match="has 3 copies in the checkpoint, which differ, and one in the new state",
    ):
        load_legacy_checkpoint(path, fresh())


def replicated_beside(keys: Any) -> Any:
    """A replicated optimizer with a replicated epoch and keys, and with a count of copies that is not replicated."""
    return lambda optimizer: {
        "optimizer": members(optimizer, 4, 1.0), "epoch": np.full(4, 7), "keys": keys, "devices": 4
    }  # fmt: skip


LIKE_BESIDE = {"epoch": 0, "keys": np.zeros(2, np.uint32), "devices": 0}


def test_what_is_beside_a_replicated_optimizer_is_one_copy_too(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3", replicated_beside(np.full((4, 2), 5, np.uint32))
    )
    state = load_legacy_checkpoint(path, {"optimizer": fresh(), **LIKE_BESIDE})

    assert (state["epoch"], state["devices"], np.asarray(state["keys"]).tolist()) == (
        7,
        4,
        [5, 5],
    )
    assert state["optimizer"].params["kernel"].shape == (3, 2)


def test_a_key_for_each_device_is_not_one(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        replicated_beside(np.arange(8, dtype=np.uint32).reshape(4, 2)),
    )
    with pytest.raises(
        CheckpointError, match="`keys` has 4 copies in the checkpoint, which differ"
    ):
        load_legacy_checkpoint(path, {"optimizer": fresh(), **LIKE_BESIDE})


def test_several_optimizers_in_a_tuple(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3", lambda optimizer: (optimizer, {"other": optimizer})
    )
    first, rest = load_legacy_checkpoint(path, (fresh(), {"other": fresh()}))

    assert int(first.step) == int(rest["other"].step) == 3


def test_the_first_of_several_copies(tmp_path: Path) -> None:
    def replicated(optimizer: Any) -> Any:
        return jax.tree_util.tree_map(lambda leaf: np.stack([leaf] * 4), optimizer)

    state = load_legacy_checkpoint(
        stored(tmp_path / "checkpoint_3", replicated), fresh()
    )

    assert int(state.step) == 3
    assert state.params["kernel"].shape == (3, 2)


def test_adafactor_that_was_stored_with_its_copies(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "checkpoint_3",
        lambda optimizer: members(optimizer, 4, 1.0),
        "Adafactor",
    )
    state = load_legacy_checkpoint(path, fresh(optax.adafactor(0.1)))

    assert int(state.step) == 3


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
    state = load_legacy_checkpoint(
        path, frozen.replace(opt_state=frozen.tx.init(frozen.params))
    )

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
        jax.tree_util.tree_map(
            np.testing.assert_array_equal, found, (whole.params, whole.opt_state)
        )


def test_parts_in_a_bigger_state(bigger: Path) -> None:
    state = load_legacy_checkpoint(
        bigger, {"epoch": 0, "optimizer": parts(), "ema": {"w": np.zeros(2)}}
    )

    assert (state["epoch"], int(state["optimizer"][1][0].count)) == (7, 3)


def test_parts_of_which_the_sign_cannot_be_told(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer, "LARS")
    with pytest.raises(
        CheckpointError,
        match="`opt_state/3/trace/bias` of the new state may follow the way up or down",
    ):
        load_legacy_checkpoint(path, parts(optax.lars(0.1)))

    for rate in (0.1, 0.0):  # with the transformation it can, whatever the rate is
        tx = optax.lars(rate)
        _, opt_state = load_legacy_checkpoint(path, (tx, *parts(tx)))
        np.testing.assert_array_equal(
            opt_state[3].trace["bias"],
            load_legacy_checkpoint(path, fresh(tx)).opt_state[3].trace["bias"],
        )
        assert np.all(opt_state[3].trace["bias"] * GRADS["bias"] < 0)

    assert load_legacy_checkpoint(path, parts(optax.sgd(0.1, momentum=0.9)))[1][
        0
    ].trace["bias"].shape == (2,)
