"""Checkpoints that Flax 0.2 and 0.3 wrote, in `earlier/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import serialization

from optim2optax.checkpoints.flax_msgpack import read
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.precision import precise
from tests.optim2optax.checkpoints.test_carrying import new_state
from tests.optim2optax.checkpoints.trajectories import assert_near

FILES = Path(__file__).parent / "earlier"
STEPS = 10


def parameters() -> Any:
    random = np.random.default_rng(0)
    shapes = {
        "dense": {"kernel": (3, 2), "bias": (2,)},
        "out": {"kernel": (2, 2), "bias": (2,)},
    }
    return jax.tree_util.tree_map(
        lambda shape: random.normal(size=shape),
        shapes,
        is_leaf=lambda node: isinstance(node, tuple),
    )


def gradients(step: int) -> Any:
    random = np.random.default_rng(100 + step)
    return jax.tree_util.tree_map(
        lambda leaf: random.normal(size=leaf.shape), parameters()
    )


def test_a_type_of_jax_s_own_in_a_file_of_0_2(tmp_path: Path) -> None:
    """It was stored as two bytes of something, and was the only one."""
    content = b"\x93\x91\x01\xa3<V2\xc4\x02\x80\x3f"
    (tmp_path / "old").write_bytes(b"\xc7" + bytes([len(content)]) + b"\x01" + content)

    assert read(tmp_path / "old").tolist() == [1.0]


@pytest.mark.parametrize("version", ["0.2.2", "0.3.0", "0.3.2"])
def test_a_named_tuple_beside_the_optimizer(version: str) -> None:
    tree = read(FILES / f"adam_{version}")

    assert tree["stats"] == {"mean": 1.0, "var": 2.0}


RUNS = "adam_0.2.2 model_0.2.2 adam_0.3.0 adam_0.3.2 model_0.3.0"


@pytest.mark.parametrize("name", RUNS.split())
def test_goes_on_as_if_nothing_had_happened(name: str) -> None:
    with precise():
        state = new_state("optim.Adam(0.01)", parameters())
        if name.startswith("adam"):
            like = {"optimizer": state, "stats": {"mean": 0.0, "var": 0.0}}
            state = load_legacy_checkpoint(FILES / name, like)["optimizer"]
        else:
            state = load_legacy_checkpoint(FILES / name, state)
        for step in range(STEPS, 2 * STEPS):
            state = state.apply_gradients(grads=gradients(step))
        expected = serialization.msgpack_restore(
            (FILES / f"{name}_{2 * STEPS}").read_bytes()
        )

        assert_near(state.params, expected, parameters())
