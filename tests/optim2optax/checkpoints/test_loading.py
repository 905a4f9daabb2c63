"""Whole states of programs, loaded from legacy checkpoints. First, what does not fit."""

from collections.abc import Callable
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
from optim2optax.legacy import legacy_flax

pytestmark = pytest.mark.usefixtures("legacy_wheel")

KERNEL = np.arange(6, dtype=np.float32).reshape(3, 2)
PARAMS = {"kernel": KERNEL, "bias": np.ones(2, np.float32)}
GRADS = {"kernel": np.full_like(KERNEL, 0.5), "bias": np.full(2, -1.0, np.float32)}


def fresh(tx: Any = None) -> Any:
    zeros = jax.tree_util.tree_map(np.zeros_like, PARAMS)
    return TrainState.create(apply_fn=None, params=zeros, tx=tx or optax.adam(0.1))  # type: ignore[no-untyped-call]


def stored(path: Path, tree: Any, name: str = "Adam") -> Path:
    """A checkpoint of the old Flax; `tree` is given an optimizer after three steps."""
    with legacy_flax() as old:
        optimizer = getattr(old.optim, name)(0.1).create(PARAMS)
        for _ in range(3):
            optimizer = optimizer.apply_gradient(GRADS)
        path.write_bytes(old.serialization.to_bytes(tree(optimizer)))
    return path


def alone(optimizer: Any) -> Any:
    return optimizer


def pair(optimizer: Any) -> Any:
    return optimizer, {"other": optimizer}


def bigger(optimizer: Any) -> Any:
    """An optimizer with other things beside it."""
    return {"epoch": 7, "optimizer": optimizer, "ema": {"w": np.ones(2)}}


def like_bigger() -> Any:
    return {"epoch": 0, "optimizer": fresh(), "ema": {"w": np.zeros(2)}}


def with_step(optimizer: Any, step: Any) -> Any:
    return optimizer.replace(state=optimizer.state.replace(step=step))


def one_with_step(step: Any) -> Callable[[Any], Any]:
    return lambda optimizer: {"a": optimizer, "b": with_step(optimizer, step)}


def like_two() -> Any:
    return {"a": fresh(), "b": fresh()}


def members(tree: Any, count: int, scale: float = 1.0) -> Any:
    """Copies of a tree, each of which is the one before times a scale."""

    def copied(leaf: Any) -> Any:
        scales = np.asarray([scale**number for number in range(count)])
        return np.stack([leaf * one for one in scales.astype(leaf.dtype)])

    return jax.tree_util.tree_map(copied, tree)


def of_integers(optimizer: Any) -> Any:
    moments = jax.tree_util.tree_map(
        lambda leaf: np.ones(leaf.shape, np.int8), optimizer.state.param_states
    )
    return optimizer.replace(state=optimizer.state.replace(param_states=moments))


def beside(old: Any) -> Callable[[Any], Any]:
    return lambda optimizer: {"optimizer": optimizer, "more": old}


def like_beside(new: Any) -> Callable[[], Any]:
    return lambda: {"optimizer": fresh(), "more": new}


def replicated_beside(keys: Any) -> Callable[[Any], Any]:
    """A replicated optimizer with a replicated epoch and keys, and with a count of copies that is not replicated."""
    return lambda optimizer: {
        "optimizer": members(optimizer, 4), "epoch": np.full(4, 7), "keys": keys, "devices": 4
    }  # fmt: skip


def like_replicated() -> Any:
    keys = np.zeros(2, np.uint32)
    return {"optimizer": fresh(), "epoch": 0, "keys": keys, "devices": 0}


def like_pair_with_another_shape() -> Any:
    other = fresh()
    params = {**other.params, "bias": np.ones(5)}
    other = other.replace(params=params, opt_state=other.tx.init(params))
    return fresh(), {"other": other}


class OwnState(TrainState):  # type: ignore[no-untyped-call]
    """A dataclass around an optimizer that has become a train state itself."""

    batch_stats: Any = None


def own_state(**stats: Any) -> Any:
    return OwnState.create(
        apply_fn=None, params=PARAMS, tx=optax.adam(0.1), batch_stats=stats
    )  # type: ignore[no-untyped-call]


NO_STEP = "`b/state/step` of the checkpoint is no number of steps, but"
REFUSED = {
    "something that the program has not": (
        bigger, lambda: {"epoch": 0, "optimizer": fresh()},
        "`ema/w` of the checkpoint has no place in the new state",
    ),
    "something that the checkpoint has not": (
        bigger, lambda: {**like_bigger(), "best": 0.0}, "`best` of the new state is not in the checkpoint",
    ),
    "no optimizer where there is a train state": (
        bigger, lambda: {"epoch": 0, "state": fresh(), "ema": {"w": np.zeros(2)}}, "no legacy optimizer at `state`",
    ),
    "an optimizer where there is none": (
        bigger, lambda: {"epoch": 0, "ema": {"w": np.zeros(2)}}, "`optimizer` of the checkpoint has no place",
    ),
    "a state of no parameter: a random key, which no legacy optimizer had": (
        alone, lambda: fresh(optax.chain(optax.add_noise(0.01, 0.55, 0), optax.adam(0.1))),
        "`opt_state/0/count` of the new state is of the type AddNoiseState, which no legacy optimizer had",
    ),
    "a dataclass that counted otherwise than its optimizer": (
        lambda optimizer: {"step": 7, "optimizer": optimizer, "batch_stats": {}}, own_state,
        "`step` of the checkpoint is 7, and its optimizer's step 3",
    ),
    "text for a step": (one_with_step("3"), like_two, f"{NO_STEP} str"),
    "a negative step": (one_with_step(-3), like_two, f"{NO_STEP} negative"),
    "a truth value for a step": (one_with_step(True), like_two, f"{NO_STEP} bool"),
    "a float for a step": (one_with_step(np.float32(3.5)), like_two, f"{NO_STEP} float32 of shape"),
    "nothing for a step": (one_with_step(None), like_two, f"{NO_STEP} NoneType"),
    "a matrix for a step": (one_with_step(np.ones((2, 2), np.int32)), like_two, rf"{NO_STEP} int32 of shape \(2, 2\)"),
    "a vector for a step where nothing has copies": (
        lambda optimizer: with_step(optimizer, np.array([3, 4])), fresh,
        "`step` has 2 copies in the checkpoint, which differ",
    ),
    "another shape beside it": (
        beside(np.ones((2, 3))), like_beside(np.ones((3, 2))),
        r"`more` has the shape \(2, 3\) in the checkpoint, and \(3, 2\)",
    ),
    "text beside it": (
        beside("three"), like_beside(3), "`more` is of type str in the checkpoint, and a number in the new state",
    ),
    "a number beside it": (
        beside(3), like_beside("three"), "`more` is a number in the checkpoint, and of type str in the new state",
    ),
    "moments of another kind": (of_integers, fresh, r"`opt_state/0/mu/bias` is of type int .*, and of type float"),
    "another optimizer": (
        alone, lambda: fresh(optax.sgd(0.1, 0.9)),
        "not in the checkpoint, which would have it at `state/param_states/.*/momentum`",
    ),
    "one that keeps less": (
        alone, lambda: fresh(optax.sgd(0.1)), "`state/param_states/bias/grad_ema` has no place in the new state",
    ),
    "another shape of one of two": (
        pair, like_pair_with_another_shape, r"at `1/other`: `params/bias` has the shape \(2,\)",
    ),
    "members that differ": (
        lambda optimizer: members(optimizer, 3).replace(target=members(optimizer.target, 3, 2.0)), fresh,
        "has 3 copies in the checkpoint, which differ, and one in the new state",
    ),
    "a key for each device": (
        replicated_beside(np.arange(8, dtype=np.uint32).reshape(4, 2)), like_replicated,
        "`keys` has 4 copies in the checkpoint, which differ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "like", "why"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit(
    tree: Callable[[Any], Any], like: Callable[[], Any], why: str, tmp_path: Path
) -> None:
    path = stored(tmp_path / "checkpoint_3", tree)
    with pytest.raises(CheckpointError, match=why):
        load_legacy_checkpoint(path, like())


def loaded(
    tree: Callable[[Any], Any], like: Any, folder: Path, name: str = "Adam"
) -> Any:
    return load_legacy_checkpoint(stored(folder / "checkpoint_3", tree, name), like)


def test_an_optimizer_alone(tmp_path: Path) -> None:
    state = loaded(alone, fresh(), tmp_path)

    assert int(state.step) == int(state.opt_state[0].count) == 3
    assert not np.allclose(state.params["bias"], 1.0)
    mean = state.opt_state[0].mu["bias"]
    np.testing.assert_allclose(mean, -1.0 * (1 - 0.9**3), rtol=1e-6)


def test_a_bigger_state(tmp_path: Path) -> None:
    state = loaded(bigger, like_bigger(), tmp_path)

    assert (state["epoch"], int(state["optimizer"].step)) == (7, 3)
    assert state["ema"]["w"].tolist() == [1.0, 1.0]


def test_a_dataclass_that_has_become_a_train_state_itself(tmp_path: Path) -> None:
    def around(optimizer: Any) -> Any:
        stats = {"mean": np.full(2, 5.0)}
        return {"step": 3, "optimizer": optimizer, "batch_stats": stats}

    state = loaded(around, own_state(mean=np.zeros(2)), tmp_path)

    assert int(state.step) == 3
    assert state.batch_stats["mean"].tolist() == [5.0, 5.0]


def test_what_is_beside_a_replicated_optimizer_is_one_copy_too(tmp_path: Path) -> None:
    tree = replicated_beside(np.full((4, 2), 5, np.uint32))
    state = loaded(tree, like_replicated(), tmp_path)

    assert (state["epoch"], state["devices"]) == (7, 4)
    assert np.asarray(state["keys"]).tolist() == [5, 5]
    assert state["optimizer"].params["kernel"].shape == (3, 2)


def test_several_optimizers_in_a_tuple(tmp_path: Path) -> None:
    first, rest = loaded(pair, (fresh(), {"other": fresh()}), tmp_path)

    assert int(first.step) == int(rest["other"].step) == 3


@pytest.mark.parametrize(
    ("name", "tx"), [("Adam", None), ("Adafactor", optax.adafactor(0.1))]
)
def test_the_first_of_several_copies(name: str, tx: Any, tmp_path: Path) -> None:
    state = loaded(lambda one: members(one, 4), fresh(tx), tmp_path, name)

    assert int(state.step) == 3
    assert state.params["kernel"].shape == (3, 2)


def test_all_copies_where_the_program_has_as_many(tmp_path: Path) -> None:
    tree = jax.tree_util.tree_map(np.asarray, fresh())
    state = loaded(lambda one: members(one, 4), members(tree, 4), tmp_path)

    assert np.asarray(state.step).tolist() == [3] * 4
    assert state.params["kernel"].shape == (4, 3, 2)


def test_frozen_parameters(tmp_path: Path) -> None:
    frozen: Any = fresh()
    frozen = frozen.replace(params=flax.core.freeze(frozen.params))
    like = frozen.replace(opt_state=frozen.tx.init(frozen.params))

    assert isinstance(loaded(alone, like, tmp_path).params, flax.core.FrozenDict)


def parts(tx: Any = None) -> Any:
    state = fresh(tx)
    return state.params, state.opt_state


def test_parameters_and_a_state_of_optax(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", alone)
    params, opt_state = parts()
    whole = load_legacy_checkpoint(path, fresh())
    pair = load_legacy_checkpoint(path, (params, opt_state))
    counted = load_legacy_checkpoint(path, (params, opt_state, 0))
    like = {"params": params, "opt_state": opt_state}
    named = load_legacy_checkpoint(path, like)

    assert int(counted[2]) == 3
    wanted = (whole.params, whole.opt_state)
    for found in (pair, counted[:2], (named["params"], named["opt_state"])):
        jax.tree_util.tree_map(np.testing.assert_array_equal, found, wanted)


def test_parts_in_a_bigger_state(tmp_path: Path) -> None:
    state = loaded(bigger, {**like_bigger(), "optimizer": parts()}, tmp_path)

    assert (state["epoch"], int(state["optimizer"][1][0].count)) == (7, 3)


def test_parts_of_which_the_sign_cannot_be_told(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint_3", alone, "LARS")
    why = "`opt_state/3/trace/bias` of the new state may follow the way up or down"
    with pytest.raises(CheckpointError, match=why):
        load_legacy_checkpoint(path, parts(optax.lars(0.1)))

    for rate in (0.1, 0.0):  # with the transformation it can, whatever the rate is
        tx = optax.lars(rate)
        _, opt_state = load_legacy_checkpoint(path, (tx, *parts(tx)))
        whole = load_legacy_checkpoint(path, fresh(tx)).opt_state
        bias = opt_state[3].trace["bias"]
        np.testing.assert_array_equal(bias, whole[3].trace["bias"])
        assert np.all(bias * GRADS["bias"] < 0)

    like = parts(optax.sgd(0.1, momentum=0.9))
    _, [trace, _] = load_legacy_checkpoint(path, like)
    assert trace.trace["bias"].shape == (2,)
