"""A repository that is a package itself: its files find one another by the name of its folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.codemods.running import assert_alike, outcome
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import read_files, write_files

UTILS = """\
import flax


@flax.struct.dataclass
class State:
    optimizer: flax.optim.Optimizer
"""
TRAIN = """\
import flax
from pkg import utils


def train(params, gradients):
    state = utils.State(optimizer=flax.optim.Adam(0.1).create(params))
    for number, grad in enumerate(gradients):
        rate = 0.1 / (1 + number ** 2)
        state = state.replace(optimizer=state.optimizer.apply_gradient(grad, learning_rate=rate))
    return flax.serialization.to_bytes(state)
"""
EVAL = """\
import flax
from pkg import utils


def load(params, stored):
    state = utils.State(optimizer=flax.optim.Adam(0.1).create(params))
    return flax.serialization.from_bytes(state, stored).optimizer.target
"""
MAIN = """\
from pkg import evaluate, train


def run(params, gradients):
    return evaluate.load(params, train.train(params, gradients))
"""
EMPTY = dict.fromkeys((".git/HEAD", "__init__.py"), "")
STATES = {**EMPTY, "utils.py": UTILS, "train.py": TRAIN, "evaluate.py": EVAL}
SIGN = """\
import flax
import jax.numpy as jnp


@flax.struct.dataclass
class HyperParams:
    learning_rate: float


class Sign(flax.optim.OptimizerDef):
    def __init__(self, learning_rate=None):
        super().__init__(HyperParams(learning_rate))

    def init_param_state(self, param):
        return ()

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * jnp.sign(grad), ()
"""
MAKE = """\
from flax import optim

from pkg.optimizers.sign import Sign


def make_optimizer(name, rate):
    if name == "sign":
        return Sign(rate)
    return optim.Momentum(rate)
"""
OTHERS = """\
from pkg.optimizers.make import make_optimizer


def train(params, gradients, name):
    optimizer = make_optimizer(name, 0.1).create(params)
    for number, grad in enumerate(gradients):
        optimizer = optimizer.apply_gradient(grad, learning_rate=0.1 / (1 + number))
    return optimizer.target
"""
BOTH = """\
from pkg import train


def run(params, gradients):
    return [train.train(params, gradients, name) for name in ("sign", "momentum")]
"""
CHOSEN = {
    "pyproject.toml": "",
    "__init__.py": "",
    "optimizers/__init__.py": "",
    "optimizers/sign.py": SIGN,
    "optimizers/make.py": MAKE,
    "train.py": OTHERS,
}


def code(folder: Path, package: str = "") -> dict[str, str]:
    """The text of each module in a folder, by its path from `package` on."""
    return {
        f"{package}{path}": text.decode()
        for path, text in read_files(folder).items()
        if path.endswith(".py")
    }


PROGRAMS = {"states": (STATES, MAIN), "chosen": (CHOSEN, BOTH)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("within", [True, False], ids=["within", "from above"])
@pytest.mark.parametrize("name", ["pkg", "pkg-main"])
def test_it_trains_as_before(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    tmp_path: Path,
    legacy_wheel: Path,
    program: tuple[Mapping[str, str], str],
    within: bool,
    name: str,
) -> None:
    files, main = program
    folder = project / name
    write_files(folder, files)
    before = {"main.py": main, **code(folder, "pkg/")}
    if within:
        monkeypatch.chdir(folder)
    arguments = ["."] if within else [name]
    assert run("rewrite", *arguments).exit_code == 0
    after = {"main.py": main, **code(folder, "pkg/")}
    assert not any("flax.optim" in text for text in after.values())
    old = outcome(before, tmp_path / "before", legacy_wheel)
    assert_alike(old, outcome(after, tmp_path / "after"))
    # a second run changes nothing
    assert run("rewrite", *arguments).stdout.startswith("Nothing to migrate")
    assert {"main.py": main, **code(folder, "pkg/")} == after


LEFT = """\
from flax import optim

from pkg import losses


def make(params, name):
    return getattr(optim, name, None)(learning_rate=0.1).create(params)
"""
STEP = """\
import pkg.train


def run(params, gradients):
    optimizer = pkg.train.make(params, "Momentum")
    for grad in gradients:
        optimizer = optimizer.apply_gradient(grad)
    return optimizer.target
"""


def test_a_copy_of_flax_optim_is_within_it(
    project: Path, run: Run, tmp_path: Path, legacy_wheel: Path
) -> None:
    folder = project / "pkg"
    files = {**EMPTY, "losses.py": "", "train.py": LEFT, "main.py": STEP}
    write_files(folder, files)
    before = code(folder, "pkg/")
    before["main.py"] = before.pop("pkg/main.py")
    assert run("rewrite", "--vendor", "pkg").exit_code == 0
    assert {path.name for path in project.iterdir()} == {"pkg"}
    assert "from pkg import legacy_flax_optim as optim\n" in code(folder)["train.py"]
    after = code(folder, "pkg/")
    after["main.py"] = after.pop("pkg/main.py")
    old = outcome(before, tmp_path / "before", legacy_wheel)
    assert_alike(old, outcome(after, tmp_path / "after"))
    # it is found again, and kept as long as it is needed
    again = read_files(folder)
    assert run("rewrite", "pkg").exit_code == 0
    assert read_files(folder) == again
