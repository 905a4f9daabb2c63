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
REMARK = re.compile(r"(?:   +|  # | +# ).*")
LEFT = {"--check", "--diff"}
"""With these, legacy code is found, and stays."""


def shown() -> list[str]:
    """Each command once, without the remark beside it."""
    texts = [
        (ROOT / "README.md").read_text(),
        *(page.read_text() for page in sorted(ROOT.glob("docs/**/*.md"))),
    ]
    blocks = [
        block
        for text in texts
        for kind, block in BLOCK.findall(text)
        if kind in ("", "text")
    ]
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    commands = [
        REMARK.sub("", line)
        for line in lines
        if re.match(r"optim2optax |pytest ", line)
    ]
    return sorted(
        {command for command in commands if not re.search(r"[A-Z]{3}", command)}
    )


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
    return [
        pytest.param(command, marks=pytest.mark.thorough if command in ALIKE else [])
        for command in shown()
    ]


@pytest.mark.usefixtures("legacy_wheel", "settings_of_jax")
@pytest.mark.parametrize("command", marked())
def test_it_runs(command: str, project: Path, run: Run) -> None:
    (project / "src").mkdir()
    for path in (project / "train.py", project / "src" / "model.py"):
        path.write_text(PROGRAM)
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "legacy")
    git(project, "tag", "legacy")
    if "--before" in command:
        for path in (project / "train.py", project / "src" / "model.py"):
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
    assert ("optax" in (project / "src" / "model.py").read_text()) == (
        rewrites or "--before" in command
    )
