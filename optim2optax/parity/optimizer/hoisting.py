"""The numbers of a traced function as its arguments, so that functions of one form are one program.

Two Adams with other learning rates and betas are traced to the same operations on other numbers.
Where these are arguments, one executable serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from optim2optax.parity.judging.leaves import PyTree
from optim2optax.parity.optimizer.forms import (
    SCAN,
    Number,
    entered,
    form_of,
    literals,
    number_of,
)


@dataclass(frozen=True)
class Hoisted:
    """A function of numbers, constants and leaves, with the numbers and constants to give it.

    `results` is the structure of the tree of its results. Functions of the same `form` are the
    same. If it is None, that is not known.
    """

    function: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], list[Any]]
    numbers: list[Any]
    constants: list[Any]
    results: Any
    form: Hashable | None


def hoisted(function: Callable[..., PyTree], *arguments: PyTree) -> Hoisted:
    """Trace a function, and make arguments of its floating-point literals and its constants."""
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    found: dict[Number, Literal] = {}
    for literal in literals(closed.jaxpr):
        number = number_of(literal)
        if number is not None:
            found[number] = literal

    def of_numbers(
        numbers: Sequence[Any], constants: Sequence[Any], leaves: Sequence[Any]
    ) -> list[Any]:
        by_literal = dict(zip(found, numbers, strict=True))
        return _run(closed.jaxpr, constants, leaves, by_literal)

    numbers = [jnp.asarray(literal.val, dtype) for (dtype, _), literal in found.items()]
    places = {number: place for place, number in enumerate(found)}
    form: Hashable | None = form_of(closed.jaxpr, places)
    # A parameter of an equation may be a function or an array, which has no hash.
    try:
        hash(form)
    except TypeError:
        form = None
    results = jax.tree_util.tree_structure(shapes)
    return Hoisted(of_numbers, numbers, list(closed.consts), results, form)


def _run(
    jaxpr: Jaxpr,
    constants: Sequence[Any],
    arguments: Sequence[Any],
    numbers: Mapping[Number, Any],
) -> list[Any]:
    """The results of a traced function, with other values in the place of its literals."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    values = dict(zip(variables, [*constants, *arguments], strict=True))

    def read(atom: Any) -> Any:
        if not isinstance(atom, Literal):
            return values[atom]
        number = number_of(atom)
        return atom.val if number is None else numbers[number]

    for equation in jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        made = _made(equation, given, numbers)
        values.update(zip(equation.outvars, made, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _made(
    equation: JaxprEqn, given: Sequence[Any], numbers: Mapping[Number, Any]
) -> Sequence[Any]:
    """The results of one equation."""
    inner = entered(equation)
    if inner is None:
        made = equation.primitive.bind(*given, **equation.params)  # type: ignore[no-untyped-call]
        return made if equation.primitive.multiple_results else [made]
    if equation.primitive.name == SCAN:
        return _scanned(equation.params, inner, given, numbers)
    return _run(inner.jaxpr, inner.consts, given, numbers)


def _scanned(
    parameters: Mapping[str, Any],
    inner: ClosedJaxpr,
    given: Sequence[Any],
    numbers: Mapping[Number, Any],
) -> Sequence[Any]:
    """The results of a scan: the last carry, then the stacked results of its steps."""
    first = parameters["num_consts"]
    last = first + parameters["num_carry"]
    # `jax.lax.scan(step, start, inputs)`, where `step` reads what is outside of it.
    outside = given[:first]
    start = given[first:last]
    inputs = given[last:]

    def step(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        arguments = [*outside, *carry, *slices]
        results = _run(inner.jaxpr, inner.consts, arguments, numbers)
        return results[: len(carry)], results[len(carry) :]

    carry, stacked = jax.lax.scan(
        step,
        list(start),
        list(inputs),
        length=parameters["length"],
        reverse=parameters["reverse"],
        unroll=parameters["unroll"],
    )
    return [*carry, *stacked]
