"""One optimizer is one file, and so is one rule: nothing else is edited when one is added."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import codemods

YOGI = '''\
"""Yogi (Zaheer et al. 2018): Adam whose second moment moves by the sign of what is new in it."""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-3")
NAMES = {"beta1": "b1", "beta2": "b2", "eps": "eps"}


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE, inject)
    return Converted(arguments.alias("optax.yogi", NAMES, ("b1", "b2", "eps")))


OPTIMIZER = LegacyOptimizer("Yogi", SIGNATURE, {"m": "mu", "v": "nu"}, convert, module="yogi", counts=True)
'''

RULE = '''\
"""A definition of one kind that nobody is to touch."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.model import Refusal
from codemods.rules import rule
from codemods.rules.context import Context


@rule("FO199", "Adagrad stays.", "definition:Adagrad")
def adagrad(use: Use, context: Context) -> Refusal:
    """For a reason of its own."""
    return Refusal("FO199", "It stays.", "Leave it.")
'''

PROGRAM = dedent("""\
    import jax
    from flax import optim


    def train(params, batch):
        optimizer = optim.{name}(1e-3).create(params)
        for _ in range(9):
            optimizer = optimizer.apply_gradient(jax.grad(loss)(optimizer.target, batch))
        return optimizer
    """)

RUN = """
import json, sys
from codemods import Options, Source, migrate
from codemods.rules import catalogue
[result] = migrate([Source("train.py", sys.stdin.buffer.read())], Options(ignore=("FO706",)))
print(json.dumps([result.after.decode(), [[site.code, site.status] for site in result.sites], [*catalogue()]]))
"""


def migrated_with(
    path: str, module: str, name: str, folder: Path
) -> tuple[str, list[list[str]], list[str]]:
    """What becomes of the program with an optimizer, with a module added: the text, the sites, and the codes that there are."""
    package = folder / "codemods"
    shutil.copytree(
        Path(codemods.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / path).write_text(module)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = (
        [sys.executable, "-P", "-c", RUN]
        if sys.version_info >= (3, 11)
        else [sys.executable, "-c", RUN]
    )
    program = PROGRAM.format(name=name)
    done = subprocess.run(
        command,
        input=program,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=folder,
    )
    after, sites, codes = json.loads(done.stdout)
    return after, sites, codes


def test_an_optimizer_is_one_file(tmp_path: Path) -> None:
    """The class, its use as an optimizer, and all sites are known by one module alone."""
    after, sites, _ = migrated_with("optimizers/yogi.py", YOGI, "Yogi", tmp_path)
    assert "optax.yogi(1e-3)" in after
    assert "optim." not in after
    assert {status for _, status in sites} == {"rewritten"}


def test_a_rule_is_one_file(tmp_path: Path) -> None:
    """A rule for a kind of use is asked, and listed, once its module is there."""
    after, sites, codes = migrated_with("rules/adagrad.py", RULE, "Adagrad", tmp_path)
    assert after == PROGRAM.format(name="Adagrad")
    assert ["FO199", "unresolved"] in sites
    assert "FO199" in codes
