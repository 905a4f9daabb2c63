"""Schedules written by hand that are one of optax's, for every step that is tried, to the end and beyond."""

from __future__ import annotations

import ast
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codemods.facts import Facts
from codemods.idioms.arithmetic import Unevaluable, evaluate, power

Count = Callable[[ast.expr], "int | None"]
"""By how much an expression is larger than the step; None if it is no step."""

Schedule = Callable[..., float]
STEPS = (*range(45), 60, 99, 100, 101, 500, 1_000, 10_000)
VALUES = (0.37, 0.81, 3.0, 7.0, 12.0, 23.0, 41.0)
DRAWS = 6
"""How often the unknown numbers of a schedule are drawn."""

LATEST = 10_000_000
"""The last step at which a schedule may turn."""

MOST_TERMS = 9
PRECISION = 1e-9


def _linear(step: float, init: float, end: float, transition: float) -> float:
    return end + (init - end) * (1 - min(max(step, 0.0), transition) / transition)


def _polynomial(step: float, init: float, end: float, exponent: float, transition: float) -> float:
    return (init - end) * power(1 - min(max(step, 0.0), transition) / transition, exponent) + end


def _exponential(step: float, init: float, transition: float, rate: float) -> float:
    return init * power(rate, step / transition)


def _staircase(step: float, init: float, transition: float, rate: float) -> float:
    return init * power(rate, math.floor(step / transition))


def _cosine(step: float, init: float, decay: float) -> float:
    return init * 0.5 * (1 + math.cos(math.pi * min(step, decay) / decay))


def _warmup_cosine(step: float, init: float, peak: float, warmup: float, decay: float) -> float:
    if decay <= warmup:
        raise Invalid
    return _linear(step, init, peak, warmup) if step < warmup else _cosine(step - warmup, peak, decay - warmup)


def _warmup_exponential(step: float, init: float, peak: float, warmup: float, transition: float, rate: float) -> float:
    return _linear(step, init, peak, warmup) if step < warmup else _exponential(step - warmup, peak, transition, rate)


def _warmup_linear(step: float, init: float, peak: float, warmup: float, end: float, transition: float) -> float:
    return _linear(step, init, peak, warmup) if step < warmup else _linear(step - warmup, peak, end, transition)


def _two_constants(step: float, first: float, boundary: float, second: float) -> float:
    return first if step < boundary else second


def _three_constants(step: float, first: float, boundary: float, second: float, other: float, third: float) -> float:
    if other <= boundary:
        raise Invalid
    return first if step < boundary else second if step < other else third


class Invalid(Exception):  # noqa: N818 - these numbers say nothing
    """Parameters that a schedule cannot have."""


@dataclass(frozen=True)
class Family:
    """A schedule of optax: its name, its parameters, what it computes, and what else is said in its call.

    The first parameter is the value at the first step. One that is `joined` of others has the source text of these, in which the
    parameters are names.
    """

    name: str
    parameters: tuple[str, ...]
    compute: Schedule
    more: tuple[tuple[str, bool], ...] = ()
    joined: str = ""


FAMILIES = (
    Family("linear_schedule", ("init_value", "end_value", "transition_steps"), _linear),
    Family("exponential_decay", ("init_value", "transition_steps", "decay_rate"), _exponential),
    Family("exponential_decay", ("init_value", "transition_steps", "decay_rate"), _staircase, (("staircase", True),)),
    Family("cosine_decay_schedule", ("init_value", "decay_steps"), _cosine),
    Family("polynomial_schedule", ("init_value", "end_value", "power", "transition_steps"), _polynomial),
    Family("warmup_cosine_decay_schedule", ("init_value", "peak_value", "warmup_steps", "decay_steps"), _warmup_cosine),
    Family(
        "join_schedules",
        ("first", "boundary_steps", "second"),
        _two_constants,
        joined="[optax.constant_schedule(first), optax.constant_schedule(second)], [boundary_steps]",
    ),
    Family(
        "warmup_exponential_decay_schedule",
        ("init_value", "peak_value", "warmup_steps", "transition_steps", "decay_rate"),
        _warmup_exponential,
    ),
    Family(
        "join_schedules",
        ("init", "peak", "warmup_steps", "end", "decay_steps"),
        _warmup_linear,
        joined="[optax.linear_schedule(init, peak, warmup_steps), optax.linear_schedule(peak, end, decay_steps)], "
        "[warmup_steps]",
    ),
    Family(
        "join_schedules",
        ("first", "boundary_steps", "second", "other_steps", "third"),
        _three_constants,
        joined="[optax.constant_schedule(first), optax.constant_schedule(second), optax.constant_schedule(third)], "
        "[boundary_steps, other_steps]",
    ),
)


def standard(body: ast.expr, count: Count, facts: Facts) -> ast.Call | None:
    """The call of optax that makes the schedule which an expression computes; None if there is none.

    Args:
      body: an expression of the step.
      count: tells what in it is the step.
      facts: of the project.
    """
    terms = list(_terms(body, count))
    if len(terms) > MOST_TERMS:
        return None
    constants: list[ast.expr] = [ast.Constant(0.0), ast.Constant(1), ast.Constant(1.0)]
    given = {ast.unparse(term): term for term in [*terms, *constants]}
    numbers = [{text: _number(term, draw, facts) for text, term in given.items()} for draw in range(DRAWS)]
    steps = _steps([value for values in numbers for value in values.values()])
    try:
        wanted = [_computed(body, count, terms, steps, draw, facts) for draw in range(DRAWS)]
    except Unevaluable:
        return None
    if all(row == [row[0]] * len(row) for row in wanted):
        return None
    first = [text for text in given if _begins(text, wanted, numbers)]
    for family in FAMILIES:
        for chosen in itertools.product(first, *[given] * (len(family.parameters) - 1)):
            if _fits(family, chosen, steps, wanted, numbers):
                return _call(family, [given[text] for text in chosen])
    return None


def _terms(node: ast.expr, count: Count) -> Iterator[ast.expr]:
    """The parts of an expression in which there is no step, the whole before its parts."""
    seen: set[str] = set()
    pending = [node]
    while pending:
        part = pending.pop(0)
        if count(part) is not None:
            continue
        if not any(count(inner) is not None for inner in ast.walk(part) if isinstance(inner, ast.expr)):
            if ast.unparse(part) not in seen:
                seen.add(ast.unparse(part))
                yield part
            if not isinstance(part, ast.BinOp):
                continue
        children = [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
        if isinstance(part, ast.Call):
            children = [*part.args, *(word.value for word in part.keywords)]
        pending += children


def _number(node: ast.expr, draw: int, facts: Facts) -> float:
    """The value of a term: what it says if it is made of numbers, else one that is drawn for each name."""

    def known(part: ast.expr) -> float | None:
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript) and not facts.full_name(part):
            return random.Random(f"{draw} {ast.unparse(part)}").choice(VALUES)
        return None

    try:
        return evaluate(node, known, facts)
    except Unevaluable:
        return random.Random(f"{draw} {ast.unparse(node)}").choice(VALUES)


def _steps(values: Sequence[float]) -> list[int]:
    """The steps to try: those around each number that a schedule may turn at, alone or behind another, and some between."""
    turns = {int(value) for value in values if 1 <= value <= LATEST}
    turns |= {first + second for first in turns for second in turns}
    near = sorted({*STEPS, *(max(0, turn + ahead) for turn in turns for ahead in (-1, 0, 1))})
    return sorted({*near, *((first + second) // 2 for first, second in itertools.pairwise(near))})


def _computed(
    body: ast.expr, count: Count, terms: Sequence[ast.expr], steps: Sequence[int], draw: int, facts: Facts
) -> list[float]:
    numbers = {ast.unparse(term): _number(term, draw, facts) for term in terms}

    def at(step: int) -> float:
        def known(part: ast.expr) -> float | None:
            ahead = count(part)
            if ahead is not None:
                return float(step + ahead)
            return numbers.get(ast.unparse(part))

        return evaluate(body, known, facts)

    return [at(step) for step in steps]


def _begins(text: str, wanted: Sequence[Sequence[float]], numbers: Sequence[Mapping[str, float]]) -> bool:
    """Whether a term is what the schedule is at the first step."""
    return any(_same(values[text], row[0]) for row, values in zip(wanted, numbers, strict=True))


def _fits(
    family: Family,
    chosen: Sequence[str],
    steps: Sequence[int],
    wanted: Sequence[Sequence[float]],
    numbers: Sequence[Mapping[str, float]],
) -> bool:
    valid = 0
    for row, values in zip(wanted, numbers, strict=True):
        given = [values[text] for text in chosen]
        try:
            if not all(_same(family.compute(step, *given), value) for step, value in zip(steps, row, strict=True)):
                return False
            valid += any(value != row[0] for value in row)  # a constant tells nothing of a schedule
        except (Invalid, ZeroDivisionError, OverflowError, ValueError, TypeError):
            continue
    return valid >= DRAWS // 3


def _same(left: float, right: float) -> bool:
    if left == right or (math.isnan(left) and math.isnan(right)):
        return True
    finite = math.isfinite(left) and math.isfinite(right)
    return finite and abs(left - right) <= PRECISION * max(1.0, abs(left), abs(right))


def _call(family: Family, arguments: Sequence[ast.expr]) -> ast.Call:
    if family.joined:
        given = _Given(dict(zip(family.parameters, arguments, strict=True)))
        call = given.visit(ast.parse(f"optax.{family.name}({family.joined})", mode="eval").body)
        assert isinstance(call, ast.Call)
        return call
    function = ast.parse(f"optax.{family.name}", mode="eval").body
    (_, first), *rest = zip(family.parameters, arguments, strict=True)
    words = [ast.keyword(name, value) for name, value in rest]
    words += [ast.keyword(name, ast.Constant(value)) for name, value in family.more]
    return ast.Call(function, [first], words)


class _Given(ast.NodeTransformer):
    """Puts arguments in the place of parameters."""

    def __init__(self, arguments: Mapping[str, ast.expr]) -> None:
        self.arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.arguments.get(node.id, node)
