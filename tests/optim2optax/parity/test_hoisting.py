"""Optimizers that differ in numbers alone are compiled once, and each is computed with its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optim2optax.parity.compare import Verdict, compare_transformations
from optim2optax.parity.hoisting import hoisted
from optim2optax.parity.legacy import legacy_optim

Function = Callable[[Any], Any]

COMPILING = "/jax/core/compile/backend_compile_duration"
X = np.linspace(-1.0, 1.0, 6)


@pytest.fixture
def compilations() -> Iterator[list[float]]:
    """The seconds of each compilation so far."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILING:
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seconds
    jax.monitoring.clear_event_listeners()  # type: ignore[no-untyped-call]


def test_optimizers_of_one_form_are_compiled_once(legacy_wheel: object, compilations: list[float]) -> None:
    del legacy_wheel
    with legacy_optim() as optim:
        first = compare_transformations(optim.Momentum(0.013, 0.83), optax.sgd(0.013, 0.83))
        number = len(compilations)
        second = compare_transformations(optim.Momentum(0.017, 0.71), optax.sgd(0.017, 0.71))
        assert len(compilations) == number
        wrong = compare_transformations(optim.Momentum(0.017, 0.71), optax.sgd(0.017, 0.71 + 1e-9))
    assert first.verdict is second.verdict is Verdict.IDENTICAL
    assert wrong.verdict is Verdict.DIFFERENT


def scanned(number: float) -> Function:
    """A number in a scan, in a jitted function within, in one with a derivative of its own, and as a result."""

    def step(carry: Any, x: Any) -> Any:
        return carry * number + jax.nn.softplus(x), (jnp.clip(carry, -number, number), number)

    return lambda x: (jax.lax.scan(step, x[0], x), jax.nn.relu(number * x))


def chosen(number: float) -> Function:
    return lambda x: jax.lax.cond(x[0] > 0, lambda x: number * x, lambda x: x, x)


def looked_up(number: float) -> Function:
    table = np.linspace(number, 2.0, 1000)
    return lambda x: jax.lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.asarray(table)[990] * x, x) + table[:6]


@pytest.mark.parametrize("make", [scanned, chosen, looked_up])
def test_each_function_is_computed_with_its_own_numbers(make: Callable[[float], Function]) -> None:
    for number in (0.3, 0.7):
        traced = hoisted(make(number), X)
        found = jax.jit(traced.function)(traced.numbers, traced.constants, [X])
        wanted = make(number)(X)
        for one, other in zip(found, jax.tree_util.tree_leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert jax.tree_util.tree_structure(wanted) == traced.results


def form(function: Function) -> Any:
    return hoisted(function, X).form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (scanned(0.3), scanned(0.7)),
        (looked_up(0.3), looked_up(0.7)),
        (lambda x: 0.3 * x + 0.4, lambda x: 0.1 * x + 0.2),
    ],
    ids=["in a scan", "arrays", "two numbers"],
)
def test_functions_of_one_form(one: Function, other: Function) -> None:
    assert form(one) == form(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: 0.3 * x, lambda x: 0.3 + x),
        (lambda x: 0.3 * x, lambda x: 1.0 * x),
        (lambda x: 0.3 * x + 0.4, lambda x: 0.3 * x + 0.3),
        (lambda x: 0.3 * x - x[0], lambda x: x[0] - 0.3 * x),
        (lambda x: 2 * x, lambda x: 3 * x),
        (lambda x: x[2], lambda x: x[3]),
        (lambda x: x**2, lambda x: x**3),
        (lambda x: (x, 0.3 * x), lambda x: (0.3 * x, x)),
        (chosen(0.3), chosen(0.7)),
        (lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x), lambda x: jax.lax.scan(lambda c, y: (y, c), 0.0, x)),
        (
            lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x),
            lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x, reverse=True),
        ),
    ],
    ids=[
        "operation",
        "one",
        "equal numbers",
        "order",
        "whole numbers",
        "index",
        "power",
        "results",
        "within a branch",
        "body of a scan",
        "direction of a scan",
    ],
)
def test_functions_of_other_forms(one: Function, other: Function) -> None:
    assert form(one) != form(other)


def test_a_function_that_calls_back_shares_with_no_other() -> None:
    def calling(number: float) -> Function:
        return lambda x: jax.pure_callback(lambda x: number * np.asarray(x), x, x)

    assert form(calling(0.3)) != form(calling(0.7))
