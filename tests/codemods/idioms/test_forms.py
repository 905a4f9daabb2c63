"""The forms in which people clip a leaf, held against optax: for leaves and limits of all kinds, in float32 and float64."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

LIMITS = (
    *(1.0, 0.3, 7, 1e-9, 1e9, 0, 0.0, -0.0, -2.5, -3),
    *(math.inf, -math.inf, math.nan),
)
ELEMENTS = (
    0.0,
    -0.0,
    1e-30,
    -1e-30,
    1e-18,
    1e-6,
    0.25,
    -0.3,
    1.0,
    -1.5,
    7.0,
    1e6,
    -1e18,
    1e25,
    -1e38,
)
ODD = (math.inf, -math.inf, math.nan)


def trees(limit: float) -> list[list[float]]:
    """Elements of two leaves: near the limit and far from it, tiny and huge, and some that are no number."""
    draw = random.Random(0)
    near = [
        limit * factor
        for factor in (-2.0, -1.0, 0.5, 0.99999, 1.0, 1.00001, 2.0)
        if math.isfinite(limit)
    ]
    usual = [*ELEMENTS, *near]
    found = [[first, 0.0, 0.0] for first in (*usual, *ODD)]
    found += [draw.choices(usual, k=3) for _ in range(300)]
    found += [[*draw.choices(usual, k=2), draw.choice(ODD)] for _ in range(60)]
    return found


FORMS = {
    "minimum(1.0, L / N) * g": "optax.clip_by_global_norm",
    "where(N < L, g, L / N * g)": "optax.clip_by_global_norm",
    "clip(g, -L, L)": "optax.clip",
}


@pytest.mark.parametrize(
    "wide",
    [False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["x32", "x64"],
)
@pytest.mark.parametrize(("form", "function"), FORMS.items(), ids=FORMS)
def test_each_is_what_optax_computes(form: str, function: str, wide: bool) -> None:
    import jax
    import jax.numpy as jnp
    import optax

    def ours(tree: dict[str, Any], limit: float) -> Any:
        norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(tree)))
        names = {
            name: getattr(jnp, name) for name in ("minimum", "maximum", "where", "clip")
        }
        body = compile(form, form, "eval")
        return jax.tree.map(
            lambda leaf: eval(body, {"g": leaf, "N": norm, "L": limit, **names}), tree
        )

    with jax.enable_x64(wide):
        for limit in LIMITS:
            clip = eval(function, {"optax": optax})(limit)
            elements = jnp.asarray(trees(limit))
            tree = {"one": elements[:, :1], "other": elements[:, 1:]}
            computed = jax.vmap(lambda tree, limit=limit: ours(tree, limit))(tree)
            expected = jax.vmap(
                lambda tree, clip=clip: clip.update(tree, optax.EmptyState())[0]
            )(tree)
            kind = np.finfo(elements.dtype)
            scale = abs(limit) if limit and math.isfinite(limit) else 1.0
            vanishing = 2 * float(kind.tiny) * max(scale, 1 / scale)
            for name in tree:
                assert computed[name].dtype == expected[name].dtype
                mine, optaxs = (
                    np.asarray(found[name]) for found in (computed, expected)
                )
                np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(optaxs))
                kept = np.isfinite(mine)
                np.testing.assert_allclose(
                    mine[kept], optaxs[kept], rtol=8 * float(kind.eps), atol=vanishing
                )


def test_an_empty_tree_stays_empty() -> None:
    import optax

    assert optax.clip_by_global_norm(0.0).update({}, optax.EmptyState())[0] == {}
