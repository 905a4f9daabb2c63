"""Each conversion against the real legacy optimizer: the same gradients, float64, a hundred steps."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from _pytest.mark import ParameterSet
from flax.core import freeze
from flax.traverse_util import ModelParamTraversal

from codemods.model import Form
from optim2optax.legacy import legacy_optim
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.optimizer.same_function import compare_transformations
from tests.codemods.optimizers.conversion import converted, transformation

pytestmark = pytest.mark.usefixtures("legacy_wheel", "judged")

ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "GradientDescent": {"learning_rate": "0.01"},
    "Momentum": {"learning_rate": "0.01", "beta": "0.8", "weight_decay": "0.05", "nesterov": "True"},
    "Adam": {"learning_rate": "0.01", "beta1": "0.8", "beta2": "0.99", "eps": "1e-4", "weight_decay": "0.1"},
    "AdaBelief": {"learning_rate": "0.01", "beta1": "0.8", "beta2": "0.99", "eps": "1e-6", "weight_decay": "0.1"},
    "Adadelta": {"learning_rate": "0.5", "rho": "0.8", "eps": "1e-4", "weight_decay": "0.1"},
    "Adafactor": {
        "learning_rate": "0.01", "factored": "False", "multiply_by_parameter_scale": "False", "beta1": "0.8",
        "decay_rate": "0.7", "step_offset": "-3", "clipping_threshold": "0.5", "weight_decay_rate": "1e-3",
        "min_dim_size_to_factor": "2", "epsilon1": "1e-3", "epsilon2": "0.2",
    },
    "Adagrad": {"learning_rate": "0.01", "eps": "1e-3"},
    "LAMB": {"learning_rate": "0.01", "beta1": "0.8", "beta2": "0.99", "weight_decay": "0.1", "eps": "1e-3"},
    "LARS": {
        "learning_rate": "0.1", "beta": "0.8", "weight_decay": "0.05", "trust_coefficient": "0.01", "eps": "1e-2",
        "nesterov": "True",
    },
    "RMSProp": {"learning_rate": "0.01", "beta2": "0.8", "eps": "1e-3", "centered": "True"},
}  # fmt: skip
"""A learning rate for each optimizer, and for each other argument a value that is not its default."""


FORMS: tuple[Form, ...] = ("alias", "chain")
HIDING = ("factored", "multiply_by_parameter_scale")
"""Arguments of Adafactor that leave others without effect."""

PARAMS = {
    "Dense_0": {"kernel": np.linspace(-0.5, 0.6, 12).reshape(4, 3), "bias": np.zeros(3)},
    "tiny": {"kernel": np.linspace(0.1, -0.2, 24).reshape(2, 2, 2, 3)},
    "temperature": np.asarray(0.7),
}  # fmt: skip
"""Parameters of every rank, some zero. Those called tiny get tiny gradients, which show where epsilon stands."""


def source(name: str, *chosen: str) -> str:
    words = [f"{one}={ARGUMENTS[name][one]}" for one in ("learning_rate", *chosen)]
    return f"optim.{name}({', '.join(words)})"


def cases() -> Iterator[ParameterSet]:
    """Each optimizer by default and with each argument alone; with all together in both forms, injected and not.

    Together, and alone where it hides others, each argument has its effect: alone, the others take longer than they tell more.
    """
    for name, (_, *others) in ARGUMENTS.items():
        together = [other for other in others if other not in HIDING]
        whole = source(name, *together)
        yield pytest.param(source(name), "alias", False)
        for other in others:
            marks = [] if other in HIDING else [pytest.mark.thorough]
            if [other] != together:
                yield pytest.param(source(name, other), "alias", False, marks=marks)
        for inject in (False, True):
            texts = {form: converted(whole, form, inject) for form in FORMS}
            if together or inject:
                yield pytest.param(whole, "alias", inject)
            if texts["alias"] != texts["chain"]:
                yield pytest.param(whole, "chain", inject)


def schedule(step: Any) -> Any:
    return 0.02 / (1.0 + step) + 0.001


def evaluated(text: str, optim: Any) -> Any:
    return eval(text, {"optim": optim, "ModelParamTraversal": ModelParamTraversal})


def compare(legacy: str, new: Any, **options: Any) -> Comparison:
    """Compare a legacy definition, as source text, with a gradient transformation."""
    with legacy_optim() as optim:
        definition = evaluated(legacy, optim)
    options = {"params": PARAMS, "steps": 100, **options}
    return compare_transformations(definition, new, **options)


def assert_equal(comparison: Comparison) -> None:
    assert comparison.verdict is not Verdict.DIFFERENT, comparison
    assert comparison.error < 1e-11
    assert comparison.steps >= 100


@pytest.mark.parametrize(("text", "form", "inject"), [*cases()])
def test_is_the_same_function(text: str, form: Form, inject: bool) -> None:
    new = transformation(text, form, inject)
    assert_equal(compare(text, new, overrides=schedule if inject else None))


@pytest.mark.parametrize("form", ["alias", "chain"])
def test_factors_large_matrices_alike(form: Form) -> None:
    params = {"embedding": np.linspace(-0.1, 0.1, 128 * 130).reshape(128, 130)}
    text = "optim.Adafactor(0.01)"
    assert_equal(compare(text, transformation(text, form), params=params))


# The comparison itself: it finds what is wrong by little


@pytest.mark.parametrize(
    ("legacy", "wrong"),
    [
        pytest.param("optim.LAMB(0.01, eps=1e-6)", "optim.LAMB(0.01, eps=1.1e-6)", id="LAMB, epsilon"),
        pytest.param("optim.RMSProp(0.01, eps=1e-8)", "optim.RMSProp(0.01, eps=1.1e-8)", id="RMSProp, epsilon"),
        pytest.param("optim.Adafactor(0.01)", "optim.Adafactor(0.01, decay_rate=0.8000001)", id="Adafactor, decay"),
    ],
)  # fmt: skip
def test_finds_a_wrong_number(legacy: str, wrong: str) -> None:
    assert compare(legacy, transformation(wrong)).verdict is Verdict.DIFFERENT


# WeightNorm

VECTORS_AND_KERNELS = {name: PARAMS[name] for name in ("Dense_0", "tiny")}


@pytest.mark.parametrize(
    ("text", "inject"),
    [
        ("optim.WeightNorm(optim.Adam(0.01))", False),
        ("optim.WeightNorm(optim.Adam(0.01, weight_decay=0.1), 0.05, 1e-3)", True),
        ("optim.WeightNorm(wrapped_optimizer=optim.Momentum(0.01), wn_eps=1e-3, wn_decay=0.05)", False),
        ("optim.WeightNorm(optim.LARS(0.1, weight_decay=0.05))", False),
        ("optim.WeightNorm(optim.GradientDescent(0.01), wn_decay=0.05)", True),
    ],
)  # fmt: skip
def test_weight_norm_is_the_same_function(text: str, inject: bool) -> None:
    new = transformation(text, inject=inject)
    overrides = schedule if inject else None
    assert_equal(compare(text, new, params=VECTORS_AND_KERNELS, overrides=overrides))


# MultiOptimizer

KERNELS = "ModelParamTraversal(lambda path, _: path.endswith('/kernel'))"
BIASES = "ModelParamTraversal(lambda path, _: path == '/Dense_0/bias')"
TINY = "ModelParamTraversal(lambda path, _: 'tiny' in path)"


GROUPS = {
    "one group, the rest frozen": (f"({KERNELS}, optim.Adam(0.01))", PARAMS, False),
    "two groups, leaves outside of both":
        (f"({KERNELS}, optim.Adam(0.01, weight_decay=0.1)), ({BIASES}, optim.LAMB(0.02))", PARAMS, True),
    "unpacked pairs, frozen dictionary":
        (f"*[({BIASES}, optim.Adagrad(0.01)), ({KERNELS}, optim.LARS(0.1, weight_decay=0.1))]", freeze(PARAMS), False),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "params", "inject"), GROUPS.values(), ids=GROUPS)
def test_multi_optimizer_is_the_same(groups: str, params: Any, inject: bool) -> None:
    text = f"optim.MultiOptimizer({groups})"
    new, overrides = transformation(text, inject=inject), schedule if inject else None
    assert_equal(compare(text, new, params=params, overrides=overrides))


def test_multi_optimizer_refuses_a_leaf_in_two_groups() -> None:
    text = f"optim.MultiOptimizer(({KERNELS}, optim.Adam(0.01)), ({TINY}, optim.Adam(0.02)))"

    with legacy_optim() as optim, pytest.raises(ValueError, match="Multiple optim"):
        evaluated(text, optim).create(PARAMS)
    with pytest.raises(ValueError, match="match the parameter /tiny/kernel"):
        transformation(text).init(PARAMS)


# The helpers that are emitted into the user's file

HELPED = [
    "optim.Adagrad(0.01)",
    "optim.LAMB(0.01)",
    "optim.LARS(0.1, weight_decay=0.1)",
]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
@pytest.mark.parametrize("text", [*HELPED, "optim.WeightNorm(optim.Adagrad(0.01))"])
def test_helpers_keep_the_type_of_the_parameters(text: str, dtype: Any) -> None:
    params = jax.tree_util.tree_map(
        lambda leaf: jnp.asarray(leaf, dtype), VECTORS_AND_KERNELS
    )
    optimizer = transformation(text)

    def step(carry: Any, _: None) -> tuple[Any, None]:
        params, state = carry
        gradients = jax.tree_util.tree_map(lambda leaf: leaf + 1, params)
        updates, state = optimizer.update(gradients, state, params)
        return (optax.apply_updates(params, updates), state), None

    (stepped, _), _ = jax.lax.scan(step, (params, optimizer.init(params)), length=3)

    trees = map(jax.tree_util.tree_leaves, (params, stepped))
    for before, after in zip(*trees, strict=True):
        assert after.dtype == dtype
        assert bool(jnp.isfinite(after).all())
        assert before.shape == after.shape


DECAYED = "optim.WeightNorm(optim.Adagrad(0.01), wn_decay=0.1)"


@pytest.mark.parametrize("text", [*HELPED, DECAYED])
def test_helpers_work_on_a_part_of_the_parameters(text: str) -> None:
    alone, part = VECTORS_AND_KERNELS["Dense_0"], transformation(text)
    whole = optax.transforms.partition(
        {"trained": part, "frozen": optax.set_to_zero()},
        {"a": {"kernel": "trained", "bias": "trained"}, "b": "frozen"},
    )
    params = {"a": alone, "b": np.ones(2)}

    updates, _ = whole.update(params, whole.init(params), params)
    expected, _ = part.update(alone, part.init(alone), alone)

    np.testing.assert_array_equal(updates["a"]["kernel"], expected["kernel"])
    np.testing.assert_array_equal(updates["a"]["bias"], expected["bias"])
    np.testing.assert_array_equal(updates["b"], 0.0)
