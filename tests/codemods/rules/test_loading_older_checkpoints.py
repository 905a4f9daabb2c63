"""With `--old-checkpoints`, a program goes on from what it stored before it was migrated. First, what it must not load."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import jax
import numpy as np
import pytest

from codemods import Options
from codemods.model import Form
from tests.codemods.programs import result_of
from tests.codemods.running import outcome
from tests.thinned import thinned

TOLERANCE = 1e-11
"""The error of each leaf, in relation to its largest value, or to a thousandth if that is less."""

PROGRAM = """
from typing import Any

import flax
import jax
import jax.numpy as jnp
from flax import jax_utils, optim, serialization, struct
from flax.core import freeze
from flax.training import checkpoints

DIRECTORY = {directory!r}

{around}

def schedule(step):
    return 0.1 / (1.0 + step)


def restored(target):
    return checkpoints.restore_checkpoint(DIRECTORY, target)


def store(target):
    {store}


def run(params, gradients):
    before = {create}
    state = restored(before)
    for grads in gradients:
        state = step(state, grads)
    store(state)
    return {outcome}
"""
PLAIN = """with open(DIRECTORY + "/checkpoint_4", "wb") as file:
        file.write(serialization.to_bytes(target))"""
BY_ORBAX = """flax.config.update("flax_use_orbax_checkpointing", True)
    checkpoints.save_checkpoint(DIRECTORY, target, 4, overwrite=True)"""
ALONE = """
def create(params):
    return {definition}.create(params)


def step(optimizer, grads):
    return {step}
"""
STEP = "optimizer.apply_gradient(grads)"
OUTCOME = "[state.target, state.state.step]"


def alone(definition: str, step: str = STEP) -> dict[str, str]:
    """The parts of a program with one optimizer."""
    return {
        "around": ALONE.format(definition=definition, step=step),
        "create": "create(params)",
        "outcome": OUTCOME,
    }


def around(code: str, create: str, outcome: str) -> dict[str, str]:
    """The parts of a program with something around an optimizer."""
    return {"around": dedent(code), "create": create, "outcome": outcome}


OPTIMIZERS = {
    "AdaBelief": alone("optim.AdaBelief(0.1, beta1=0.8, weight_decay=0.01)"),
    "Adadelta": alone("optim.Adadelta(1.0, rho=0.8, weight_decay=0.01)"),
    "Adagrad": alone("optim.Adagrad(0.1)"),
    "Adam": alone("optim.Adam(0.1, beta1=0.8, beta2=0.99)"),
    "Adam with decay": alone("optim.Adam(0.1, weight_decay=0.01)"),
    "GradientDescent": alone("optim.GradientDescent(0.1)"),
    "LAMB": alone("optim.LAMB(0.1, weight_decay=0.01)"),
    "Momentum": alone("optim.Momentum(0.1, beta=0.8)"),
    "Momentum that looks ahead": alone(
        "optim.Momentum(0.1, weight_decay=0.01, nesterov=True)"
    ),
    "RMSProp": alone("optim.RMSProp(0.1)"),
    "RMSProp, centered": alone("optim.RMSProp(0.1, beta2=0.8, centered=True)"),
}
FORMS = {
    "a schedule": alone(
        "optim.Adam(0.1)",
        "optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))",
    ),
    "a rate that is injected": alone(
        "optim.Momentum()",
        "optimizer.apply_gradient(grads, learning_rate=jnp.max(grads['w']) * 0.1)",
    ),
    "an array as the step": alone("optim.Adam(0.1)").copy()
    | {"outcome": "[state.target, state.state.step.astype(jnp.float32)]"},
    "gradients that are clipped": around(
        """
        def create(params):
            return optim.Adam(0.1).create(params)


        def step(optimizer, grads):
            norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree_util.tree_leaves(grads)))
            grads = jax.tree_util.tree_map(lambda leaf: leaf * jnp.minimum(1.0, 0.5 / norm), grads)
            return optimizer.apply_gradient(grads)
        """,
        "create(params)",
        OUTCOME,
    ),
    "parameters that are an array": around(
        """
        def create(params):
            return optim.Adam(0.1).create(params["w"])


        def step(optimizer, grads):
            return optimizer.apply_gradient(grads["w"])
        """,
        "create(params)",
        OUTCOME,
    ),
    "parameters that are frozen": around(
        """
        def create(params):
            return optim.Momentum(0.1).create(freeze({"dense": params, "empty": {}}))


        def step(optimizer, grads):
            return optimizer.apply_gradient(freeze({"dense": grads, "empty": {}}))
        """,
        "create(params)",
        OUTCOME,
    ),
    "copies": around(
        """
        def step(optimizer, grads):
            return jax.vmap(lambda old, new: old.apply_gradient(new))(optimizer, jax_utils.replicate(grads))
        """,
        "jax_utils.replicate(optim.Adam(0.1).create(params))",
        OUTCOME,
    ),
    "parameters that are called like parts of states": around(
        """
        def named(tree):
            return {"count": {"target": tree["w"]}, "mu": tree["b"], "step": [tree["b"] + 1.0, tree["w"]]}


        def create(params):
            return optim.Adam(0.1).create(named(params))


        def step(optimizer, grads):
            return optimizer.apply_gradient(named(grads))
        """,
        "create(params)",
        OUTCOME,
    ),
    "a tuple": around(
        """
        def step(state, grads):
            optimizer, epoch = state
            return optimizer.apply_gradient(grads), epoch + 1
        """,
        "(optim.Adam(0.1).create(params), 0)",
        "[state[0].target, state[0].state.step, state[1]]",
    ),
    "two in a dict": around(
        """
        def step(state, grads):
            return {
                "one": state["one"].apply_gradient(grads),
                "more": (state["more"][0].apply_gradient(grads), state["more"][1] * 0.5),
            }
        """,
        '{"one": optim.Adam(0.1).create(params), "more": (optim.Momentum(0.1).create(params), jnp.ones(3))}',
        '[state["one"].target, state["more"][0].target, state["more"][1]]',
    ),
    "a dataclass": around(
        """
        @struct.dataclass
        class State:
            optimizer: Any
            average: Any


        def step(state, grads):
            optimizer = state.optimizer.apply_gradient(grads)
            average = jax.tree_util.tree_map(lambda old, new: 0.9 * old + 0.1 * new, state.average, optimizer.target)
            return State(optimizer=optimizer, average=average)
        """,
        "State(optimizer=optim.Adam(0.1).create(params), average=params)",
        "[state.optimizer.target, state.average]",
    ),
    "a dataclass that becomes a train state": around(
        """
        @struct.dataclass
        class State:
            step: int
            optimizer: optim.Optimizer
            average: Any


        def step(state, grads):
            optimizer = state.optimizer.apply_gradient(grads)
            average = 0.9 * state.average + 0.1
            return state.replace(step=state.step + 1, optimizer=optimizer, average=average)
        """,
        "State(step=0, optimizer=optim.Adam(0.1).create(params), average=jnp.zeros(2))",
        "[state.optimizer.target, state.step, state.average]",
    ),
}
PROGRAMS = OPTIMIZERS | FORMS

Run = Callable[[dict[str, str]], Any]
HELPER = "restore_old_or_new(checkpoints.restore_checkpoint, DIRECTORY, target)"


@cache
def migrated(text: str, form: Form, wanted: bool) -> str:
    result = result_of(text, Options(form=form, old_checkpoints=wanted))
    assert {site.status for site in result.sites} == {"rewritten"}
    return result.after.decode()


class Runs:
    """Runs of one program, old and new, that store in the same folder."""

    def __init__(self, folder: Path, wheel: Path, form: Form = "alias") -> None:
        self.stored = folder / "runs"
        self.folder = folder
        self.wheel = wheel
        self.form = form
        self.store = PLAIN
        self.count = 0

    def old(self, parts: dict[str, str]) -> Any:
        return self._run(self._program(parts), self.wheel)

    def new(self, parts: dict[str, str], wanted: bool = True) -> Any:
        after = migrated(self._program(parts), self.form, wanted)
        assert (HELPER in after) == wanted
        return self._run(after, None)

    def _program(self, parts: dict[str, str]) -> str:
        return PROGRAM.format(directory=str(self.stored), store=self.store, **parts)

    def _run(self, text: str, wheel: Path | None) -> Any:
        self.count += 1
        return outcome({"main.py": text}, self.folder / str(self.count), wheel)


@pytest.fixture
def runs(tmp_path: Path, legacy_wheel: Path) -> Runs:
    found = Runs(tmp_path, legacy_wheel)
    found.stored.mkdir()
    return found


def assert_same(left: Any, right: Any) -> None:
    """Two outcomes are the same but for rounding, in relation to how far each leaf has moved."""
    for one, other in zip(
        jax.tree_util.tree_leaves(left), jax.tree_util.tree_leaves(right), strict=True
    ):
        scale = max(1e-3, float(np.max(np.abs(one))))
        np.testing.assert_allclose(other, one, rtol=0, atol=TOLERANCE * scale)


ADAM, MOMENTUM = OPTIMIZERS["Adam"], OPTIMIZERS["Momentum"]
WITHIN = PROGRAMS["a dataclass that becomes a train state"]
UNLIKE = {
    "another optimizer": (
        ADAM,
        MOMENTUM,
        "state/param_states/b/momentum is not in the checkpoint",
    ),
    "one that kept less": (
        OPTIMIZERS["GradientDescent"],
        ADAM,
        "state/param_states/b/grad_ema is not in the checkpoint",
    ),
    "one that kept more": (
        ADAM,
        OPTIMIZERS["GradientDescent"],
        "state/param_states/b/grad_ema of the checkpoint has no place in the state",
    ),
    "an average more": (
        OPTIMIZERS["RMSProp, centered"],
        OPTIMIZERS["RMSProp"],
        "state/param_states/b/mg of the checkpoint has no place in the state",
    ),
    "other parameters": (
        PROGRAMS["parameters that are an array"],
        ADAM,
        "target/w is not in the checkpoint",
    ),
    "parameters of another shape": (
        ADAM,
        ADAM | {"create": "create({**params, 'b': params['w']})"},
        r"target/b has the shape \(2,\), and in the state \(3, 2\)",
    ),
    "a number beside that is another one": (
        WITHIN | {"create": WITHIN["create"].replace("step=0", "step=3")},
        WITHIN,
        "The checkpoint has one step in the optimizer, and another beside it",
    ),
}


@pytest.mark.parametrize(("stored", "resumed", "problem"), UNLIKE.values(), ids=UNLIKE)
def test_what_does_not_fit_is_named(
    stored: dict[str, str], resumed: dict[str, str], problem: str, runs: Runs
) -> None:
    runs.old(stored)
    with pytest.raises(ValueError, match=problem):
        runs.new(resumed)


def test_without_the_option_it_does_not_load(runs: Runs) -> None:
    runs.old(ADAM)
    with pytest.raises(ValueError, match="Missing field"):
        runs.new(ADAM, wanted=False)


def test_a_file_of_something_else_is_the_error_that_it_was(runs: Runs) -> None:
    from flax import serialization

    (runs.stored / "checkpoint_4").write_bytes(
        serialization.to_bytes({"target": {"w": np.ones(2)}})
    )
    with pytest.raises(ValueError, match="Missing field"):
        runs.new(ADAM)


@pytest.mark.parametrize("parts", thinned(PROGRAMS, *FORMS, "Adam with decay"))
def test_new_checkpoints_load_as_they_did(parts: dict[str, str], runs: Runs) -> None:
    """The first run finds no checkpoint, and begins; the next ones go on from what it stored."""
    found = [runs.new(parts) for _ in range(2)]
    (runs.stored / "checkpoint_4").unlink()
    without = [runs.new(parts, wanted=False) for _ in range(2)]

    jax.tree_util.tree_map(np.testing.assert_array_equal, found, without)


def test_a_new_checkpoint_of_orbax_loads_as_it_did(runs: Runs) -> None:
    import flax

    before = flax.config.flax_use_orbax_checkpointing
    runs.store = BY_ORBAX
    try:
        found = [runs.new(ADAM)[1] for _ in range(2)]
    finally:
        flax.config.update("flax_use_orbax_checkpointing", before)

    assert (runs.stored / "checkpoint_4").is_dir()
    assert found == [4, 8]


def test_a_missing_folder_gives_the_target(runs: Runs) -> None:
    begin = ADAM | {
        "outcome": "[state.target, checkpoints.restore_checkpoint('none', before) is before]"
    }
    elsewhere = begin | {
        "create": "checkpoints.restore_checkpoint('nowhere', create(params))"
    }

    assert runs.new(elsewhere)[1]


GOING_ON = {
    f"{form}-{name}": (parts, form)
    for form in ("alias", "chain")
    for name, parts in PROGRAMS.items()
}
USUAL = (
    *(f"alias-{name}" for name in PROGRAMS),
    *(f"chain-{name}" for name in OPTIMIZERS),
    "chain-a dataclass that becomes a train state",
)
"""What is around an optimizer is the same in both forms."""


@pytest.mark.parametrize(("parts", "form"), thinned(GOING_ON, *USUAL))
def test_an_old_checkpoint_goes_on(
    parts: dict[str, str], form: Form, runs: Runs
) -> None:
    begun = runs.old(parts)
    stored = (runs.stored / "checkpoint_4").read_bytes()
    expected = runs.old(parts)
    after_old = (runs.stored / "checkpoint_4").read_bytes()
    assert after_old != stored
    (runs.stored / "checkpoint_4").write_bytes(stored)
    runs.form = form

    assert_same(expected, runs.new(parts))
    again = runs.new(parts)  # from what the new program has stored
    (runs.stored / "checkpoint_4").write_bytes(after_old)
    assert_same(runs.old(parts), again)
    assert not np.allclose(
        *(jax.tree_util.tree_leaves(one)[0] for one in (begun, expected))
    )
