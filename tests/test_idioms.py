"""Programs at the edges of what idioms move, trained before and after: in float32, and in float64 as users have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from codemods import Options
from codemods.model import Style
from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.generated.properties import GATE, migrated, outcome, parameters

HEAD = """\
import jax
import jax.numpy as jnp
from flax import optim


def loss_fn(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


"""
SCHEDULED = """\
def run(params, batches):
    params = jax.tree_util.tree_map(jnp.asarray, params)
    {numbers}
    schedule = lambda step: {rate}
    found = []
    optimizer = optim.Momentum(0.1).create(params)
    for x, y in batches:
        grads = jax.grad(loss_fn)(optimizer.target, x, y)
        optimizer = optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))
        found.append(optimizer.target)
    return found
"""
COMPUTED = SCHEDULED.replace("    schedule = lambda step: {rate}\n", "").replace(
    "        optimizer = optimizer.apply_gradient(grads, learning_rate=schedule(optimizer.state.step))\n",
    "        step = optimizer.state.step\n        optimizer = optimizer.apply_gradient(grads, learning_rate={rate})\n",
)
RATES = {
    "a warm-up of none, which is not a number at first": (
        "base * jnp.minimum(1.0, step / warmup)",
        "base = 0.1; warmup = 0",
    ),
    "a run shorter than its warm-up": (
        "jnp.where(step < warmup, base * step / warmup, base * (1 - (step - warmup) / (n - warmup)))",
        "base = 0.1; warmup = 4; n = 2",
    ),
    "exponential in stairs": (
        "base * rate ** (step // n)",
        "base = 0.1; rate = 0.7; n = 2",
    ),
    "exponential in numbers": ("0.1 * 0.9 ** (step / 7)", "pass"),
    "whole numbers": ("jnp.where(step < 3, 1, 0)", "pass"),
}
"""Whatever it is, a rate becomes a function of the step as it is written."""


@contextmanager
def wide() -> Iterator[None]:
    """What `jax_enable_x64` does, and no more."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def assert_trains_alike(program: str, wheel: Path, style: Style = "train-state") -> str:
    """The result of a program that trains like before, in both precisions; what is not a number is so in both."""
    result = migrated(program.encode(), Options(style=style))
    assert {site.status for site in result.sites} == {"rewritten"}
    start: Any = parameters()
    for context, gate in ((precise(wide=False), 1e-5), (wide(), GATE)):
        with legacy_flax(), context:
            before, after = outcome(program.encode()), outcome(result.after)
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            for name in start:
                movement = np.nan_to_num(
                    np.max(np.abs(np.asarray(old[name]) - start[name])), posinf=0.0
                )
                np.testing.assert_allclose(
                    new[name], old[name], rtol=0, atol=gate * max(float(movement), 1e-3)
                )
    return result.after.decode()


IN_A_STEP = [pair for pair in RATES.values() if len(pair[0]) < 50]
WRITTEN = [(SCHEDULED, *pair) for pair in RATES.values()] + [
    (COMPUTED, *pair) for pair in IN_A_STEP
]


THOROUGH_STYLE = pytest.param("functional", marks=pytest.mark.thorough)


@pytest.mark.parametrize("style", ["train-state", THOROUGH_STYLE])
@pytest.mark.parametrize(("program", "rate", "numbers"), WRITTEN)
def test_a_schedule_at_its_edges(
    rate: str, numbers: str, program: str, style: Style, legacy_wheel: Path
) -> None:
    code = HEAD + program.replace("{numbers}", numbers).replace("{rate}", rate)
    after = assert_trains_alike(code, legacy_wheel, style)

    assert f"lambda step: {rate}" in after
    assert "inject_hyperparams" not in after


CLIPPED = """\
def run(params, batches, limit={limit}):
    params = jax.tree_util.tree_map(jnp.asarray, params)
    found = []
    optimizer = optim.{made}.create(params)
    for number, (x, y) in enumerate(batches):
        grads = jax.grad(loss_fn)(optimizer.target, x, y)
        grads = jax.tree_util.tree_map(lambda g: g * {factors}[number], grads)
        norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))
        grads = jax.tree_util.tree_map(lambda g: {scaled}, grads)
        optimizer = optimizer.apply_gradient(grads)
        found.append(optimizer.target)
    return found
"""
FACTORS = [
    "(1.0, 0.0, 1e-30, 1e30, 1.0, jnp.inf)",
    "(1.0, 0.0, 1e-3, 1e-20, jnp.nan, 1.0)",
]
"""What the gradients of each step are multiplied by."""

LIMITS = ("-1.0", "float('inf')", "2")
"""Limits beside the usual one and 0."""

SCALED = {
    "the least": "g * jnp.minimum(1.0, limit / norm)",
    "a choice": "jnp.where(norm < limit, g, g / norm * limit)",
    "a choice with the limit": "jnp.where(norm <= limit, g, g * (limit / norm))",
    "the largest": "g * (limit / jnp.maximum(norm, limit))",
    "a quotient": "g / jnp.maximum(1.0, norm / limit)",
    "by value": "jnp.clip(g, -limit, limit)",
}


@pytest.mark.parametrize(
    ("limit", "factors"),
    [
        *(("0.5", factors) for factors in FACTORS),
        ("0.0", FACTORS[0]),
        pytest.param("0.0", FACTORS[1], marks=pytest.mark.thorough),
        *(
            pytest.param(limit, factors, marks=pytest.mark.thorough)
            for limit in LIMITS
            for factors in FACTORS
        ),
    ],
)
@pytest.mark.parametrize("scaled", SCALED.values(), ids=SCALED)
def test_clipping_at_its_edges(
    scaled: str, limit: str, factors: str, legacy_wheel: Path
) -> None:
    texts = {
        "{limit}": limit,
        "{factors}": factors,
        "{scaled}": scaled,
        "{made}": "GradientDescent(0.1)",
    }
    program = CLIPPED
    for hole, text in texts.items():
        program = program.replace(hole, text)
    assert_trains_alike(HEAD + program, legacy_wheel)
