"""Helpers come with the imports that they need, unless a name of these is something else in the file."""

from __future__ import annotations

import pytest

from codemods import Source, migrate

PROGRAM = """\
{names}
from flax import optim


def train(params, grads):
    optimizer = optim.LAMB(1e-3, weight_decay=0.1).create(params)
    {within}
    return optimizer.apply_gradient(grads)
"""


def outcome(names: str, within: str = "print(1)") -> tuple[str, set[str]]:
    """The new code of a program in which some names are bound, and the codes of what is left."""
    text = PROGRAM.format(names=names, within=within)
    [result] = migrate([Source("train.py", text.encode())])
    left = {site.code for site in result.sites if site.status == "unresolved"}
    return result.after.decode(), left


@pytest.mark.parametrize(
    "names",
    [
        pytest.param("import numpy as jnp", id="another package"),
        pytest.param("def jnp(x):\n    return x\n", id="a function"),
        pytest.param("import os\njnp = os.environ", id="a variable"),
        pytest.param(
            "import jax.numpy as jnp\nfor jnp in range(3):\n    pass", id="also a loop"
        ),
    ],
)
def test_a_name_that_is_something_else_keeps_the_optimizer(names: str) -> None:
    after, left = outcome(names)
    assert after == PROGRAM.format(names=names, within="print(1)")
    assert left == {"FO919"}


@pytest.mark.parametrize(
    ("names", "within"),
    [
        pytest.param("import os", "print(1)", id="no such name"),
        pytest.param("import jax.numpy as jnp", "print(jnp.e)", id="the same import"),
        pytest.param(
            "from jax import numpy as jnp",
            "print(jnp.e)",
            id="the same, written otherwise",
        ),
        pytest.param("import os", "jnp = 2", id="a variable of a function"),
    ],
)
def test_it_migrates_where_the_name_is_free_or_the_same(
    names: str, within: str
) -> None:
    after, left = outcome(names, within)
    assert not left
    assert after.count("jnp.linalg.norm(param)") == 1
