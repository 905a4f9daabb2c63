"""Each side of a command runs its own code and nothing of the other's, however the code is found."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from codemods import Options, Source, migrate
from optim2optax.parity.command.runs import CommandError, RunOptions
from optim2optax.parity.command.verdict import compare_command
from optim2optax.parity.judging.comparison import Comparison, Verdict
from tests.optim2optax.parity.differences import first_difference
from tests.optim2optax.repositories import commit_all, git

pytestmark = pytest.mark.usefixtures("legacy_wheel")

OLD = """
from flax import optim
import jax.numpy as jnp

def train(steps):
    optimizer = optim.Momentum(0.1).create({"w": jnp.arange(3.0)})
    for _ in range(steps):
        optimizer = optimizer.apply_gradient({"w": optimizer.target["w"] - 0.3})
    return optimizer.target
"""

NEW = """
from flax.training.train_state import TrainState
import jax.numpy as jnp
import optax

def train(steps):
    tx = optax.sgd(RATE, momentum=0.9)
    optimizer = TrainState.create(apply_fn=None, params={"w": jnp.arange(3.0)}, tx=tx)
    for _ in range(steps):
        optimizer = optimizer.apply_gradients(grads={"w": optimizer.params["w"] - 0.3})
    return optimizer.params
"""

MAIN = """
from lab.learning import train

if __name__ == "__main__":
    train(4)
"""


class Lab:
    """A project whose package `lab` is in `src`, as it was and as it is."""

    def __init__(self, folder: Path) -> None:
        self.before, self.now = folder / "before", folder / "now"
        for tree in (self.before, self.now):
            (tree / "src" / "lab").mkdir(parents=True)
            (tree / "src" / "lab" / "__init__.py").touch()
        self.write("src/lab/learning.py", OLD, NEW.replace("RATE", "0.1"))
        self.write("train.py", MAIN)

    def write(self, path: str, before: str, now: str | None = None) -> None:
        texts = (before, before if now is None else now)
        for tree, text in zip((self.before, self.now), texts, strict=True):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(dedent(text))

    def plant(self) -> None:
        """Let the new side have another rate."""
        learning = self.now / "src" / "lab" / "learning.py"
        learning.write_text(NEW.replace("RATE", "0.1001"))

    def compare(self, command: str, **options: Any) -> Comparison:
        sides = (str(self.before), self.now)
        return compare_command(shlex.split(command), *sides, RunOptions(**options))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    found = Lab(tmp_path / "home")
    monkeypatch.chdir(found.now)
    return found


FINDER = """
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path

MAPPING = {{"lab": "{lab}"}}

class Finder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            return spec_from_file_location(fullname, Path(MAPPING[fullname], "__init__.py"))

def install():
    sys.meta_path.append(Finder)
"""


def by_sys_path(lab: Lab, site: Path) -> None:
    insert = f"sys.path.insert(0, {str(lab.now / 'src')!r})"
    lab.write("train.py", f"import sys\n{insert}\n{MAIN}")


def by_a_pth_file(lab: Lab, site: Path) -> None:
    (site / "lab.pth").write_text(f"{lab.now / 'src'}\n")


def by_a_finder(lab: Lab, site: Path) -> None:
    name = "__editable___lab_finder"
    (site / f"{name}.py").write_text(FINDER.format(lab=lab.now / "src" / "lab"))
    (site / "__editable__.lab.pth").write_text(f"import {name}; {name}.install()\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, which a `sitecustomize` of the user's adds."""
    folder, start = tmp_path / "installed", tmp_path / "start"
    folder.mkdir()
    start.mkdir()
    adding = f"import site\nsite.addsitedir({str(folder)!r})\n"
    (start / "sitecustomize.py").write_text(adding)
    monkeypatch.setenv("PYTHONPATH", str(start), prepend=":")
    return folder


@pytest.mark.parametrize(
    "way",
    [
        by_a_finder,
        pytest.param(by_sys_path, marks=pytest.mark.thorough),
        pytest.param(by_a_pth_file, marks=pytest.mark.thorough),
    ],
)
def test_each_side_has_its_own_package(
    lab: Lab, site: Path, way: Callable[[Lab, Path], None]
) -> None:
    way(lab, site)
    lab.plant()

    comparison = lab.compare("python train.py")

    assert (comparison.verdict, comparison.steps) == (Verdict.DIFFERENT, 4), comparison


LOADED_BY_PATH = """
from importlib.util import module_from_spec, spec_from_file_location
import sys

spec = spec_from_file_location("learning", "{before}/src/lab/learning.py")
sys.modules["learning"] = learning = module_from_spec(spec)
spec.loader.exec_module(learning)
learning.train(4)
"""
WRITING = f"{MAIN}    open('{{now}}/result.txt', 'w').write('overwritten')\n"
HANGING = (
    "import sys, time\nprint('waiting for data', file=sys.stderr)\ntime.sleep(600)\n"
)
REFUSED = {
    "code of the user's own tree": ({"train.py": LOADED_BY_PATH}, r"the old side ran code .*before/src/lab/learning\.py"),
    "no legacy optimizer":
        ({"src/lab/learning.py": NEW.replace("RATE", "0.1")}, "the old side met no legacy optimizer"),
    "what is written to the user's own tree":
        ({"train.py": WRITING}, r"parity writes nothing to your own files.*result\.txt"),
    "a side that hangs": ({"train.py": HANGING}, r"the old side was ended after 8 seconds; .*\n.*waiting for data"),
    "a Python that cannot be recorded": ("python -I -c pass", r"took no step .*`python -I`"),
    "a command that is not there": ("no-such-program", r"ended with exit code 127:\nno-such-program: No such file"),
}  # fmt: skip


@pytest.mark.parametrize(("run", "why"), REFUSED.values(), ids=REFUSED)
def test_what_proves_nothing_says_why(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, run: str | dict[str, str], why: str
) -> None:
    """Another command, or `train.py` with other files."""
    monkeypatch.setenv("PYTHONPATH", "src", prepend=":")
    (lab.now / "result.txt").write_text("mine")
    files, command = ({}, run) if isinstance(run, str) else (run, "python train.py")
    for path, text in files.items():
        placed = text.replace("{before}", str(lab.before))
        lab.write(path, placed.replace("{now}", str(lab.now)))
    hanging = HANGING in files.values()
    with pytest.raises(CommandError, match=why):
        lab.compare(command, timeout=8 if hanging else None)
    assert (lab.now / "result.txt").read_text() == "mine"


def test_a_side_that_fails(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src", prepend=":")
    lab.write("train.py", MAIN, "raise SystemExit('no data here')\n")
    why = r"the new side ended with exit code 1:\n[\s\S]*no data here"
    with pytest.raises(CommandError, match=why):
        lab.compare("python train.py")


def test_a_package_that_is_installed_as_a_copy(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    shutil.copytree(lab.before / "src", installed)
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=":")
    why = r"the old side ran code .*site-packages/lab/learning\.py.*pip install -e"
    with pytest.raises(CommandError, match=why):
        lab.compare("python train.py")


WORKERS = """
import multiprocessing
import os

def work():
    from lab.learning import train
    train(4)

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work)
    worker.start()
    worker.join()
    os._exit(worker.exitcode)
"""

ENDING = "import os\nfrom lab.learning import train\ntrain(4)\nos._exit(0)\n"

LAUNCHER = """
import subprocess

subprocess.run(["python", "-u", "-X", "dev", "-W", "error", "ending.py"], check=True)
"""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("python launch.py", marks=pytest.mark.thorough),
        "python workers.py",
        pytest.param("bash run.sh", marks=pytest.mark.thorough),
        pytest.param("make train", marks=pytest.mark.thorough),
    ],
)
def test_commands_of_every_kind(
    command: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.plant()
    lab.write("launch.py", LAUNCHER)
    lab.write("ending.py", ENDING)
    lab.write("workers.py", WORKERS)
    lab.write("run.sh", "set -e\nPYTHONPATH=src python3 train.py\n")
    lab.write("Makefile", "train:\n\tmy-train\n")
    script = tmp_path / "bin" / "my-train"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom lab.learning import train\ntrain(4)\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(lab.now / "src"), prepend=":")

    comparison = lab.compare(command)

    assert (comparison.verdict, comparison.steps) == (Verdict.DIFFERENT, 4), comparison


OLD_WORLD = """
import flax
import jax
import jax.numpy as jnp
from flax import linen, optim
from optim2optax.parity import observe

assert flax.__version__ == "0.5.3" and jax.__version__ == "0.4.13"

model = linen.Sequential([linen.Dense(80), jnp.tanh, linen.Dense(80), linen.Dense(1)])
params = model.init(jax.random.PRNGKey(0), jnp.ones((1, 3)))["params"]
optimizer = optim.Adam(0.1).create(params)

@jax.jit
def train_step(optimizer, x):
    def loss_fn(params):
        loss = (model.apply({"params": params}, x) ** 2).mean()
        observe("loss", loss)
        return loss

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))

for key in jax.random.split(jax.random.PRNGKey(1), 12):
    optimizer = train_step(optimizer, jax.random.normal(key, (4, 3)))
"""


@pytest.mark.network
def test_the_old_side_in_the_old_world(lab: Lab, legacy_python: Path) -> None:
    [result] = migrate([Source("train.py", OLD_WORLD.encode())], Options())
    versions = '== "0.5.3" and jax.__version__ == "0.4.13"'
    now = result.after.decode().replace(versions, '!= "0.5.3"')
    lab.write("train.py", OLD_WORLD, now)

    found = lab.compare("python3 train.py", legacy_python=legacy_python)

    assert (found.verdict, found.steps) == (Verdict.EQUIVALENT, 12), found


DATA = """
import subprocess
from pathlib import Path

from lab.learning import train

assert Path("data/numbers.txt").read_text() == "1 2 3"
assert Path("../shared/more.txt").read_text() == Path("elsewhere/more.txt").read_text() == "4"
assert Path("vendor/module.py").read_text() == "VALUE = 5"
assert subprocess.run(["git", "log", "-1", "--format=%s"], capture_output=True, text=True).stdout == "old\\n"
Path("result.txt").touch()
train(4)
"""


def test_what_a_program_finds_around_it(lab: Lab, tmp_path: Path) -> None:
    """Data that git ignores, a folder beside the tree, a link out of it, a submodule, and git itself."""
    vendored, shared = tmp_path / "vendored", lab.now.parent / "shared"
    for folder in (vendored, shared):
        folder.mkdir()
    (shared / "more.txt").write_text("4")
    (vendored / "module.py").write_text("VALUE = 5")
    commit_all(vendored)
    lab.write("train.py", f"import sys\nsys.path.insert(0, 'src')\n{DATA}")
    lab.write(".gitignore", "data/\n")
    lab.write("data/numbers.txt", "1 2 3")
    (lab.now / "elsewhere").symlink_to("../shared")
    changed = lab.now / "src" / "lab" / "learning.py"
    changed.write_text(OLD)
    git(lab.now, "init", "-q")
    git(lab.now, "submodule", "add", "-q", str(vendored), "vendor")
    git(lab.now, "add", ".")
    git(lab.now, "commit", "-qm", "old")
    lab.plant()
    before = sorted(path for path in lab.now.rglob("*"))

    comparison = compare_command(("python", "train.py"), "HEAD", lab.now)

    assert (comparison.verdict, comparison.steps) == (Verdict.DIFFERENT, 4), comparison
    assert sorted(path for path in lab.now.rglob("*")) == before
    told = "The old side has a link to what git ignores in your tree: data."
    assert comparison.remarks[-1] == told


def test_nothing_is_written_through_a_link(lab: Lab) -> None:
    lab.write("data/numbers.txt", "1 2 3")
    lab.write("train.py", "open('data/numbers.txt', 'w').write('4')")
    with pytest.raises(CommandError, match="parity writes nothing to your own files"):
        lab.compare("python train.py", links=[Path("data")])
    assert (lab.now / "data" / "numbers.txt").read_text() == "1 2 3"


def test_what_the_program_hands_over_is_compared_too(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(lab.now / "src"))
    for tree, factor in ((lab.before, 1.0), (lab.now, 1.001)):
        (tree / "main.py").write_text(
            "import jax\nfrom lab.learning import train\nfrom optim2optax.parity import observe\n\n"
            f"found = jax.jit(lambda w: {factor} * (w**2).sum())(train(12)['w'])\nobserve('loss', found)\n"
        )
    assert first_difference(lab.compare("python main.py")).leaf == "loss"
