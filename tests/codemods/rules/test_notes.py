"""What is said of a use that is right, and yet may not do what its author thinks."""

import pytest

from codemods import Source, migrate
from tests.codemods.programs import result_of

HEAD = "from flax import optim\n\n"
TRAINING = (
    HEAD
    + """\
def train(params, grads):
    optimizer = optim.Momentum(0.1, 0.9).create(params)
    for grad in grads:
        {0}
    return optimizer.target
"""
)
GROUPS = (
    HEAD
    + """\
def create(params):
    biases = optim.ModelParamTraversal(lambda path, _: "bias" in path)
    kernels = optim.ModelParamTraversal(lambda path, _: "bias" not in path)
    return optim.MultiOptimizer(
        (biases, optim.Adam({0})), (kernels, optim.Adam(0.1))
    ).create(params)
"""
)
ALONE = HEAD + "def create(params):\n    return optim.Adam({0}).create(params)\n"


def notes(program: str) -> list[tuple[int, str]]:
    [result] = migrate([Source("train.py", program.encode())])
    assert result.changed
    return [
        (site.line, site.note.partition(".")[0]) for site in result.sites if site.note
    ]


DROPPED = {
    "optimizer = optimizer.apply_gradient(grad)": False,
    "x = optimizer.apply_gradient(grad); optimizer = x": False,
    "optimizer.replace(target=params).target['x']": False,
    "print(optimizer.replace(target=params))": False,
    "optimizer.apply_gradient(grad)": True,
    "optimizer.replace(target=params)": True,
}


@pytest.mark.parametrize(("statement", "dropped"), DROPPED.items(), ids=DROPPED)
def test_a_dropped_result(statement: str, dropped: bool) -> None:
    told = [(6, "The result is dropped")] * dropped
    assert notes(TRAINING.format(statement)) == told


@pytest.mark.parametrize("rate", ["0.1", "rate", "1 - 1"])
def test_a_group_that_may_move(rate: str) -> None:
    assert notes(GROUPS.format(rate)) == []


@pytest.mark.parametrize("rate", ["0", "0.0", "learning_rate=0."])
def test_a_group_that_stays_as_it_is(rate: str) -> None:
    [(line, note)] = notes(GROUPS.format(rate))
    assert (line, note[:33]) == (7, "These parameters stay as they are")
    assert notes(ALONE.format(rate)) == []


def test_where_gradients_are_averaged() -> None:
    program = f"""import jax
{HEAD}
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)


def train(params, grads):
    optimizer = step(optim.Momentum(0.1).create(params), grads)
    return jax.pmap(step, axis_name="batch")(optimizer.replicate(), grads)
"""
    [(line, note)] = notes(program)
    assert line == 6
    assert note.startswith("The gradients are averaged over the devices here")


@pytest.mark.parametrize(("name", "is_open"), [("name", True), ('"Adam"', False)])
def test_a_table_has_the_names_of_the_project_alone(name: str, is_open: bool) -> None:
    result = result_of(
        f'{HEAD}def create(params, name="Adam"):\n'
        f"    return getattr(optim, {name})(0.1).create(params)\n"
    )
    assert {site.status for site in result.sites} == {"rewritten"}
    notes = [site for site in result.sites if "no others" in (site.note or "")]
    assert len(notes) == is_open
