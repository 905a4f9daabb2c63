from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from optim2optax.parity.scenario.driving import told_apart


def lines() -> list[Any]:
    """Two classes of one name and with the same fields, as of a file that is loaded twice."""

    def line() -> Any:
        @struct.dataclass
        class Line:
            slope: jax.Array
            offset: jax.Array
            name: str = struct.field(pytree_node=False, default="a")  # type: ignore[no-untyped-call]

        return Line

    return [line(), line()]


def structure(tree: Any) -> Any:
    return jax.tree_util.tree_structure(tree)


def test_they_are_what_they_were_but_for_that() -> None:
    plain, _ = lines()
    with told_apart():
        line, other = lines()
    assert structure(line(1.0, 2.0)) != structure(other(1.0, 2.0))
    for kind in (plain, line):
        node = kind(jnp.ones(2), jnp.zeros(()), "b")
        leaves, _ = jax.tree_util.tree_flatten_with_path(node)
        paths = [jax.tree_util.keystr(path) for path, _ in leaves]
        assert paths == [".slope", ".offset"]
        assert structure(node) != structure(node.replace(name="c"))
        gradient = jax.jit(jax.grad(lambda node: jnp.sum(node.slope) * node.offset))
        gradients = gradient(node)
        assert isinstance(gradients, kind)
        assert (gradients.name, float(gradients.offset)) == ("b", 2.0)
