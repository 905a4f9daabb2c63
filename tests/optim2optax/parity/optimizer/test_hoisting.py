"""Optimizers that differ in numbers alone are compiled once, and each is computed with its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from optim2optax.legacy import legacy_optim
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.optimizer import compiling
from optim2optax.parity.optimizer.compiling import compiled_once, share_executables
from optim2optax.parity.optimizer.hoisting import hoisted
from optim2optax.parity.optimizer.probed import compare_probed
from optim2optax.parity.optimizer.same_function import compare_transformations

Function = Callable[[Any], Any]

CACHING = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)
FROM_FOLDER = "/jax/compilation_cache/cache_hits"
COMPILING = "/jax/core/compile/backend_compile_duration"
X = np.linspace(-1.0, 1.0, 6)


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """What JAX has compiled so far, and what it has found in a folder."""
    events: list[str] = []

    def compiled(event: str, duration_secs: float, **_: str | int) -> None:
        del duration_secs
        if event == COMPILING:
            events.append(event)

    def found(event: str, **_: str | int) -> None:
        if event == FROM_FOLDER:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(compiled)
    jax.monitoring.register_event_listener(found)
    yield events
    jax.monitoring.clear_event_listeners()  # type: ignore[no-untyped-call]


def test_optimizers_of_one_form_are_compiled_once(
    legacy_wheel: object, compilations: list[str]
) -> None:
    del legacy_wheel
    compare = partial(compare_transformations, params=X)
    with legacy_optim() as optim:
        first = compare(optim.Momentum(0.013, 0.83), optax.sgd(0.013, 0.83))
        number = len(compilations)
        second = compare(optim.Momentum(0.017, 0.71), optax.sgd(0.017, 0.71))
        assert len(compilations) == number
        wrong = compare(optim.Momentum(0.017, 0.71), optax.sgd(0.017, 0.71 + 1e-9))
    assert first.verdict is second.verdict is Verdict.IDENTICAL
    assert wrong.verdict is Verdict.DIFFERENT


@pytest.fixture
def settings_of_jax() -> Iterator[None]:
    """The cache of JAX is as it was for the tests that follow."""
    before = {name: getattr(jax.config, name) for name in CACHING}
    yield
    for name, value in before.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
    reset_cache()


@pytest.mark.usefixtures("settings_of_jax")
def test_processes_share_what_they_compile(
    compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = np.ones((7, 3)), np.ones((7, 3)), np.full(7, 0.1)
    monkeypatch.setattr(compiling, "SHARED_FROM", 0.0)
    share_executables(tmp_path)
    results = []
    for number in (0.3, 0.7):
        monkeypatch.setattr(compiling, "_executables", {})  # as another process has it
        found = compiled_once(
            (object(),),
            False,
            lambda p, g, r, number=number: p - number * r[:, None] * g,
            *arguments,
        )
        results.append(found(*arguments)[0, 0])
    assert compilations.count(FROM_FOLDER) == 1
    np.testing.assert_allclose(results, [0.97, 0.93], rtol=1e-6)


def test_what_overflows_in_float32_does_so_on_both_sides(legacy_wheel: object) -> None:
    """Where a compiler may fuse a product and a difference, infinity less infinity is finite on one side alone."""
    del legacy_wheel
    with legacy_optim() as optim:
        old = optim.RMSProp(0.013, centered=True)
    found = compare_probed(old, optax.rmsprop(0.013, centered=True, eps_in_sqrt=False))
    assert found.verdict is Verdict.EQUIVALENT, found


def scanned(number: float) -> Function:
    """A number in a scan, in a jitted function within, in one with a derivative of its own, and as a result."""

    def step(carry: Any, x: Any) -> Any:
        return carry * number + jax.nn.softplus(x), (
            jnp.clip(carry, -number, number),
            number,
        )

    return lambda x: (jax.lax.scan(step, x[0], x), jax.nn.relu(number * x))


def chosen(number: float) -> Function:
    return lambda x: jax.lax.cond(x[0] > 0, lambda x: number * x, lambda x: x, x)


def looked_up(number: float) -> Function:
    table = np.linspace(number, 2.0, 1000)
    return lambda x: (
        jax.lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.asarray(table)[990] * x, x)
        + table[:6]
    )


@pytest.mark.parametrize("make", [scanned, chosen, looked_up])
def test_each_function_is_computed_with_its_own_numbers(
    make: Callable[[float], Function],
) -> None:
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
        (
            lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x),
            lambda x: jax.lax.scan(lambda c, y: (y, c), 0.0, x),
        ),
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
