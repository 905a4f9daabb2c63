"""`--vendor` for `flax.nn`: who gets the copy, and that it computes what the old Flax did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from codemods.vendoring.packages import NN
from optim2optax.legacy_wheel import NN_RELEASE, find_wheel
from optim2optax.vendoring.content import NN_CONTENT
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import UNRESOLVABLE
from tests.optim2optax.vendoring.copies import imported
from tests.optim2optax.vendoring.old_models import KEY, PROGRAMS, described

NAME = NN_CONTENT.name
SAVED = json.loads(Path(__file__).with_name("old_models.json").read_text())
OTHER_NAMES = {"Module", "shared", "init_by_shape", "create", "activation"}


@pytest.fixture(scope="module")
def nn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The copy, imported; with random bits as old releases of JAX had them."""
    files = NN_CONTENT.files(find_wheel(NN_RELEASE))
    folder = tmp_path_factory.mktemp("copy")
    with jax.threefry_partitionable(False), imported(files, folder, NAME) as module:
        yield module


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_what_the_old_one_did(nn: Any, name: str) -> None:
    found = described(PROGRAMS[name](nn))
    assert [shape for shape, _ in found] == [shape for shape, _ in SAVED[name]]
    for (_, numbers), (_, expected) in zip(found, SAVED[name], strict=True):
        np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=3e-5)


def test_each_public_name_has_a_program(nn: Any) -> None:
    modules = {name.removesuffix(".py") for name in NN.modules}
    public = {name for name in vars(nn) if not name.startswith("_")}
    assert public - modules <= {*PROGRAMS} <= public | OTHER_NAMES


def test_params_are_made_within_jit_with_a_key_from_outside(nn: Any) -> None:
    def init(key: Any) -> Any:
        specs = [((2, 12), jnp.float32)]
        return nn.Dense.init_by_shape(key, specs, features=3)[1]

    np.testing.assert_array_equal(init(KEY)["kernel"], jax.jit(init)(KEY)["kernel"])


def test_each_file_says_where_it_comes_from() -> None:
    for name, content in NN_CONTENT.files(find_wheel(NN_RELEASE)).items():
        text = content.decode()
        assert "\n#     http://www.apache.org/licenses/LICENSE-2.0\n" in text
        assert f"from Flax 0.3.6, flax/deprecated/nn/{name}; changed: " in text
        assert "from flax.deprecated" not in text
        assert NN_CONTENT.origin_of(content) == name


MODEL = """\
import jax
from flax import nn


class Net(nn.Module):
    def apply(self, x):
        return nn.Dense(nn.tanh(nn.Dense(x, 8)), 1)


def create(key, x):
    return nn.Model(Net, Net.init(key, x)[1])
"""
TRAINING = """\
import jax
from flax import optim

from models import create


@jax.jit
def step(optimizer, x):
    def loss(model):
        return (model(x) ** 2).mean()

    value, grad = jax.value_and_grad(loss)(optimizer.target)
    return optimizer.apply_gradient(grad), value


def train(key, x):
    optimizer = optim.Momentum(0.1, beta=0.9).create(create(key, x))
    losses = []
    for _ in range(4):
        optimizer, loss = step(optimizer, x)
        losses.append(float(loss))
    return losses
"""
LINEN = "from flax import linen as nn\n\nnn.Dense(3)\n"
TOLD = (
    "The models are written for flax.nn, which Flax removed in 0.4.0: "
    "`--vendor` keeps it in the project."
)


def folders(project: Path) -> set[str]:
    return {path.name for path in project.iterdir() if path.is_dir()} - {".git"}


def test_models_without_an_optimizer(project: Path, run: Run) -> None:
    (project / "models.py").write_text(MODEL)
    (project / "modern.py").write_text(LINEN)
    result = run("rewrite", "--vendor", ".")
    assert result.exit_code == 0
    pointed = MODEL.replace("from flax import nn", f"import {NAME} as nn")
    assert (project / "models.py").read_text() == pointed
    assert (project / "modern.py").read_text() == LINEN
    assert folders(project) == {NAME}
    for options in ((), ("--vendor",)):
        again = run("rewrite", *options, ".")
        assert again.exit_code == 0
        assert "1 vendored, 0 unresolved" in again.stdout
        assert (project / "models.py").read_text() == pointed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import flax\n\nflax.nn.Dense\n", f"import {NAME}\n\n{NAME}.Dense\n"),
        ("from flax.deprecated import nn\n", f"import {NAME} as nn\n"),
        ("import flax.deprecated.nn as nn\n", f"import {NAME} as nn\n"),
        ("from flax.nn import initializers\n", f"from {NAME} import initializers\n"),
        ("from flax.nn.base import Model\n", f"from {NAME}.base import Model\n"),
        ("from flax import deprecated\n\ndeprecated.nn.Dense\n", f"import {NAME}\n\n{NAME}.Dense\n"),
        ("from flax import linen, nn, struct\n", f"from flax import linen, struct\nimport {NAME} as nn\n"),
        ("from flax import nn  # optim2optax: ignore\n", ""),
        ("from flax import linen as nn\n", ""),
        ("from jax import nn\nimport flax\n", ""),
        ("from flax import nnx\nimport flax.linen as nn\n", ""),
    ],
)  # fmt: skip
def test_what_is_pointed(project: Path, run: Run, before: str, after: str) -> None:
    (project / "models.py").write_text(before)
    assert run("rewrite", "--vendor", ".").exit_code == 0
    assert (project / "models.py").read_text() == (after or before)
    assert folders(project) == ({NAME} if after else set())


@pytest.mark.parametrize("modernize", [(), ("--modernize",)])
def test_an_optimizer_that_migrates_holds_the_model(
    project: Path, run: Run, modernize: tuple[str, ...]
) -> None:
    (project / "models.py").write_text(MODEL)
    (project / "train.py").write_text(TRAINING)
    assert run("rewrite", *modernize, "--vendor", ".").exit_code == 0
    assert folders(project) == {NAME}
    assert "AnyParamsTrainState" in (project / "train.py").read_text()
    is_renamed = "jax.nn.tanh" in (project / "models.py").read_text()
    assert is_renamed == bool(modernize)
    before = {path: path.read_bytes() for path in project.rglob("*.py")}
    run("rewrite", *modernize, ".")
    assert {path: path.read_bytes() for path in project.rglob("*.py")} == before


def test_both_copies(project: Path, run: Run) -> None:
    (project / "models.py").write_text(MODEL)
    (project / "train.py").write_text(UNRESOLVABLE)
    assert run("rewrite", "--vendor", ".").exit_code == 0
    assert folders(project) == {NAME, "legacy_flax_optim"}
    again = run("rewrite", ".").stdout
    assert "2 files: 0 rewritten, 0 suppressed, 4 vendored" in again


def test_it_is_told_once(project: Path, run: Run) -> None:
    (project / "models.py").write_text(MODEL)
    (project / "more.py").write_text("from flax import nn, optim\n\noptim.Adam(0.1)\n")
    (project / "train.py").write_text(TRAINING)
    assert run("rewrite", "--check", ".").stdout.count(TOLD) == 1
    doctor = run("doctor", ".").stdout
    assert doctor.count(TOLD) == 1
    assert "optim2optax rewrite --vendor ." in doctor
    assert run("rewrite", "--check", "--modernize", ".").stdout.count("FO897") == 1
