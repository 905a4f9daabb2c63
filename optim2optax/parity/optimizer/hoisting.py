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

from optim2optax.parity.judging.movement import PyTree


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
    first, carried = _sizes_of_scan(parameters)
    last = first + carried
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


def _sizes_of_scan(parameters: Mapping[str, Any]) -> tuple[int, int]:
    """How many arguments of a scan its function reads from outside, and how many it carries."""
    if "ft_in" in parameters:
        # From JAX 0.11 on: the three parts of the arguments.
        outside, start, _ = map(list, parameters["ft_in"].unpack())
        return len(outside), len(start)
    return parameters["num_consts"], parameters["num_carry"]


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

OF_SCAN = ("length", "reverse", "unroll")
"""In these, and in their sizes, two scans with the same function may differ."""


def literals(jaxpr: Jaxpr) -> Iterator[Literal]:
    """The literals in order, with those of the functions that are called and scanned with."""
    for equation in jaxpr.eqns:
        yield from (atom for atom in equation.invars if isinstance(atom, Literal))
        inner = entered(equation)
        if inner is not None:
            yield from literals(inner.jaxpr)
    yield from (atom for atom in jaxpr.outvars if isinstance(atom, Literal))


def entered(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The function of a call or a scan."""
    parameter = ENTERED.get(equation.primitive.name, "")
    found: ClosedJaxpr | None = equation.params.get(parameter)
    return found


def number_of(literal: Literal) -> Number | None:
    """The key of a literal; None if it stays.

    Zero, a half and whole numbers stay: compilers have shorter forms for them, such as a square
    for a power.
    """
    array: Any = literal.aval
    if array.shape or not jnp.issubdtype(array.dtype, jnp.floating):
        return None
    value = float(literal.val)
    if not math.isfinite(value) or value.is_integer() or abs(value) == 0.5:
        return None
    return array.dtype, value


def form_of(jaxpr: Jaxpr, places: Mapping[Number, int]) -> Hashable:
    """A key that is the same for two traced functions that differ in their numbers alone."""
    given = [*jaxpr.constvars, *jaxpr.invars]
    # Variables are new objects in every trace, so they are known by their order.
    variables = {variable: place for place, variable in enumerate(given)}

    def form_of_atom(atom: Any) -> Hashable:
        if not isinstance(atom, Literal):
            return variables[atom]
        number = number_of(atom)
        if number is not None and number in places:
            return "number", places[number]
        return _type(atom), np.asarray(atom.val).tobytes()

    equations: list[Hashable] = []
    for equation in jaxpr.eqns:
        inputs = tuple(map(form_of_atom, equation.invars))
        parameters = _form_of_parameters(equation, places)
        equations.append((equation.primitive, parameters, inputs))
        for variable in equation.outvars:
            variables[variable] = len(variables)
    types = tuple(map(_type, variables))
    results = tuple(map(form_of_atom, jaxpr.outvars))
    return types, len(jaxpr.constvars), tuple(equations), results


def _type(atom: Any) -> Hashable:
    """The type of a value: for an array its shape, its dtype, and whether that is weak."""
    return atom.aval, getattr(atom.aval, "weak_type", False)


def _form_of_parameters(equation: JaxprEqn, places: Mapping[Number, int]) -> Hashable:
    inner = entered(equation)
    if inner is None:
        return _form_of_value(equation.params)
    constants = tuple(map(_form_of_value, inner.consts))
    own: tuple[Hashable, ...] = ()
    if equation.primitive.name == SCAN:
        sizes = _sizes_of_scan(equation.params)
        own = (*sizes, *(equation.params[name] for name in OF_SCAN))
    return constants, form_of(inner.jaxpr, places), own


def _form_of_value(value: Any) -> Hashable:
    """A parameter by its content.

    The literals of functions that are not entered stay literals.
    """
    if isinstance(value, ClosedJaxpr):
        constants = tuple(map(_form_of_value, value.consts))
        return form_of(value.jaxpr, {}), constants
    if isinstance(value, Jaxpr):
        return form_of(value, {})
    if isinstance(value, tuple | list):
        return type(value), tuple(map(_form_of_value, value))
    if isinstance(value, dict):
        names = sorted(value)
        return tuple((name, _form_of_value(value[name])) for name in names)
    return type(value), value
