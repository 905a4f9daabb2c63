"""What a constructor without a learning rate gets where steps set it: 0.0, and a word about it."""

from pathlib import Path

import pytest

from codemods import FileResult
from tests.codemods.programs import result_of
from tests.codemods.running import assert_alike, outcome

COMMENT = "# 0.0 is a placeholder: each step has to set the learning rate."
STEP = """

def step(optimizer, grads, rate=0.5):
    return optimizer.apply_gradient(grads, learning_rate={})
"""
MAKE = """

def make(params):
    return optim.Momentum(beta=0.5).create(params)
"""
RUN = """

def run(params, gradients):
    optimizer = make(params)
    for grads in gradients:
        optimizer = step(optimizer, grads)
    return optimizer.target
"""
MADE = {
    "several numbers": f"{MAKE}{STEP.format('0.5')}{STEP.format('0.25').replace('step', 'other')}",
    "a parameter": f"{MAKE}{STEP.format('rate')}",
    "a constant of the file": f"RATE = 0.25\n{MAKE}{STEP.format('RATE')}",
    "what no step tells": MAKE,
}


def run(program: str) -> FileResult:
    result = result_of(program)
    assert {site.status for site in result.sites} == {"rewritten"}
    return result


@pytest.mark.parametrize("program", MADE.values(), ids=MADE)
def test_a_placeholder_is_told(program: str) -> None:
    result = run(program)
    lines = result.after.decode().splitlines()
    assert "(learning_rate=0.0)" in result.after.decode()
    below = lines[lines.index(f"    {COMMENT}") + 1]
    assert below.startswith("    return train_state.TrainState.create(")
    assert not any("placeholder" in site.note for site in result.sites)


def test_several_placeholders_of_a_file_have_one_comment() -> None:
    branches = """
def choose(params, name):
    if name == "momentum":
        return optim.Momentum(beta=0.5).create(params)
    return optim.Adam().create(params)
"""
    after = run(f"{branches}{MAKE}{STEP.format('rate')}").after.decode()
    assert after.count("learning_rate=0.0") == 3
    assert after.count(COMMENT) == 1
    assert after.index(COMMENT) < after.index("optax.trace")


def test_where_no_comment_has_room_it_is_noted() -> None:
    start = "def start(params, tx=optim.Momentum(beta=0.5)):\n    return tx.create(params)\n"
    result = run(f"{start}{STEP.format('rate')}")
    assert COMMENT not in result.after.decode()
    [note] = [site.note for site in result.sites if site.code == "FO102"]
    assert f"# {note}" == COMMENT


def test_a_rate_of_zero_that_is_given_is_no_placeholder() -> None:
    program = f"{MAKE.replace('beta', 'learning_rate=0.0, beta')}{STEP.format('rate')}"
    assert COMMENT not in run(program).after.decode()


def test_it_trains_as_before(tmp_path: Path, legacy_wheel: Path) -> None:
    program = f"{MADE['a constant of the file']}{RUN}"
    after = {"main.py": run(program).after.decode()}
    before = {"main.py": f"from flax import optim\n\n{program}"}
    old = outcome(before, tmp_path / "old", legacy_wheel)
    assert_alike(old, outcome(after, tmp_path / "new"))
