"""Programs whose steps set the learning rate, of what stands where in them."""

import re
from textwrap import dedent, indent

from tests.codemods.programs import before_and_after

RATE = "schedule(optimizer.state.step)"
COUNTED = """
import dataclasses
import typing
import flax
import jax
from flax import optim

@flax.struct.dataclass
class TrainState:
    step: int
    optimizer: typing.Any
    model_state: typing.Any

def train_step(state, grad, schedule):
    optimizer = state.optimizer.apply_gradient(grad, learning_rate=schedule(state.step))
    return state.replace(step=state.step + 1, optimizer=optimizer)

def train(params, grads, schedule, extra):
    state = TrainState(step=0, optimizer=optim.Adam(1e-3).create(params), model_state=extra)
    for grad in grads:
        state = train_step(state, grad, schedule)
    return state
"""


def alone(
    rate: str = RATE,
    args: str = "schedule",
    made: str = "optim.Momentum(0.1).create(params)",
    above: str = "",
    ahead: str = "",
    behind: str = "",
    first: str = "",
    then: str = "",
    loop: str = "optimizer = optimizer.apply_gradient(grad, learning_rate={})",
) -> str:
    """A program in which one function makes the optimizer and takes the steps.

    More stands above the function, ahead of the optimizer and behind it, and in the loop ahead of
    the step and behind it.
    """
    signature = ", ".join(filter(None, ("params", "grads", args)))
    lines = "\n".join(map(dedent, (first, loop.format(rate), then)))
    return (
        f"import jax\nfrom flax import optim\n{dedent(above)}\n"
        f"def train({signature}):\n{_inside(ahead)}    optimizer = {made}\n"
        f"{_inside(behind)}    for grad in grads:\n{_inside(lines, 8)}    return optimizer\n"
    )


def _inside(lines: str, spaces: int = 4) -> str:
    return indent(dedent(lines).strip("\n"), " " * spaces) + "\n" if lines else ""


def legacy(text: str) -> str:
    """The program of a row of a table: whole, or what stands where in `alone`, or what differs from `COUNTED`."""
    if re.match("import |from ", text):
        return text
    if text.startswith("- "):
        program = COUNTED
        for before, after in map(before_and_after, text.split("\n\n")):
            assert program.count(before) == 1
            program = program.replace(before, after)
        return program
    found = re.findall(r"^(\w+):(?: (.*)|((?:\n(?:    .*)?)+)|)$", text, re.MULTILINE)
    places = {place: line or lines for place, line, lines in found}
    if "\n" in places.get("above", ""):
        places["above"] += "\n"
    return alone(**places)
