"""What loops do by hand around a step and stays. First, what only looks like that, of which nothing is told."""

from __future__ import annotations

import pytest

from codemods import Options
from codemods.model import Style
from tests.codemods.programs import migrated, result_of

HEAD = """
    import functools
    import jax
    import jax.numpy as jnp
    from flax import optim

    def loss_fn(params, batch):
        return jnp.sum(params["w"] * batch)

    def all_finite(tree):
        return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree_util.tree_leaves(tree)]))

    def decayed(params, rate):
        return jax.tree_util.tree_map(lambda p: p * (1.0 - rate), params)

    def averaged_gradient(grad_fn, params, parts):
        grads = grad_fn(params, parts[0])
        for part in parts[1:]:
            more = grad_fn(params, part)
            grads = jax.tree_util.tree_map(lambda total, new: total + new, grads, more)
        return jax.tree_util.tree_map(lambda g: g / len(parts), grads)

"""
BEFORE = "The parameters are changed after this step, at train.py:{line}, and not by a link of the chain: "
ADDED = "The gradients are added up at train.py:{line}, and not by `optax.MultiSteps`: "
GUARDED = "This step is skipped at train.py:{line} if values are not finite, and not by `optax.apply_if_finite`: "

SILENT = {
    "decay ahead of the step": """
    def train(optimizer, batch, lr=0.1):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        optimizer = optimizer.replace(target=decayed(optimizer.target, lr * 0.1))
        return optimizer.apply_gradient(grads)
    """,
    "parameters from elsewhere behind the step": """
    def train(optimizer, batch, pretrained=None):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        optimizer = optimizer.apply_gradient(grads)
        return optimizer.replace(target=decayed(pretrained, 0.1))
    """,
    "decay added to the gradients": """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        grads = jax.tree_util.tree_map(lambda g, p: g + 0.1 * p, grads, optimizer.target)
        return optimizer.apply_gradient(grads)
    """,
    "the gradients of two losses": """
    def train(optimizer, batch):
        first = jax.grad(loss_fn)(optimizer.target, batch)
        second = jax.grad(other_fn)(optimizer.target, batch)
        return optimizer.apply_gradient(jax.tree_util.tree_map(jnp.add, first, second))
    """,
    "a metric that tells of what is not finite": """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        optimizer = optimizer.apply_gradient(grads)
        return optimizer, all_finite(grads)
    """,
    "a mean of two optimizers, leaf by leaf": """
    def train(optimizer, batch, weight=0.5):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        print(all_finite(grads))
        stepped = optimizer.apply_gradient(grads)
        return jax.tree_util.tree_map(lambda new, old: mean(weight, new, old), stepped, optimizer)
    """,
    "a guard by a function that calls itself": """
    def depth(tree):
        return 1 + max(depth(part) for part in tree.values()) if isinstance(tree, dict) else 0

    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        if depth(grads) > 2:
            optimizer = optimizer.apply_gradient(grads)
        return optimizer
    """,
    "a step that waits for something else": """
    def train(optimizer, batch, warm=True):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        assert all_finite(grads)
        return jax.lax.cond(warm, lambda opt: opt.apply_gradient(grads), lambda opt: opt, optimizer)
    """,
}

TOLD = {
    "decay behind the step": (
        """
    def train(optimizer, batch, lr=0.1):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        optimizer = optimizer.apply_gradient(grads)
        return optimizer.replace(target=decayed(optimizer.target, lr * 0.1))
    """,
        BEFORE,
        ".replace(target",
    ),
    "decay behind the step, by a local": (
        """
    def train(optimizer, batch, lr=0.1):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        stepped = optimizer.apply_gradient(grads)
        params = decayed(stepped.target, lr * 0.1)
        return stepped.replace(target=params)
    """,
        BEFORE,
        ".replace(target",
    ),
    "added up by a helper": (
        """
    def train(optimizer, parts):
        grads = averaged_gradient(jax.grad(loss_fn), optimizer.target, parts)
        return optimizer.apply_gradient(grads)
    """,
        ADDED,
        "total + new",
    ),
    "added up with a loop of JAX": (
        """
    def train(optimizer, parts):
        def add(index, total):
            loss, more = jax.value_and_grad(loss_fn)(optimizer.target, parts[index])
            return jax.tree_util.tree_map(jnp.add, total, more)

        zeros = jax.tree_util.tree_map(jnp.zeros_like, optimizer.target)
        return optimizer.apply_gradient(jax.lax.fori_loop(0, 4, add, zeros))
    """,
        ADDED,
        "jnp.add",
    ),
    "a guard by `cond`": (
        """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        return jax.lax.cond(all_finite(grads), lambda opt: opt.apply_gradient(grads), lambda opt: opt, optimizer)
    """,
        GUARDED,
        "lax.cond",
    ),
    "a guard by `cond` of two functions": (
        """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)

        def step(opt):
            return opt.apply_gradient(grads)

        def skip(opt):
            return opt

        good = all_finite(grads)
        return jax.lax.cond(good, step, skip, optimizer)
    """,
        GUARDED,
        "lax.cond",
    ),
    "a guard by `if`": (
        """
    def train(optimizer, batch):
        loss, grads = jax.value_and_grad(loss_fn)(optimizer.target, batch)
        if not jnp.isnan(loss):
            optimizer = optimizer.apply_gradient(grads)
        return optimizer
    """,
        GUARDED,
        "if not",
    ),
    "a guard leaf by leaf": (
        """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        good = all_finite(grads)
        stepped = optimizer.apply_gradient(grads)
        return jax.tree_util.tree_map(lambda new, old: jnp.where(good, new, old), stepped, optimizer)
    """,
        GUARDED,
        "jnp.where",
    ),
    "a guard leaf by leaf, by `partial`": (
        """
    def train(optimizer, batch):
        grads = jax.grad(loss_fn)(optimizer.target, batch)
        stepped = optimizer.apply_gradient(grads)
        return jax.tree_util.tree_map(functools.partial(jnp.where, all_finite(grads)), stepped, optimizer)
    """,
        GUARDED,
        "jnp.where",
    ),
}

TAIL = """
    def main(params, batch):
        optimizer = optim.Adam(0.1).create(params)
        return train(optimizer, batch)
    """


def told(text: str, style: Style) -> list[str]:
    """What is said of the sites, but for why a train state is none of variables."""
    sites = result_of(text, Options(style=style)).sites
    return [
        site.note
        for site in sites
        if site.note and "stays in one piece" not in site.note
    ]


@pytest.mark.parametrize("style", ["train-state", "functional"])
@pytest.mark.parametrize("function", SILENT.values(), ids=SILENT)
def test_nothing_is_told_of_what_only_looks_like_it(
    function: str, style: Style
) -> None:
    assert told(HEAD + function + TAIL, style) == []


@pytest.mark.parametrize("style", ["train-state", "functional"])
@pytest.mark.parametrize(("function", "said", "at"), TOLD.values(), ids=TOLD)
def test_what_stays_is_told_with_its_place_and_reason(
    function: str, said: str, at: str, style: Style
) -> None:
    text = HEAD + function + TAIL
    [line] = [
        number
        for number, line in enumerate(text.splitlines()[1:], 1)
        if at in line and number > 12
    ]
    [note] = told(text, style)
    assert note.startswith(said.format(line=line))
    assert "optim." not in migrated(text, Options(style=style))
