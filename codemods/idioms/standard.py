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


class Invalid(Exception):  # noqa: N818 - these numbers say nothing
    """Parameters that a schedule cannot have."""


@dataclass(frozen=True)
class Family:
    """A schedule of optax: its name, its parameters, what else is said in its call, and what it computes."""

    name: str
    parameters: tuple[str, ...]
    compute: Schedule
    more: tuple[tuple[str, bool], ...] = ()


FAMILIES = (
    Family("linear_schedule", ("init_value", "end_value", "transition_steps"), _linear),
    Family("exponential_decay", ("init_value", "transition_steps", "decay_rate"), _exponential),
    Family("exponential_decay", ("init_value", "transition_steps", "decay_rate"), _staircase, (("staircase", True),)),
    Family("cosine_decay_schedule", ("init_value", "decay_steps"), _cosine),
    Family("polynomial_schedule", ("init_value", "end_value", "power", "transition_steps"), _polynomial),
    Family("warmup_cosine_decay_schedule", ("init_value", "peak_value", "warmup_steps", "decay_steps"), _warmup_cosine),
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
    try:
        wanted = [_computed(body, count, terms, draw, facts) for draw in range(DRAWS)]
    except Unevaluable:
        return None
    if all(row == [row[0]] * len(row) for row in wanted):
        return None
    constants: list[ast.expr] = [ast.Constant(0.0), ast.Constant(1), ast.Constant(1.0)]
    given = {ast.unparse(term): term for term in [*terms, *constants]}
    numbers = [{text: _number(term, draw, facts) for text, term in given.items()} for draw in range(DRAWS)]
    for family in FAMILIES:
        for chosen in itertools.product(given, repeat=len(family.parameters)):
            if _fits(family, chosen, wanted, numbers):
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


def _computed(body: ast.expr, count: Count, terms: Sequence[ast.expr], draw: int, facts: Facts) -> list[float]:
    numbers = {ast.unparse(term): _number(term, draw, facts) for term in terms}

    def at(step: int) -> float:
        def known(part: ast.expr) -> float | None:
            ahead = count(part)
            if ahead is not None:
                return float(step + ahead)
            return numbers.get(ast.unparse(part))

        return evaluate(body, known, facts)

    return [at(step) for step in STEPS]


def _fits(
    family: Family,
    chosen: Sequence[str],
    wanted: Sequence[Sequence[float]],
    numbers: Sequence[Mapping[str, float]],
) -> bool:
    valid = 0
    for row, values in zip(wanted, numbers, strict=True):
        given = [values[text] for text in chosen]
        try:
            if not all(_same(family.compute(step, *given), value) for step, value in zip(STEPS, row, strict=True)):
                return False
            valid += 1
        except (Invalid, ZeroDivisionError, OverflowError, ValueError, TypeError):
            continue
    return valid >= DRAWS // 3


def _same(left: float, right: float) -> bool:
    return (
        left == right
        or (math.isnan(left) and math.isnan(right))
        or abs(left - right) <= PRECISION * max(1.0, abs(left), abs(right))
    )


def _call(family: Family, arguments: Sequence[ast.expr]) -> ast.Call:
    function = ast.parse(f"optax.{family.name}", mode="eval").body
    (_, first), *rest = zip(family.parameters, arguments, strict=True)
    words = [ast.keyword(name, value) for name, value in rest]
    words += [ast.keyword(name, ast.Constant(value)) for name, value in family.more]
    return ast.Call(function, [first], words)
