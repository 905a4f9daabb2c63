"""Checkpoints that the old Flax wrote on an old JAX, in an interpreter of their own, and programs that go on from them."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flax import serialization
from flax.training import checkpoints

from codemods import Options, Source, migrate
from optim2optax.cli import application
from optim2optax.parity.running.devices import HOST_DEVICES
from optim2optax.precision import precise
from tests.optim2optax.checkpoints.old_world.programs import (
    PROGRAMS,
    OneOptimizer,
    load,
    params_of,
)
from tests.optim2optax.checkpoints.trajectories import assert_near
from tests.optim2optax.processes import environment, run_program

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent / "old_world"
STEPS = 50

pytestmark = pytest.mark.network

FACTORY = """
from pathlib import Path

from tests.optim2optax.checkpoints.old_world.programs import PROGRAMS, OneOptimizer, load

def create():
    return (PROGRAMS.get({name!r}) or OneOptimizer()).fresh(load(Path({program!r})))
"""


def goes_on(name: str, before: Path, after: Path, folder: Path, python: Path) -> None:
    """Fifty old steps, a checkpoint, which is converted, and fifty new steps are the same as a hundred old steps."""
    (folder / "old").mkdir()
    words = (python, "-W", "ignore", HERE / "run.py", before, name, folder / "old")
    # the old XLA ends at a flag that it does not know
    variables = environment(XLA_FLAGS=f"{HOST_DEVICES}=8")
    trained = run_program(*words, env=variables, timeout=300)
    assert trained.returncode == 0, trained.stderr
    factory = f"factory_{folder.name}"
    (folder / f"{factory}.py").write_text(FACTORY.format(name=name, program=str(after)))
    parts: Any = PROGRAMS.get(name) or OneOptimizer()
    with precise():
        paths = (f"old/checkpoint_{STEPS}", f"checkpoint_{STEPS}")
        arguments = ["convert", *paths, "--state", f"{factory}:create"]
        result = CliRunner().invoke(application, ["checkpoint", *arguments])
        assert result.exit_code == 0, result.output
        module = load(after)
        if hasattr(parts, "restore"):
            state = parts.restore(module, folder / f"checkpoint_{STEPS}")
        else:
            state = checkpoints.restore_checkpoint(str(folder), parts.fresh(module))
        start = params_of(parts.fresh(module))
        for number in range(STEPS, 2 * STEPS):
            state = parts.step(module, state, number)
        later = (folder / "old" / "params").read_bytes()
        expected = serialization.msgpack_restore(later)
        got, begun = map(serialization.to_state_dict, (params_of(state), start))
        assert_near(got, expected, begun)


IDIOMS = {
    "a schedule in the transformation": """
import jax.numpy as jnp
from flax import optim

def schedule(step):
    return 0.01 * jnp.minimum(1.0, (step + 1) / 60) * jnp.where(step < 80, 1.0, 0.1)

def create(params):
    return optim.Adam().create(params)

def step(optimizer, grads):
    return optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))
""",
    "a schedule behind a clipping, for Momentum": """
import jax
import jax.numpy as jnp
from flax import optim

def create(params):
    return optim.Momentum(weight_decay=0.1).create(params)

def step(optimizer, grads):
    norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))
    grads = jax.tree_util.tree_map(lambda g: g * jnp.minimum(1.0, 3.0 / norm), grads)
    return optimizer.apply_gradient(grads, learning_rate=0.1 / (1 + optimizer.state.step))
""",
    "a rate that is set": """
import jax.numpy as jnp
from flax import optim

def create(params):
    return optim.Adam(0.01, weight_decay=0.1).create(params)

def step(optimizer, grads):
    rate = 0.01 * jnp.abs(grads["out"]["kernel"]).mean()
    return optimizer.apply_gradient(grads, learning_rate=rate)
""",
    "groups that differ in weight decay": """
from flax import optim

def create(params):
    kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
    others = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
    return optim.MultiOptimizer(
        (kernels, optim.Adam(0.01, weight_decay=0.1)), (others, optim.Adam(0.01, weight_decay=0.0))
    ).create(params)
""",
    "groups with rates of their own, and a frozen rest": """
from flax import optim

def create(params):
    kernels = optim.ModelParamTraversal(lambda path, _: "dense/kernel" in path)
    biases = optim.ModelParamTraversal(lambda path, _: "bias" in path)
    return optim.MultiOptimizer((kernels, optim.RMSProp(0.01)), (biases, optim.Momentum(0.01))).create(params)

def step(optimizer, grads):
    first, second = optimizer.optimizer_def.hyper_params
    rate = 0.001 * (1 + optimizer.state.step)
    return optimizer.apply_gradient(
        grads, hyper_params=[first.replace(learning_rate=rate), second.replace(learning_rate=2 * rate)]
    )

def train(params, grads):
    return step(create(params), grads)
""",
}


@pytest.mark.parametrize("program", IDIOMS.values(), ids=IDIOMS)
def test_every_idiom_goes_on(
    program: str, tmp_path: Path, legacy_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [result] = migrate([Source("train.py", program.encode())], Options())
    assert [site for site in result.sites if site.status == "unresolved"] == []
    (tmp_path / "before.py").write_text(program)
    (tmp_path / "after.py").write_bytes(result.after)

    goes_on("", tmp_path / "before.py", tmp_path / "after.py", tmp_path, legacy_python)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_that_stores_its_state_goes_on(
    name: str, tmp_path: Path, legacy_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = ROOT / "fixtures" / name.partition(",")[0]

    goes_on(name, folder / "before.py", folder / "after.py", tmp_path, legacy_python)
