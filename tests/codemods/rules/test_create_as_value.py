"""`create` and `apply_gradient` as values become functions; whole programs, before and after."""

import pytest

from tests.generated.verdicts import verdict

HEAD = """\
import functools

import jax
import jax.numpy as jnp
from flax import optim


def run(params, batches):
    grads = jax.tree_util.tree_map(jnp.ones_like, params)
"""

PROGRAMS = {
    "a definition that is another one later": """
    definition = optim.Momentum(0.1, beta=0.5)
    create = definition.create
    definition = optim.Momentum(0.9)
    first, second = create(params), definition.create(params)
""",
    "a table": """
    table = {"adam": optim.Adam(0.1).create, "sgd": optim.GradientDescent(0.1).create}
    first, second = (table[name](params) for name in ("adam", "sgd"))
""",
    "a default": """
    def start(params, create=optim.Adam(0.1).create):
        return create(params)

    first, second = start(params), start(params, optim.Momentum(0.1).create)
""",
    "steps in a variable": """
    first = second = optim.Adam(0.1).create(params)
    for _ in range(2):
        apply = first.apply_gradient
        first = second
        first = apply(grads=grads)
    step = second.apply_gradient
    second = step(grads)
""",
    "a step that is compiled": """
    first = second = optim.Adam(0.1).create(params)
    step = jax.jit(first.apply_gradient)
    first, second = step(grads), jax.jit(second.apply_gradient)(grads)
""",
}
TAIL = """
    for _ in batches:
        first, second = (one.apply_gradient(grads) for one in (first, second))
    return [first.target, second.target], []
"""


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_trains_the_same(program: str) -> None:
    found = verdict({"train.py": f"{HEAD}{program}{TAIL}"})
    assert found.kind == "equal", found
