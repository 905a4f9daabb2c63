"""Programs of which inference says too little or too much, each with what it says."""

import pytest

from tests.codemods.inference.asking import assert_answers
from tests.codemods.programs import migrated, table

KNOWN_GAPS = """
== an optimizer for each leaf
unknown: what the function of a tree_map gives is dropped
every = jax.tree_map(lambda leaf: optim.Adam().create(leaf), params)  # makes: made
every["a"].target  # is: made
== leaves that are optimizers
what `is_leaf` gives is an answer, too
pair = [optim.Adam().create(params)]  # makes: made
pair = jax.tree_map(step, pair, is_leaf=lambda x: isinstance(x, optim.Optimizer))
pair[0].target  # is: made
== the name that a context manager enters
the context manager, too
class Scope:
    def __enter__(self):
        return optim.Adam().create(params)  # makes: made

    def __exit__(self, *args):
        pass

with Scope() as optimizer:
    optimizer.target  # is: made
== the name that a generator enters
the generator, too
@contextlib.contextmanager
def timed(optimizer):
    yield optimizer

with timed(optim.Adam().create(params)) as optimizer:  # makes: made
    optimizer.target  # is: made
== a method of the class of optimizers
no optimizer: `Optimizer.apply_gradient` is not modelled as a function
made = optim.Adam().create(params)  # makes: made
optim.Optimizer.apply_gradient(made, grads).target  # is: made
"""


@pytest.mark.parametrize(("says", "text"), table(KNOWN_GAPS, values=2))
@pytest.mark.xfail(strict=True)
def test_known_gap(says: str, text: str) -> None:
    assert_answers(text)


LOOKED_INTO = (
    "models",
    "tuple(models)",
    "[same(one) for one in models]",
    "map(same, models)",
    "sorted(models)",
    "reversed(models)",
    "filter(None, models)",
    "models[1:]",
    "zip(models)",
    "dict(zip(names, models)).values()",
)


@pytest.mark.parametrize("models", LOOKED_INTO)
def test_what_a_container_holds_is_looked_into(models: str) -> None:
    """The leaves of these optimizers are used as arrays, so their steps are arrays."""
    text = f"""
        import jax
        from flax import optim

        def same(optimizer):
            return optimizer

        def mean_of(models):
            return jax.tree_util.tree_map(
                lambda *leaves: sum(leaf.mean() for leaf in leaves), *{models})

        def train(params, names):
            return mean_of([optim.Adam(0.1).create(params) for name in names])
        """

    assert ".replace(step=" in migrated(text)
