"""The numbers of a traced function as its arguments, so that functions of one form are one program.

Two Adams with other learning rates and betas are traced to the same operations on other numbers.
Where these are arguments, one executable serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from optim2optax.parity.judging.leaves import PyTree

Number: TypeAlias = tuple[np.dtype[Any], float]
"""A literal by its type and value."""

SCAN = "scan"
ENTERED = {
    SCAN: "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
}
"""The primitives that call or scan with a function, and the parameter that has the function.

No derivative is taken of them any more, so that custom rules for it do not matter.
"""

OF_SCAN = ("length", "num_carry", "num_consts", "reverse", "unroll")
"""The parameters in which two scans with the same function may differ."""


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
    """Trace a function, and make arguments of its floating-point literals and its constants.

    Zero, a half and whole numbers stay: compilers have shorter forms for them, such as a square
    for a power.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    found: dict[Number, Literal] = {}
    for literal in _literals(closed.jaxpr):
        number = _number(literal)
        if number is not None:
            found[number] = literal

    def of_numbers(
        numbers: Sequence[Any], constants: Sequence[Any], leaves: Sequence[Any]
    ) -> list[Any]:
        return _run(closed.jaxpr, constants, leaves, dict(zip(found, numbers, strict=True)))

    numbers = [jnp.asarray(literal.val, dtype) for (dtype, _), literal in found.items()]
    form = _form(closed.jaxpr, {number: place for place, number in enumerate(found)})
    try:
        hash(form)
    except TypeError:
        form = None
    results = jax.tree_util.tree_structure(shapes)
    return Hoisted(of_numbers, numbers, list(closed.consts), results, form)


def _literals(jaxpr: Jaxpr) -> Iterator[Literal]:
    """The literals in order, with those of the functions that are called and scanned with."""
    for equation in jaxpr.eqns:
        yield from (atom for atom in equation.invars if isinstance(atom, Literal))
        inner = _entered(equation)
        if inner is not None:
            yield from _literals(inner.jaxpr)
    yield from (atom for atom in jaxpr.outvars if isinstance(atom, Literal))


def _entered(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The function of a call or a scan."""
    found: ClosedJaxpr | None = equation.params.get(ENTERED.get(equation.primitive.name, ""))
    return found


def _number(literal: Literal) -> Number | None:
    """The key of a literal; None if it stays."""
    array: Any = literal.aval
    if array.shape or not jnp.issubdtype(array.dtype, jnp.floating):
        return None
    value = float(literal.val)
    stays = not math.isfinite(value) or value.is_integer() or abs(value) == 0.5
    return None if stays else (array.dtype, value)


def _form(jaxpr: Jaxpr, places: Mapping[Number, int]) -> Hashable:
    """A key that is the same for two traced functions that differ in their numbers alone."""
    given = [*jaxpr.constvars, *jaxpr.invars]
    # Variables are new objects in every trace, so they are known by their order.
    variables = {variable: place for place, variable in enumerate(given)}

    def form_of(atom: Any) -> Hashable:
        if not isinstance(atom, Literal):
            return variables[atom]
        number = _number(atom)
        if number is not None and number in places:
            return "number", places[number]
        return _type(atom), np.asarray(atom.val).tobytes()

    equations = []
    for equation in jaxpr.eqns:
        inputs = tuple(map(form_of, equation.invars))
        equations.append((equation.primitive, _form_of_parameters(equation, places), inputs))
        for variable in equation.outvars:
            variables[variable] = len(variables)
    results = tuple(map(form_of, jaxpr.outvars))
    return tuple(map(_type, variables)), len(jaxpr.constvars), tuple(equations), results


def _type(atom: Any) -> Hashable:
    """The type of a value: for an array its shape, its dtype, and whether that is weak."""
    return atom.aval, getattr(atom.aval, "weak_type", False)


def _form_of_parameters(equation: JaxprEqn, places: Mapping[Number, int]) -> Hashable:
    inner = _entered(equation)
    if inner is None:
        return _form_of_value(equation.params)
    constants = tuple(map(_form_of_value, inner.consts))
    kind = OF_SCAN if equation.primitive.name == SCAN else ()
    return constants, _form(inner.jaxpr, places), tuple(equation.params[name] for name in kind)


def _form_of_value(value: Any) -> Hashable:
    """A parameter by its content.

    The literals of functions that are not entered stay literals.
    """
    if isinstance(value, ClosedJaxpr):
        return _form(value.jaxpr, {}), tuple(map(_form_of_value, value.consts))
    if isinstance(value, Jaxpr):
        return _form(value, {})
    if isinstance(value, tuple | list):
        return type(value), tuple(map(_form_of_value, value))
    if isinstance(value, dict):
        return tuple((name, _form_of_value(value[name])) for name in sorted(value))
    return type(value), value


def _run(
    jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any], numbers: Mapping[Number, Any]
) -> list[Any]:
    """The results of a traced function, with other values in the place of its literals."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))

    def read(atom: Any) -> Any:
        if not isinstance(atom, Literal):
            return values[atom]
        number = _number(atom)
        return atom.val if number is None else numbers[number]

    for equation in jaxpr.eqns:
        made = _made(equation, [read(atom) for atom in equation.invars], numbers)
        values.update(zip(equation.outvars, made, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _made(equation: JaxprEqn, given: Sequence[Any], numbers: Mapping[Number, Any]) -> Sequence[Any]:
    """The results of one equation."""
    inner = _entered(equation)
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
    outside, start, inputs = given[:first], given[first:last], given[last:]

    def step(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        results = _run(inner.jaxpr, inner.consts, [*outside, *carry, *slices], numbers)
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
