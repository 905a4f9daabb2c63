"""Schedules written by hand that are one of optax's. First, those that are none."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from codemods import Options
from codemods.idioms.standard import FAMILIES, STEPS, Family, Invalid
from tests.codemods.programs import migrated

PROGRAM = """
    import jax.numpy as jnp
    from flax import optim

    def train(params, grads, base, rate, start, end, warmup, n):
        schedule = lambda step: {body}
        optimizer = optim.Adam(0.1).create(params)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
        return optimizer
    """
NONE_OF_OPTAX = [
    "base / (1 + step)",
    "base * (1 - step / n)",
    "base * jnp.minimum((step + 1) / n, 1.0)",
    "base * 0.5 * (1 + jnp.cos(jnp.pi * step / n))",
    "base * rate ** (step // n) * 0.5",
    "base * jnp.sqrt(1 - jnp.minimum(step / n, 1.0)) + end",
    "base * jnp.where(step < n, 1.0, 0.1)",
    "base * warmup(step)",
    "jnp.where(step < 1000, 0.1, jnp.where(step < 2000, step, 0.001))",
    "jnp.where(step < 3000, 0.1, 0.1 * jnp.where(step < 9500, step / 9500, 1.0))",
    "base * (1 - jnp.minimum(step, n - 1) / n)",
    "jnp.where(step <= warmup, base * step / warmup, base * jnp.cos(step))",
]


@pytest.mark.parametrize("body", NONE_OF_OPTAX)
def test_what_is_no_schedule_of_optax(body: str) -> None:
    assert f"schedule = lambda step: {body}\n" in migrated(PROGRAM.replace("{body}", body))


SCHEDULES = {
    "base * jnp.minimum(1.0, step / n)": "linear_schedule(0.0, end_value=base, transition_steps=n)",
    "base * jnp.maximum(0.0, 1 - step / n)": "linear_schedule(base, end_value=0.0, transition_steps=n)",
    "start + (end - start) * jnp.clip(step / n, 0, 1)": "linear_schedule(start, end_value=end, transition_steps=n)",
    "base * rate ** step": "exponential_decay(base, transition_steps=1, decay_rate=rate)",
    "jnp.power(rate, step / n) * base": "exponential_decay(base, transition_steps=n, decay_rate=rate)",
    "base * rate ** (step // n)": "exponential_decay(base, transition_steps=n, decay_rate=rate, staircase=True)",
    "base * 0.1 ** jnp.floor(step / n)": "exponential_decay(base, transition_steps=n, decay_rate=0.1, staircase=True)",
    "base * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(step, n) / n))": "cosine_decay_schedule(base, decay_steps=n)",
    "base * (1 + jnp.cos(jnp.pi * jnp.minimum(1.0, step / n))) / 2": "cosine_decay_schedule(base, decay_steps=n)",
    "(base - end) * (1 - jnp.minimum(step, n) / n) ** 3 + end": (
        "polynomial_schedule(base, end_value=end, power=3, transition_steps=n)"
    ),
    "jnp.where(step < warmup, base * step / warmup, "
    "base * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum((step - warmup) / (n - warmup), 1.0))))": (
        "warmup_cosine_decay_schedule(0.0, peak_value=base, warmup_steps=warmup, decay_steps=n)"
    ),
    "base * jnp.minimum(1.0, step / warmup) * rate ** (jnp.maximum(step - warmup, 0) / n)": (
        "warmup_exponential_decay_schedule("
        "0, peak_value=base, warmup_steps=warmup, transition_steps=n, decay_rate=rate)"
    ),
    "jnp.where(step < warmup, base * step / warmup, end + (base - end) * jnp.maximum(0.0, 1 - (step - warmup) / n))": (
        "join_schedules([optax.linear_schedule(0.0, base, warmup), optax.linear_schedule(base, end, n)], [warmup])"
    ),
    "jnp.where(step < n, base, end)": (
        "join_schedules([optax.constant_schedule(base), optax.constant_schedule(end)], [n])"
    ),
    "jnp.where(step < 1000, 0.1, jnp.where(step < 2000, 0.01, 0.001))": (
        "join_schedules([optax.constant_schedule(0.1), optax.constant_schedule(0.01), optax.constant_schedule(0.001)], "
        "[1000, 2000])"
    ),
}


def on_one_line(code: str) -> str:
    """Code without its layout."""
    return re.sub(r",? ([\])])", r"\1", re.sub(r"([\[(]) ", r"\1", " ".join(code.split())))


@pytest.mark.parametrize(("body", "schedule"), SCHEDULES.items())
def test_what_is_one(body: str, schedule: str) -> None:
    result = migrated(PROGRAM.replace("{body}", body))

    assert f"schedule = optax.{schedule}" in on_one_line(result)
    assert migrated(result) == result
    kept = migrated(PROGRAM.replace("{body}", body), Options(ignore=("FO405",)))
    assert f"schedule = lambda step: {body}\n" in kept
    assert "optax.adam(schedule)" in kept


def test_the_arithmetic_of_a_step_is_one() -> None:
    result = migrated(
        """
        from flax import optim

        def train(params, grads, base, rate):
            optimizer = optim.Adam().create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=base * rate ** (optimizer.state.step / 100))
            return optimizer
        """
    )

    schedule = "optax.exponential_decay( base, transition_steps=100, decay_rate=rate )"
    assert f"optax.adam( learning_rate={schedule}" in " ".join(result.split())


def test_the_schedule_of_another_program_stays() -> None:
    text = PROGRAM.replace("{body}", "0.1 * 0.9 ** step").replace("optimizer.state.step))", "len(grads)))")

    assert "schedule = lambda step: 0.1 * 0.9 ** step\n" in migrated(text)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name}{dict(family.more) or ''}")
def test_what_the_tool_takes_for_a_schedule_is_what_optax_computes(family: Family) -> None:
    import jax
    import optax

    numbers = random.Random(0)
    for _ in range(5):
        given = {name: numbers.uniform(0.1, 0.9) for name in family.parameters}
        given |= {name: numbers.randint(3, 60) for name in family.parameters if name.endswith("steps")}
        try:
            expected = [family.compute(step, *given.values()) for step in STEPS]
        except Invalid:
            continue
        with jax.enable_x64(True):
            schedule = (
                eval(f"optax.{family.name}({family.joined})", {"optax": optax, **given})
                if family.joined
                else getattr(optax, family.name)(**given, **dict(family.more))
            )
            computed = [float(schedule(step)) for step in STEPS]
        np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-12)


LASTING = """
    from flax import optim

    def train(params, grads, config, base, options):
        {before}
        optimizer = optim.Adam(0.1).create(params)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            {after}
        return optimizer
    """
BY_FIELD = "schedule = lambda step: config.lr * 0.9 ** step"
BY_ELEMENT = 'schedule = lambda step: options["lr"] * 0.9 ** step'
BY_NAME = "schedule = lambda step: base * 0.9 ** step"
MADE_OF = {
    "a field that changes": (BY_FIELD, "config.lr *= 0.5", False),
    "a field that another may be": (BY_FIELD, "config.base *= 0.5", True),
    "a field that is set before": ("config.lr = base / 256; " + BY_FIELD, "print(grad)", True),
    "an element that changes": (BY_ELEMENT, 'options["lr"] *= 0.5', False),
    "an element that goes": (BY_ELEMENT, 'del options["lr"]', False),
    "another element": (BY_ELEMENT, 'options["step"] += 1', True),
    "a name that changes": (BY_NAME, "base *= 0.5", False),
    "a name that is set later": (BY_NAME.replace("base", "rate") + "; rate = config.lr", "print(grad)", False),
    "a name that is set before": ("rate = config.lr; " + BY_NAME.replace("base", "rate"), "print(grad)", True),
}


@pytest.mark.parametrize(("before", "after", "lasts"), MADE_OF.values(), ids=MADE_OF)
def test_a_schedule_of_optax_is_made_only_of_what_stays_as_it_is(before: str, after: str, lasts: bool) -> None:
    result = migrated(LASTING.replace("{before}", before).replace("{after}", after))

    assert "tx=optax.adam(schedule)" in result
    assert ("schedule = optax.exponential_decay(" in result) == lasts
    assert ("schedule = lambda step: " in result) != lasts
