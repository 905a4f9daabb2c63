"""Gradients that are multiplied just before a step. First, what only looks like that."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods import Options
from codemods.model import Style
from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.codemods.programs import migrated, program, result_of
from tests.generated.properties import assert_alike, outcome

PROGRAM = """
    import jax
    import jax.numpy as jnp
    from flax import optim

    def loss_fn(params, x, y):
        return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)

    def run(params, batches):
        params = jax.tree_util.tree_map(jnp.asarray, params)
        optimizer = optim.Momentum(0.1).create(params)
        found = []
        for x, y in batches:
            grads = jax.grad(loss_fn)(optimizer.target, x, y)
            {line}
            optimizer = optimizer.apply_gradient(grads)
            found.append(optimizer.target)
        return found
    """
SCALED = "grads = jax.tree_util.tree_map(lambda g: 0.125 * g, grads)"
LEFT = {
    "a quotient, which rounds otherwise": "grads = jax.tree_util.tree_map(lambda g: g / 3, grads)",
    "a factor of each leaf": "grads = jax.tree_util.tree_map(lambda g: 0.5 * jnp.sum(g), grads)",
    "another tree": "grads = jax.tree_util.tree_map(lambda g: 0.5 * g, optimizer.target)",
    "what is logged, too": f"{SCALED}; print(grads)",
}


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_stays(line: str) -> None:
    result = result_of(PROGRAM.replace("{line}", line))
    assert "optax.scale" not in result.after.decode()


def test_a_note_says_why() -> None:
    result = result_of(PROGRAM.replace("{line}", LEFT["what is logged, too"]))
    assert any(
        "The gradients are scaled before this step" in site.note
        for site in result.sites
    )


@pytest.mark.parametrize("style", ["train-state", "functional"])
def test_trains_alike(style: Style, legacy_wheel: Path) -> None:
    before = PROGRAM.replace("{line}", SCALED)
    after = migrated(before, Options(style=style))
    assert "optax.chain(optax.scale(0.125), optax.sgd(0.1, momentum=0.9))" in after
    assert "tree_map(lambda g" not in after
    with legacy_flax(), precise():
        assert_alike(outcome(program(before).encode()), outcome(after.encode()))
