"""Checkpoints that Flax 0.3 wrote, in `earlier/`. First, what cannot be told of them."""

from __future__ import annotations

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
from optim2optax.parity.precision import precise
from tests.optim2optax.checkpoints.test_carrying import GATE, new_state

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
    shapes = {"dense": {"kernel": (3, 2), "bias": (2,)}, "out": {"kernel": (2, 2), "bias": (2,)}}
    return jax.tree_util.tree_map(
        lambda shape: random.normal(size=shape), shapes, is_leaf=lambda node: isinstance(node, tuple)
    )


def gradients(step: int) -> Any:
    random = np.random.default_rng(100 + step)
    return jax.tree_util.tree_map(lambda leaf: random.normal(size=leaf.shape), parameters())


def test_groups_that_cannot_be_told_apart() -> None:
    with precise():
        alike = groups(("bias", "Momentum(0.1)"), ("out/kernel", "Adam(0.01)"), ("dense/kernel", "Adam(0.1)"))
        with pytest.raises(
            CheckpointError, match=r"`state/1` is a group of 2 parameters, .* and none of the new state's"
        ):
            load_legacy_checkpoint(FILES / "groups_0.3.2", new_state(alike, parameters()))


@pytest.mark.parametrize("name", ["groups_0.3.2", "model_groups_0.3.0", "rest_0.3.2"])
def test_what_is_in_a_list_of_states(name: str) -> None:
    [found] = contents(read(FILES / name)).found

    assert (found.kind, found.names, found.step) == ("legacy optimizer", ("MultiOptimizer",), STEPS)


@pytest.mark.parametrize("version", ["0.3.0", "0.3.2"])
def test_a_named_tuple_beside_the_optimizer(version: str) -> None:
    tree = read(FILES / f"adam_{version}")

    assert tree["stats"] == {"mean": 1.0, "var": 2.0}


RUNS = {
    "adam_0.3.0": ADAM,
    "adam_0.3.2": ADAM,
    "model_0.3.0": ADAM,
    "model_groups_0.3.0": GROUPS,
    "groups_0.3.2": GROUPS,
    "rest_0.3.2": REST,
}


@pytest.mark.parametrize(("name", "definition"), RUNS.items(), ids=RUNS)
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
        expected = serialization.msgpack_restore((FILES / f"{name}_{2 * STEPS}").read_bytes())

        trees = (state.params, expected, parameters())
        for got, wanted, start in zip(*map(jax.tree_util.tree_leaves, trees), strict=True):
            assert np.max(np.abs(got - wanted)) <= GATE * np.max(np.abs(wanted - start))
