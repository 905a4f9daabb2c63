"""The forms of traced functions: the same for two that differ in their numbers alone.

A form is a key of a dict. It has the operations, the types, and the places of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

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
    names = OF_SCAN if equation.primitive.name == SCAN else ()
    own = tuple(equation.params[name] for name in names)
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
