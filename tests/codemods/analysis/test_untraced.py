"""Where what is used as an optimizer comes from an object of the program in a way that is not followed, the line is told.

First, what is not told: what nothing of the program gives.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from codemods import Source, migrate
from tests.codemods.programs import result_of

PROGRAM = """
    import sys
    import jax
    from flax import optim

    def make(params):
        return optim.Adam(0.1).create(params)

    class Box:
        def __init__(self, value=None):
            self.value = value

        def __iadd__(self, other):
            self.held = other
            return self

        def __invert__(self):
            return self.value

        def __setitem__(self, key, value):
            setattr(self, "_" + key, value)

        def __class_getitem__(cls, value):
            return value

    current = None

    {functions}

    def train(params, grads, batch, scores):
        optimizer = make(params).apply_gradient(grads)
        {body}
    """

NOT_TOLD = {
    "a parameter of unknown callers": ("return batch.target", ""),
    "an element of one": ("return batch[0].target", ""),
    "given by a package": ("return scores.read(batch).state", ""),
    "another attribute": ("return getattr(Box(optimizer), 'val' + 'ue').loss", ""),
    "made by a package of a class": ("return scores.Machine(states=Box).state", ""),
    "negated, and that is all": ("return not Box(optimizer)", ""),
}
TOLD = {
    "a name that is computed": ("box = Box(); box.more = optimizer; return getattr(box, 'mo' + 're').optimize(scores)", ""),
    "a variable that is set by its name": ("return current.optimize(scores)", ""),
    "an operator": ("return ~Box(optimizer)", ""),
    "an assignment by an operator": ("box = Box(); box += optimizer", ""),
    "an item of a class of the program": ("Box()['value'] = optimizer", ""),
    "an item of a class": ("return Box[optimizer].optimize(scores)", ""),
    "a variable of a module": ("setattr(sys.modules[__name__], 'current', optimizer)", ""),
    "a variable of this module": ("globals()['current'] = optimizer", ""),
    "a default of a function": ("make.__defaults__ = (optimizer,)", ""),
}  # fmt: skip


def told(body: str, functions: str) -> list[tuple[int, str]]:
    code = dedent(PROGRAM.format(body=body, functions=functions)).strip()
    [result] = migrate([Source("train.py", code.encode())])
    assert "params=params, tx=optax.adam(0.1)" in result.after.decode()
    return [(hint.line, hint.code) for hint in result.hints]


@pytest.mark.parametrize(("body", "functions"), NOT_TOLD.values(), ids=NOT_TOLD)
def test_what_is_not_told(body: str, functions: str) -> None:
    assert told(body, functions) == []


@pytest.mark.parametrize(("body", "functions"), TOLD.values(), ids=TOLD)
def test_what_is_told_with_its_line(body: str, functions: str) -> None:
    last = 31 + functions.count("\n")
    assert told(body, functions) == [(last, "FO932")]


RATES = {
    "by what is made elsewhere": ("makers['adam']", True),
    "by what is made here": ("MAKERS['adam']", False),
}


@pytest.mark.parametrize(("made", "is_told"), RATES.values(), ids=RATES)
def test_a_rate_in_a_state_that_may_have_none(made: str, is_told: bool) -> None:
    code = f"""
        MAKERS = {{"adam": optim.Adam(0.1)}}

        def train(makers, params, grads, rate):
            optimizer = {made}.create(params)
            return optimizer.apply_gradient(grads, learning_rate=rate)
        """
    result = result_of(code)
    lines = [(hint.line, hint.code) for hint in result.hints]
    assert lines == ([(7, "FO932")] if is_told else [])
