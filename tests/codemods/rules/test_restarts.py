"""A program that sets the step of which it makes the learning rate trains as before."""

from pathlib import Path

import pytest

from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.codemods.programs import project, result_of
from tests.codemods.restarts import IN_STEP, OPTIMIZER_RESTARTS, RESTARTS
from tests.generated.properties import assert_alike, outcome

PROGRAMS = {
    f"{name} ({whose})": program
    for whose, programs in (
        ("a state", RESTARTS),
        ("an optimizer", OPTIMIZER_RESTARTS),
        ("in step", IN_STEP),
    )
    for name, program in programs.items()
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_trains_as_before(program: str, legacy_wheel: Path) -> None:
    after = result_of(program).after

    with legacy_flax(), precise():
        assert_alike(outcome(program.encode()), outcome(after))


@pytest.mark.parametrize("program", IN_STEP.values(), ids=IN_STEP)
def test_a_step_that_nothing_sets_apart_is_the_one_of_the_transformation(
    program: str,
) -> None:
    """Only an optimizer that gets other parameters keeps the class as it is."""
    after = result_of(program).after.decode()

    assert "optax.sgd(schedule, momentum=0.9" in after
    assert ("class State(train_state.TrainState)" in after) == (
        "replace(target=" not in program
    )


NEW = "State(0, optim.Momentum(0.1).create({}))"
UNSEEN = {
    "a function that nobody calls": "def reset(state):\n    return state.replace(step=0)",
    "a function of dataclasses": "def reset(state):\n    return dataclasses.replace(state, step=0)",
    "what a function sets": f"def reset(state):\n    object.__setattr__(state, 'step', 0)\n\nreset({NEW})",
    "what a function sets by name": "def reset(state):\n    setattr(state, 'step', 0)",
    "what a function sets plainly": "def reset(state):\n    state.step = 0",
    "fields that nobody knows": "def reset(state, **fields):\n    return state.replace(**fields)",
    "what a function sets in something unknown": "def reset(state):\n    object.__setattr__(state, 'step', 0)",
    "a partial application": f"def reset(state):\n    return functools.partial(state.replace, step=0)()\n\nreset({NEW})",
    "a partial application in something unknown": "def reset(state):\n    return functools.partial(state.replace, step=0)",
    "its variables": f"def reset(state):\n    vars(state)['step'] = 0\n\nreset({NEW})",
    "a file that is run": f"import runpy\n\ndef reset(state):\n    runpy.run_path('x.py', dict(state=state))\n\nreset({NEW})",
    "an absent package": f"def reset(state):\n    from absent import fresh\n\n    return fresh({NEW})",
}


@pytest.mark.parametrize("more", UNSEEN.values(), ids=UNSEEN)
def test_what_other_code_may_do_with_a_state_keeps_its_own_step(more: str) -> None:
    program = IN_STEP["as it is"]
    result = result_of(f"{program}\n\n{more}\n")

    assert "class State:" in result.after.decode()
    assert any("does not always count" in site.note for site in result.sites)


@pytest.mark.parametrize("small", [0, 1_000_000])
def test_a_file_of_the_same_program_may_set_the_step(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codemods.sources.relevance.SMALL", small)
    program = IN_STEP["as it is"]
    restart = "import train\n\ndef reset(state):\n    return state.replace(step=0)\n"
    other = "def reset(state):\n    return state.replace(step=0)\n"

    for more, kept in ((restart, True), (other, False)):
        results = project({"train": program, "more": more})
        assert (b"class State:" in results["train"].after) == kept
