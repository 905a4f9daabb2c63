"""Names of the program become placeholders with values; what can be evaluated stays."""

import ast

import pytest

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.texts import Sample, sampled_texts
from tests.codemods.programs import table

STAY = {
    "literals": ("optim.Adam(1e-3, beta2=0.99)", "optax.adam(1e-3, b2=0.99)"),
    "arithmetic on literals": ("optim.Adam(0.1 * 2 ** -3)", "optax.adam(0.1 * 2 ** -3)"),
    "modules that are known": ("optim.Adam(float(np.float32(0.1)))", "optax.adam(float(np.float32(0.1)))"),
    "a predicate of its own": (
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'bias' in path), optim.Adam(0.1)))",
        "partition_by_path((lambda path, _: 'bias' in path, optax.adam(0.1)))",
    ),
    "what is no optimizer": ("optim.DynamicScale(fin_steps=0)", "optax.identity()"),
}  # fmt: skip
REPLACED = """
== a name
optim.Adam(lr)
optax.adam(lr)
optim.Adam(_0)
optax.adam(_0)
== an attribute, whole
optim.Adam(config.optim.lr)
optax.adam(config.optim.lr)
optim.Adam(_0)
optax.adam(_0)
== a call of the program, whole
optim.Adam(schedule(0))
optax.adam(schedule(0))
optim.Adam(_0)
optax.adam(_0)
== within arithmetic
optim.Adam(FLAGS.lr * n['devices'] / 8)
optax.adam(FLAGS.lr * n['devices'] / 8)
optim.Adam(_0 * _1 / 8)
optax.adam(_0 * _1 / 8)
== the length of a name
optim.Adam(0.4 / len(x))
optax.adam(0.4 / len(x))
optim.Adam(0.4 / _0)
optax.adam(0.4 / _0)
== the same text on both sides, under other keywords
optim.Adam(lr, beta1=b, beta2=c)
optax.adam(lr, b2=c, b1=b)
optim.Adam(_0, beta1=_1, beta2=_2)
optax.adam(_0, b2=_2, b1=_1)
== a predicate of the program
optim.MultiOptimizer((optim.ModelParamTraversal(is_bias), optim.Adam(lr)))
partition_by_path((is_bias, optax.adam(lr)))
optim.MultiOptimizer((optim.ModelParamTraversal(_0), optim.Adam(_1)))
partition_by_path((_0, optax.adam(_1)))
"""


def sample(old: str, new: str) -> Sample:
    helper = "def partition_by_path(*groups): ..."
    return sampled_texts(EmittedOptimizer("", 1, "", "", old, new, False, (helper,)))


@pytest.mark.parametrize(("old", "new"), STAY.values(), ids=STAY)
def test_stays(old: str, new: str) -> None:
    found = sample(old, new)
    assert eval_free(found.legacy) == eval_free(old)
    assert eval_free(found.optax) == eval_free(new)
    assert found.values == {}


@pytest.mark.parametrize(("old", "new", "legacy", "optax"), table(REPLACED))
def test_replaced(old: str, new: str, legacy: str, optax: str) -> None:
    found = sample(old, new)
    assert (found.legacy, found.optax) == (legacy, optax)


def test_values_fit_their_parameters_and_differ() -> None:
    new = "optax.adamw(a, b1=b, b2=c, eps=d, weight_decay=e)"
    values = [*sample("optim.Adam(a, b, c, d, e)", new).values.values()]
    assert len(set(values)) == 5
    assert 0.8 < values[1] < values[2] < 1.1
    assert values[3] < 1e-5


def test_sampled_predicates_choose_different_leaves() -> None:
    found = sample(
        "optim.MultiOptimizer((optim.ModelParamTraversal(f), optim.Adam(1)), (optim.ModelParamTraversal(g), optim.Adam(2)))",
        "partition_by_path((f, optax.adam(1)), (g, optax.adam(2)))",
    )
    first, second = found.values.values()
    leaves = (
        "Dense_0/kernel",
        "Dense_0/bias",
        "BatchNorm_0/scale",
        "Embed_0/embedding",
    )
    for leaf in leaves:
        assert not (first(f"/{leaf}", None) and second(f"/{leaf}", None))


def eval_free(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))
