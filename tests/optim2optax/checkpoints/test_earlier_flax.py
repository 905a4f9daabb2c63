"""Checkpoints that Flax 0.2 and 0.3 wrote, in `earlier/`. First, what cannot be told of them."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import contents
from optim2optax.checkpoints.flax_msgpack import read
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.optim2optax.checkpoints.test_carrying import new_state
from tests.optim2optax.checkpoints.trajectories import assert_near

FILES = Path(__file__).parent / "earlier"
STEPS = 10

ADAM = "optim.Adam(0.01)"
OF_KIND = "(optim.ModelParamTraversal(lambda path, _: '{}' in path), optim.{})"


def groups(*pairs: tuple[str, str]) -> str:
    return f"optim.MultiOptimizer({', '.join(OF_KIND.format(*pair) for pair in pairs)})"


GROUPS = groups(("bias", "Momentum(0.1)"), ("kernel", "Adam(0.01)"))
REST = groups(("out", "Adam(0.01)"), ("dense", "GradientDescent(0.1)"))


def parameters() -> Any:
    random = np.random.default_rng(0)
    return {
        "dense": {"bias": random.normal(size=2), "kernel": random.normal(size=(3, 2))},
        "out": {"bias": random.normal(size=2), "kernel": random.normal(size=(2, 2))},
    }


def gradients(step: int) -> Any:
    random = np.random.default_rng(100 + step)
    return jax.tree_util.tree_map(
        lambda leaf: random.normal(size=leaf.shape), parameters()
    )


def test_groups_that_cannot_be_told_apart() -> None:
    with precise():
        kernels = (("out/kernel", "Adam(0.01)"), ("dense/kernel", "Adam(0.1)"))
        alike = new_state(groups(("bias", "Momentum(0.1)"), *kernels), parameters())
        why = r"`state/1` is a group of 2 parameters, .* and none of the new state's"
        with pytest.raises(CheckpointError, match=why):
            load_legacy_checkpoint(FILES / "groups_0.3.2", alike)


PAIRS = {
    "Adafactor and RMSProp": (("kernel", "Adafactor(0.01, min_dim_size_to_factor=2)"), ("bias", "RMSProp(0.1)")),
    "averages": (("kernel", "Adafactor(0.01, beta1=0.9)"), ("bias", "RMSProp(0.1, centered=True)")),
}  # fmt: skip


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_a_list_of_states_says_the_same_as_one(
    pairs: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    """What 0.5.3 writes, in the layout of 0.3.2: a list of states, each with a list of what it keeps for its parameters."""
    with legacy_flax() as flax, precise():
        optimizer = eval(groups(*pairs), {"optim": flax.optim}).create(parameters())
        for step in range(3):
            optimizer = optimizer.apply_gradient(gradients(step))
        tree = serialization.to_state_dict(optimizer)
    whole, states = tmp_path / "whole", tree["state"]["param_states"]
    whole.write_bytes(serialization.msgpack_serialize(tree))
    step, tree["state"] = tree["state"]["step"], {}
    for number, (word, _) in enumerate(pairs):
        kept = [states[name][word] for name in ("dense", "out") if word in states[name]]
        listed = {str(index): state for index, state in enumerate(kept)}
        tree["state"][str(number)] = {"step": step, "param_states": listed}
    (tmp_path / "list").write_bytes(serialization.msgpack_serialize(tree))
    with precise():
        fresh = new_state(groups(*pairs), parameters())
        one = load_legacy_checkpoint(whole, fresh)
        several = load_legacy_checkpoint(tmp_path / "list", fresh)

    assert int(one.step) == 3
    jax.tree_util.tree_map(np.testing.assert_array_equal, one, several)


def test_groups_with_different_steps(tmp_path: Path) -> None:
    tree = serialization.msgpack_restore((FILES / "groups_0.3.2").read_bytes())
    tree["state"]["1"]["step"] = np.int32(7)
    (tmp_path / "old").write_bytes(serialization.msgpack_serialize(tree))
    why = "`state` has groups with different steps"
    with pytest.raises(CheckpointError, match=why):
        load_legacy_checkpoint(tmp_path / "old", new_state(GROUPS, parameters()))


@pytest.mark.parametrize(
    "name", ["groups_0.3.2", "model_groups_0.2.2", "model_groups_0.3.0", "rest_0.3.2"]
)
def test_what_is_in_a_list_of_states(name: str) -> None:
    [found] = contents(read(FILES / name)).found

    assert found.kind == "legacy optimizer"
    assert found.names == ("MultiOptimizer",)
    assert found.step == STEPS


def test_a_type_of_jax_s_own_in_a_file_of_0_2(tmp_path: Path) -> None:
    """It was stored as two bytes of something, and was the only one."""
    content = b"\x93\x91\x01\xa3<V2\xc4\x02\x80\x3f"
    (tmp_path / "old").write_bytes(b"\xc7" + bytes([len(content)]) + b"\x01" + content)

    assert read(tmp_path / "old").tolist() == [1.0]


@pytest.mark.parametrize("version", ["0.2.2", "0.3.0", "0.3.2"])
def test_a_named_tuple_beside_the_optimizer(version: str) -> None:
    tree = read(FILES / f"adam_{version}")

    assert tree["stats"] == {"mean": 1.0, "var": 2.0}


RUNS = {
    ADAM: ("adam_0.2.2", "model_0.2.2", "adam_0.3.0", "model_0.3.0", "adam_0.3.2"),
    GROUPS: ("model_groups_0.2.2", "model_groups_0.3.0", "groups_0.3.2"),
    REST: ("rest_0.3.2",),
}
PROGRAMS = {name: definition for definition, names in RUNS.items() for name in names}


@pytest.mark.parametrize(("name", "definition"), PROGRAMS.items(), ids=PROGRAMS)
def test_goes_on_as_if_nothing_had_happened(name: str, definition: str) -> None:
    with precise():
        state = new_state(definition, parameters())
        if name.startswith("adam"):
            like = {"optimizer": state, "stats": {"mean": 0.0, "var": 0.0}}
            state = load_legacy_checkpoint(FILES / name, like)["optimizer"]
        else:
            state = load_legacy_checkpoint(FILES / name, state)
        for step in range(STEPS, 2 * STEPS):
            state = state.apply_gradients(grads=gradients(step))
        later = (FILES / f"{name}_{2 * STEPS}").read_bytes()
        expected = serialization.msgpack_restore(later)

        assert_near(state.params, expected, parameters())
