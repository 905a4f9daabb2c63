"""Commands that README.md and docs/ show without an output, in a repository as they think of it: they do their work."""

import re
import shlex
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from codemods import Source, migrate
from tests.optim2optax.conftest import Run
from tests.optim2optax.processes import run_python
from tests.optim2optax.repositories import git
from tests.optim2optax.test_installing import ROOT

PROGRAM = """\
import argparse
import json
import pathlib

import jax
import jax.numpy as jnp
from flax import optim


def train(steps):
    optimizer = optim.GradientDescent(learning_rate=1e-3).create({"w": jnp.ones((3, 2))})
    for _ in range(steps):
        grads = jax.grad(lambda params: jnp.sum(params["w"] ** 2))(optimizer.target)
        optimizer = optimizer.apply_gradient(grads)
    return optimizer.target


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int)
    norm = float(jnp.linalg.norm(train(parser.parse_args().steps)["w"]))
    pathlib.Path("out").mkdir(exist_ok=True)
    pathlib.Path("out/metrics.json").write_text(json.dumps({"norm": norm}))
    print(f"loss={norm ** 2}")
"""
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"optim2optax |pytest ")
REMARK = re.compile(r"(?:   +|  # | +# ).*")
LEFT = {"--check", "--diff"}
"""With these, legacy code is found, and stays."""


def shown() -> list[str]:
    """Each command once, without the remark beside it."""
    found = set()
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        for kind, block in BLOCK.findall(page.read_text()):
            lines = block.splitlines() if kind in ("", "text") else []
            commands = (REMARK.sub("", line.removeprefix("$ ")) for line in lines)
            found |= {one for one in commands if COMMAND.match(one)}
    return sorted(command for command in found if not re.search(r"[A-Z]{3}", command))


ALIKE = {
    "optim2optax parity --before legacy src/",
    "optim2optax parity --before main~3 -- python train.py --steps 20",
    "optim2optax parity --before main~3 src/",
    "optim2optax parity --platform cpu train.py",
    "optim2optax parity src/",
}
"""What others do as well, and more."""


def marked() -> list[ParameterSet]:
    """The commands, of which those that say no more than others are thorough."""
    assert {*shown()} > ALIKE
    marks = dict.fromkeys(ALIKE, pytest.mark.thorough)
    return [pytest.param(one, marks=marks.get(one, ())) for one in shown()]


@pytest.mark.usefixtures("legacy_wheel", "settings_of_jax")
@pytest.mark.parametrize("command", marked())
def test_it_runs(command: str, project: Path, run: Run) -> None:
    (project / "src").mkdir()
    files = (project / "train.py", project / "src" / "model.py")
    for path in files:
        path.write_text(PROGRAM)
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "legacy")
    git(project, "tag", "legacy")
    if "--before" in command:
        for path in files:
            [result] = migrate([Source(str(path), PROGRAM.encode())])
            path.write_bytes(result.after)
        git(project, "commit", "--quiet", "--all", "--message", "optax")
        for number in range(2):
            git(project, "commit", "--quiet", "--allow-empty", "--message", f"{number}")

    name, *words = shlex.split(command)
    if name == "pytest":
        done = run_python("-m", name, *words)
        code, stdout = done.returncode, done.stdout
    else:
        called = run(*words)
        code, stdout = called.exit_code, called.output
    assert code == (1 if LEFT & {*words} else 0), stdout
    if words[0] == "parity" or "--parity" in words:
        assert re.search(r"\b[1-9]\d* (identical|equivalent)|[1-9] passed", stdout)
        assert "--" not in words or "1 case:" in stdout
    rewrites = words[0] == "rewrite" and LEFT.isdisjoint(words)
    is_new = "optax" in (project / "src" / "model.py").read_text()
    assert is_new == (rewrites or "--before" in command)
