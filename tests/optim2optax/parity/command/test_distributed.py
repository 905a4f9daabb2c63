"""A program of several processes that `jax.distributed` brings together is compared like one of several devices."""

import socket
from pathlib import Path

import pytest

from codemods import Source, migrate
from optim2optax.parity.command.verdict import compare_command
from tests.optim2optax.parity.differences import SAME

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """\
import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

jax.distributed.initialize(f"localhost:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[1]))


def train_step(optimizer, x):
    grads = jax.grad(lambda params: jnp.mean((x @ params["w"]) ** 2))(optimizer.target)
    return optimizer.apply_gradient(jax.lax.pmean(grads, "batch"))


train_step = jax.pmap(train_step, axis_name="batch", devices=jax.devices())
optimizer = optim.Momentum(1e-2).create({"w": jnp.ones((4, 3))})
optimizer = jax.tree_util.tree_map(lambda leaf: leaf[None], optimizer)
for number in range(10):
    x = np.random.default_rng([jax.process_index(), number]).normal(size=(1, 8, 4)).astype(np.float32)
    optimizer = train_step(optimizer, x)
"""
BOTH = (
    'python train.py 0 "$0" & first=$!; python train.py 1 "$0" & wait $first && wait $!'
)


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return str(found.getsockname()[1])


@pytest.mark.thorough
def test_two_processes_with_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "")
    [result] = migrate([Source("train.py", PROGRAM.encode())])
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, content in ((old, PROGRAM.encode()), (new, result.after)):
        folder.mkdir()
        (folder / "train.py").write_bytes(content)
    monkeypatch.chdir(new)
    command = ["sh", "-c", BOTH, free_port()]

    found = compare_command(command, str(old), new)
    assert found.verdict in SAME, found
    assert found.steps == 10
