"""The verdict on every form that was measured by hand: the right ones are the same function, the tempting ones are not."""

from __future__ import annotations

import pytest

from codemods.model import EmittedOptimizer
from codemods.optimizers.multi_optimizer import PARTITION_BY_PATH
from optim2optax.parity.cases import optimizer_case
from optim2optax.parity.reports.result import Outcome
from tests.codemods.optimizers.conversion import converted, supports
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel")

IDENTICAL = {
    "optim.GradientDescent(0.1)": "optax.sgd(0.1)",
    "optim.Momentum(0.1, 0.8)": "optax.sgd(0.1, momentum=0.8)",
    "optim.Momentum(0.1, 0.8, nesterov=True)": "optax.sgd(0.1, momentum=0.8, nesterov=True)",
    "optim.Momentum(0.1, weight_decay=0.01)": "optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.1, momentum=0.9))",
}
SAME = {
    "optim.Adam(0.01, 0.8, 0.99, 1e-6)": "optax.adam(0.01, b1=0.8, b2=0.99, eps=1e-6)",
    "optim.Adam(0.01, weight_decay=0.1)": "optax.adamw(0.01, weight_decay=0.1)",
    "optim.AdaBelief(0.01, eps=1e-6)": "optax.adabelief(0.01, eps=1e-6, eps_root=1e-6)",
    "optim.AdaBelief(0.01, weight_decay=0.1)": (
        "optax.chain(optax.scale_by_belief(), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(0.01))"
    ),
    "optim.Adadelta(0.5, 0.8, 1e-5)": "optax.adadelta(0.5, rho=0.8, eps=1e-5)",
    "optim.Adadelta(0.5, weight_decay=0.1)": (
        "optax.chain(optax.scale_by_adadelta(), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(0.5))"
    ),
    "optim.Adafactor(0.01)": "optax.adafactor(0.01)",
    "optim.LARS(0.1)": "optax.lars(0.1, momentum=0.9)",
}
EMITTED = (
    "optim.Adafactor(0.01, epsilon2=1e-2)",
    "optim.Adagrad(0.1, 1e-6)",
    "optim.LAMB(0.01, weight_decay=0.1)",
    "optim.LARS(0.1, weight_decay=0.05)",
    "optim.WeightNorm(optim.Adam(0.01), 0.05)",
    "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'kernel' in path), optim.Adam(0.01)))",
)
OTHER = {
    "AdaBelief's epsilon outside of the root alone": (
        "optim.AdaBelief(0.01, eps=1e-6)",
        "optax.adabelief(0.01, eps=1e-6)",
    ),
    "Adadelta's decay by the alias": (
        "optim.Adadelta(0.5, weight_decay=0.1)",
        "optax.adadelta(0.5, weight_decay=0.1)",
    ),
    "Adafactor's second epsilon": (
        "optim.Adafactor(0.01, epsilon2=1e-2)",
        "optax.adafactor(0.01)",
    ),
    "Adagrad by the alias": ("optim.Adagrad(0.01)", "optax.adagrad(0.01)"),
    "LAMB by the alias": ("optim.LAMB(0.01)", "optax.lamb(0.01)"),
    "LARS' decay by the alias": (
        "optim.LARS(0.1, weight_decay=0.05)",
        "optax.lars(0.1, weight_decay=0.05)",
    ),
    "RMSProp's epsilon in the root": ("optim.RMSProp(0.01)", "optax.rmsprop(0.01)"),
    "Momentum's decay behind the trace": (
        "optim.Momentum(0.1, weight_decay=0.01)",
        "optax.chain(optax.trace(0.9), optax.add_decayed_weights(0.01), optax.scale_by_learning_rate(0.1))",
    ),
    "adamw with its own default": ("optim.Adam(0.01)", "optax.adamw(0.01)"),
    "a rate off by 1e-7": ("optim.Adam(0.01)", "optax.adam(0.01 * (1 + 1e-7))"),
    "beta2 off by 1e-7": ("optim.Adam(0.01)", "optax.adam(0.01, b2=0.999 + 1e-7)"),
    "epsilon off by a tenth": ("optim.Adam(0.01)", "optax.adam(0.01, eps=1.1e-8)"),
    "decay behind the partition": (
        (
            "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'kernel' in path), "
            "optim.Momentum(0.1, weight_decay=0.01)))"
        ),
        (
            "optax.chain(partition_by_path((lambda path, _: 'kernel' in path, optax.sgd(0.1, momentum=0.9))), "
            "optax.add_decayed_weights(-0.001))"
        ),
    ),
    "masks in a chain, with leaves that none covers": (
        "optim.MultiOptimizer((optim.ModelParamTraversal(lambda path, _: 'kernel' in path), optim.Adam(0.01)))",
        (
            "optax.chain(optax.masked(optax.adam(0.01), lambda params: jax.tree_util.tree_map_with_path("
            "lambda path, _: 'kernel' in jax.tree_util.keystr(path), params)))"
        ),
    ),
}


def outcome(legacy: str, new: str, rate_at_each_step: bool = False) -> Outcome:
    needed = tuple(
        "\n".join((*support.imports, support.source))
        for support in (*supports(legacy), PARTITION_BY_PATH)
    )
    emitted = EmittedOptimizer(
        "Any", 1, legacy, new, legacy, new, rate_at_each_step, needed
    )
    case = optimizer_case(legacy, emitted, steps=100, seed=0)
    assert case.outcome is not Outcome.COULD_NOT_RUN, case.reason
    return case.outcome


@pytest.mark.parametrize(
    ("legacy", "new"),
    thinned(
        {legacy: (legacy, new) for legacy, new in IDENTICAL.items()},
        "optim.Momentum(0.1, weight_decay=0.01)",
    ),
)
def test_identical(legacy: str, new: str) -> None:
    assert outcome(legacy, new) is Outcome.IDENTICAL


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(
    ("legacy", "new"),
    thinned(
        {legacy: (legacy, new) for legacy, new in SAME.items()},
        "optim.Adam(0.01, weight_decay=0.1)",
        "optim.AdaBelief(0.01, eps=1e-6)",
        "optim.LARS(0.1)",
    ),
)
def test_the_same_function(legacy: str, new: str) -> None:
    assert outcome(legacy, new) is not Outcome.DIFFERENT


def test_the_same_function_though_it_overflows_in_float32() -> None:
    """It does so on both sides, compiled as for users."""
    new = "optax.rmsprop(0.01, decay=0.9, eps=1e-8, centered=True, eps_in_sqrt=False)"
    assert outcome("optim.RMSProp(0.01, centered=True)", new) is not Outcome.DIFFERENT


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(
    "legacy", thinned({one: one for one in EMITTED}, EMITTED[0], EMITTED[-1])
)
def test_where_optax_has_no_equal_form(legacy: str) -> None:
    assert outcome(legacy, converted(legacy)) is not Outcome.DIFFERENT


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(
    ("legacy", "new"),
    thinned(
        OTHER,
        "RMSProp's epsilon in the root",
        "adamw with its own default",
        "beta2 off by 1e-7",
        "decay behind the partition",
    ),
)
def test_another_function(legacy: str, new: str) -> None:
    assert outcome(legacy, new) is Outcome.DIFFERENT


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(
    ("late", "expected"), [(0, Outcome.EQUIVALENT), (1, Outcome.DIFFERENT)]
)
def test_a_schedule_off_by_one(late: int, expected: Outcome) -> None:
    new = f"optax.adam(lambda count: 0.021 * 0.97 ** (count + {late}))"
    assert outcome("optim.Adam(0.01)", new, rate_at_each_step=True) is expected
