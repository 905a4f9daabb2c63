"""`optim2optax doctor`, on whole small projects."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from optim2optax.cli import application
from tests.optim2optax.folders import notebook, write_files

CLEAN = "import jax\nimport optax\n\ntree = jax.tree_util.tree_map(abs, {'a': 1})\n"
OLD = """\
import jax
from flax import nn, optim
from jax.config import config

config.update("jax_enable_x64", True)


def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    return optimizer.apply_gradient(jax.tree_map(abs, jax.tree_map(abs, grads)))
"""


def doctor(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(application, ["doctor", *options, str(folder)])


def obstacles(folder: Path, *options: str) -> dict[str, Any]:
    """The obstacles in JSON, by what they are."""
    result = doctor(folder, "--output-format", "json", *options)
    found = {one["what"]: one for one in json.loads(result.output)["obstacles"]}
    assert result.exit_code == bool(found)
    return found


def lines_of(obstacle: dict[str, Any]) -> list[str]:
    return [place.rpartition(":")[2] for place in obstacle["places"]]


CHANGED = """\
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.core import FrozenDict


def run(x, carry, cell=nn.GRUCell()):
    nn.LSTMCell()(carry, x)
    jnp.clip(jnp.mean([x, x]), a_min=0)
    optax.huber_loss(x, x, 1.0)
    return x if isinstance(x, FrozenDict) else FrozenDict(x)["x"]
"""
TOLD = """\
a list for jax.numpy.mean, changed since JAX 0.4.13: train.py:9
    fix: It is written in another way now.
an argument of optax.huber_loss by position, changed since optax 0.2.8: train.py:10
    fix: It is written in another way now.
flax.linen.LSTMCell() without features, changed since Flax 0.7.0: train.py:8
    fix: It is written in another way now.
jax.numpy.clip(a_min), changed since JAX 0.10.0: train.py:9
    fix: It is `min` now.
flax.core.FrozenDict: isinstance, changed since Flax 0.7.0: train.py:11
    fix: The variables of a model are plain dicts now. Test for `(dict, FrozenDict)`, if these are meant.
flax.linen.GRUCell() without features, changed since Flax 0.7.0: train.py:7
    fix: Give it the number of features, which is the last axis of its carry.
"""


def test_what_is_taken_otherwise_is_told(tmp_path: Path) -> None:
    result = doctor(write_files(tmp_path, {"train.py": CHANGED}))
    lines = result.output.partition("\n\n")[0]
    assert re.sub(r"[^ ]*(?=train\.py)", "", lines) == TOLD.rstrip()


NO_OBSTACLES = {
    "what runs": CLEAN,
    "a module that an except stands ready for": "try:\n    from jax.config import config\nexcept ImportError:\n    from jax import config\n",
    "another optim": "from torch import optim\n\nx = optim.Adam(0.1)\n",
    "another flax": "class flax:\n    optim = None\n\nx = flax.optim\n",
    "an import that need not work": "try:\n    from flax import optim\nexcept ImportError:\n    optim = None\n",
    "an attribute that need not be": "import flax\ntry:\n    x = flax.optim.Adam\nexcept AttributeError:\n    x = None\n",
}


@pytest.mark.parametrize("text", NO_OBSTACLES.values(), ids=NO_OBSTACLES)
def test_what_is_no_obstacle(tmp_path: Path, text: str) -> None:
    result = doctor(write_files(tmp_path, {"train.py": text}))
    assert result.exit_code == 0
    assert "Nothing is known to stand in the way." in result.output


USES_OF_LEGACY = {
    "an attribute": "import flax\n\nx = flax.optim.Momentum(beta=0.9, learning_rate=0.03)\n",
    "an attribute of the package by another name": "import flax as f\n\nx = f.optim.adam.Adam(0.1)\n",
    "an attribute within a function": "def make():\n    import flax\n    return flax.optim.Adam(0.1)\n",
    "an attribute over several lines": "import flax\n\nx = (flax\n    .optim.Adam(0.1))\n",
    "a class to derive from": "import flax\n\nclass Mine(flax.optim.OptimizerDef): ...\n",
    "a type": "import flax\n\ndef step(optimizer: flax.optim.Optimizer): ...\n",
    "a type in quotes": "import flax\n\ndef step(optimizer: 'flax.optim.Optimizer'): ...\n",
    "a check": "import flax\n\nprint(isinstance(1, flax.optim.Optimizer))\n",
    "an import by another name": "print(1)\n\nfrom flax import optim as o\n",
    "an import by its path": "import importlib\n\nAdam = importlib.import_module('flax.optim').Adam\n",
    "an import below the package": "import importlib\n\nAdam = importlib.import_module('flax').optim.Adam\n",
    "getattr": "import flax\n\nx = getattr(getattr(flax, 'optim'), 'Adam')\n",
    "a text that is run": "import flax\n\nx = eval('flax.optim.Adam')\n",
}


@pytest.mark.parametrize("text", USES_OF_LEGACY.values(), ids=USES_OF_LEGACY)
def test_flax_optim_is_named_in_each_form(tmp_path: Path, text: str) -> None:
    told = obstacles(write_files(tmp_path, {"train.py": text}))
    assert [*told] == ["flax.optim"]
    assert told["flax.optim"]["command"] == "optim2optax rewrite"
    assert lines_of(told["flax.optim"]) == ["3"]


def test_flax_optim_is_named_in_a_notebook(tmp_path: Path) -> None:
    text = notebook("import flax\n\nx = flax.optim.Adam(0.1)\n")
    line = text[: text.index("flax.optim")].count("\n") + 1
    result = doctor(write_files(tmp_path, {"train.ipynb": text}))
    assert f"train.ipynb:{line}\n" in result.output


def test_names_that_are_gone_are_told_by_what_mends_them(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"train.py": OLD})
    told = obstacles(folder)
    assert {what: (one["since"], one["command"]) for what, one in told.items()} == {
        "jax.tree_map": ("JAX 0.6.0", "optim2optax rewrite --modernize"),
        "jax.config.config": ("JAX 0.4.25", "optim2optax rewrite --modernize"),
        "flax.optim": ("Flax 0.6.0", "optim2optax rewrite"),
        "flax.nn": ("Flax 0.4.0", "optim2optax rewrite --vendor"),
    }
    assert lines_of(told["jax.config.config"]) == ["3"]
    assert lines_of(told["jax.tree_map"]) == ["10"]
    # an older version has more
    assert [*obstacles(folder, "--jax=0.4.13", "--flax=0.5.3")] == ["flax.nn"]


def test_names_that_never_were_there_are_told(tmp_path: Path) -> None:
    text = "import jax\nfrom jax._src import api\n\njax.cond(api.jit)\n"
    folder = write_files(tmp_path, {"train.py": text})
    told = obstacles(folder, "--jax=0.9")
    assert [*told] == ["jax.cond"]
    remedy = "JAX does not have it. It may be `jax.lax.cond`."
    assert told["jax.cond"]["remedy"] == remedy
    assert doctor(folder, "--jax", "99").exit_code == 0


def test_a_file_that_is_no_python_3_is_an_obstacle(tmp_path: Path) -> None:
    text = "import jax\nprint 'jax.tree_map'\n"
    result = doctor(write_files(tmp_path, {"train.py": text}))
    assert result.exit_code == 1
    assert "cannot be parsed as Python 3" in result.output


def test_pins_that_exclude_what_is_needed_or_here_are_told(tmp_path: Path) -> None:
    files = {"train.py": OLD, "requirements.txt": "flax==0.3.4\nnumpy\n"}
    folder = write_files(tmp_path, files)
    told = obstacles(folder)["flax==0.3.4"]
    assert told["command"] == "optim2optax rewrite --modernize"
    (folder / "train.py").write_text(CLEAN)
    result = doctor(folder)
    assert result.exit_code == 1
    assert "flax==0.3.4: " in result.output
    assert "fix: It excludes Flax " in result.output


INSTALLING = {
    ".github/workflows/ci.yml": "jobs:\n  test:\n    steps:\n      - run: pip install 'flax==0.3.4'\n",
    ".circleci/config.yml": "- run:\n    command: |\n      pip install -r x.txt flax==0.3.4\n",
    ".gitlab-ci.yml": "test:\n  script:\n    - pip install flax==0.3.4\n",
    "tox.ini": "[testenv]\ndeps =\n    flax==0.3.4\n",
    "noxfile.py": "def test(session):\n    session.install('flax==0.3.4')\n",
    "Makefile": "test:\n\tpython -m pip install flax==0.3.4\n",
    "run.sh": "#!/bin/bash\npip3 install flax==0.3.4\n",
    "Dockerfile": "FROM python:3.12\nRUN pip install flax==0.3.4 optax\n",
    "README.md": "# Install\n\n```\npip install flax==0.3.4\n```\n",
}


@pytest.mark.parametrize("name", INSTALLING)
def test_pins_in_commands_are_told_with_their_line(tmp_path: Path, name: str) -> None:
    text = INSTALLING[name]
    folder = write_files(tmp_path, {"train.py": OLD, name: text})
    found = obstacles(folder).items()
    [told] = [one for what, one in found if "flax==0.3.4" in what]
    before, _, _ = text.partition("flax==0.3.4")
    [place] = told["places"]
    assert place.endswith(f"/{name}:{before.count(chr(10)) + 1}")
    assert told["command"] == ""
    (folder / name).write_text(text.replace("==0.3.4", ""))
    assert "0.3.4" not in doctor(folder).output


def test_what_a_text_says_of_versions_is_no_command(tmp_path: Path) -> None:
    text = "Tested with flax==0.3.4 and jax 0.2.\n"
    folder = write_files(tmp_path, {"train.py": OLD, "README.md": text})
    assert "README" not in doctor(folder).output


OPEN = {"flax": True, "flax>=0.4.1": True, "flax<1": True, "flax<0.6": False}


@pytest.mark.parametrize("requirement", OPEN)
def test_what_lets_a_flax_without_optimizers_in_is_told(
    tmp_path: Path, requirement: str
) -> None:
    files = {"train.py": OLD, "requirements.txt": f"numpy\n{requirement}\n"}
    folder = write_files(tmp_path, files)
    told = rf"^{requirement}: \S+/requirements.txt:2\n    fix: It also installs a Flax"
    found = re.search(told, doctor(folder).output, re.MULTILINE)
    assert (found is not None) == OPEN[requirement]
    # to code without flax.optim it does not matter
    (folder / "train.py").write_text("import jax\n\njax.tree_map(abs, 1)\n")
    assert "It also installs" not in doctor(folder).output


@pytest.mark.parametrize("is_imported", [True, False])
def test_an_installed_package_that_needs_flax_optim_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_imported: bool
) -> None:
    metadata = (
        "Metadata-Version: 2.1\nName: oldlab\nVersion: 1.2\nRequires-Dist: flax >=0.3\n"
    )
    files = {
        "oldlab/__init__.py": "",
        "oldlab/optimizers.py": "import jax\nfrom flax import optim\n",
        "oldlab-1.2.dist-info/METADATA": metadata,
        "oldlab-1.2.dist-info/RECORD": "oldlab/__init__.py,,\noldlab/optimizers.py,,\n",
    }
    monkeypatch.syspath_prepend(write_files(tmp_path / "site", files))
    program = "import oldlab.optimizers\n" if is_imported else "import json\n"
    result = doctor(write_files(tmp_path / "lab", {"train.py": program}))
    told = "oldlab 1.2, which is installed: oldlab/optimizers.py:2\n"
    assert (told in result.output) == is_imported
    assert result.exit_code == is_imported


def test_the_command_is_to_be_typed_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_files(tmp_path / "my lab", {"train.py": OLD})
    assert f"optim2optax rewrite --modernize '{folder}'\n" in doctor(folder).output
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(application, ["doctor"])
    assert "obstacles: optim2optax rewrite --modernize .\n" in result.output


@pytest.mark.parametrize("version", ["new", "0..1"])
def test_a_version_is_one(tmp_path: Path, version: str) -> None:
    result = doctor(write_files(tmp_path, {"train.py": CLEAN}), "--jax", version)
    assert result.exit_code == 2
    assert "Invalid value for '--jax'" in result.output
