"""Inference ends, however long a chain is, and its cost grows with the question alone."""

import ast

import pytest

from codemods.analysis.flax_optim import FlaxOptim
from codemods.inference.engine import Inference
from codemods.inference.objects import External, Place
from codemods.inference.solver import Equation, Solver, whole
from codemods.sources.modules import Project, Unit
from tests.codemods.inference.asking import receiver, shown

LONG = 2_000
MOST = 20
"""So many evaluations an element of a chain may take."""

SAME = "def same(optimizer):\n    return optimizer\n\n"


def chain(text: str, count: int = LONG) -> str:
    return "".join(text.format(i=i, before=i - 1) for i in range(1, count))


STEP = "value = value.apply_gradient(grads)\n"
FUNCTIONS = chain("def step_{i}(x):\n    return step_{before}(x)\n")
CLASSES = chain("class Trainer_{i}(Trainer_{before}):\n    pass\n", 1_000)
LAST = f"value_{LONG - 1}"
CHAINS = {
    "assignments": chain("value_{i} = value_{before}\n"),
    "steps": chain("value_{i} = value_{before}.apply_gradient(grads)\n"),
    "calls of a helper": SAME + chain("value_{i} = same(value_{before})\n"),
    "functions that call each other": f"def step_0(x):\n    return x\n{FUNCTIONS}{LAST} = step_1999(value_0)\n",
    "one name": f"value = value_0\n{STEP * LONG}{LAST} = value\n",
    "calls within calls": f"{LAST} = value_0{'.apply_gradient(g)' * 900}\n",
    "classes": f"class Trainer_0:\n    optimizer = value_0\n{CLASSES}{LAST} = Trainer_999().optimizer\n",
}


def asked(text: str) -> tuple[str, int]:
    """What the last line of a program reads of, and the evaluations that it took."""
    code = f"from flax import optim\nvalue_0 = optim.Adam().create(params)  # makes: made\n{text}"
    unit = Unit("train.py", code, ast.parse(code))
    engine = Inference(Project([unit], {}), FlaxOptim())
    node = receiver(unit, len(code.splitlines()))
    answer = shown(engine.solver.at(("expression", node, None)))
    return answer, engine.solver.evaluations


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS.keys())
def test_a_long_chain_has_an_end(text: str) -> None:
    answer, evaluations = asked(f"{text}{LAST}.target\n")

    assert answer == "made"
    assert evaluations < LONG * MOST


def test_code_that_is_not_asked_about_costs_nothing() -> None:
    """One question takes as much with a thousand functions around as with none."""
    other = "def other_{i}(optimizer):\n    return other_{before}(optimizer)\n"
    beside = chain(other, 1_000)
    question = "value_0.apply_gradient(grads).target\n"

    assert asked(beside + question) == asked(question)


def test_a_question_is_answered_once() -> None:
    code = "from flax import optim\nmade = optim.Adam().create(params)\nmade.target\n"
    unit = Unit("train.py", code, ast.parse(code))
    solver = Inference(Project([unit], {}), FlaxOptim()).solver
    place = ("expression", receiver(unit, 3), None)
    first, evaluations = solver.at(place), solver.evaluations

    assert solver.at(place) == first
    assert solver.evaluations == evaluations


def test_a_call_with_arguments_that_a_method_does_not_take_costs_nothing() -> None:
    question = """
class Store:
    def get(self, optimizer):
        return optimizer

    @classmethod
    def put(cls, optimizer):
        return optimizer

Store().get(value_0)
Store.put(value_0).target
"""
    calls = "made_{i}.get(1, 2)\nmade_{i}.put(1, 2)\n"
    beside = chain("made_{i} = make(made_{before})\n" + calls, 100)

    assert asked(beside + question) == asked(question)


def test_what_is_new_is_handed_on_without_another_evaluation() -> None:
    def copy(source: Place) -> Equation:
        yield whole(source)
        return ()

    copies = {("second",): ("first",), ("third",): ("second",), ("first",): ("third",)}
    solver = Solver(
        lambda place: copy(copies[place]) if place in copies else None,
        same=lambda _: None,
    )
    objects = [External("jax.jit"), External("jax.vmap")]
    for number, item in enumerate(objects):
        solver.add(("second",), item)
        assert solver.at(("third",)) == (*objects[: number + 1],)

    assert solver.at(("first",)) == (*objects,)
    assert solver.evaluations == 3
