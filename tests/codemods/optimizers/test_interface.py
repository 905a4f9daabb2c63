"""The classes that keep the interface of legacy definitions, against the real ones."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import optax
import pytest
from _pytest.mark import ParameterSet
from flax import serialization
from flax.traverse_util import ModelParamTraversal

from codemods.optimizers import optimizers
from codemods.optimizers.interface import interface_of
from optim2optax.legacy import legacy_optim
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.optimizer.same_function import compare_transformations
from optim2optax.precision import double_everywhere
from tests.codemods.optimizers.test_numerics import (
    ARGUMENTS,
    BIASES,
    HIDING,
    KERNELS,
    PARAMS,
    VECTORS_AND_KERNELS,
    source,
)

pytestmark = pytest.mark.usefixtures("legacy_wheel")


class Optim:
    """What is emitted, as a module like `flax.optim`."""

    def __init__(self) -> None:
        found = [support for name in optimizers() for support in interface_of(name)]
        self.__dict__.update({"optax": optax})
        for support in dict.fromkeys(found):
            exec("\n".join(support.imports) + "\n" + support.source, self.__dict__)


EMITTED: Any = Optim()


def of_leaves() -> Iterator[ParameterSet]:
    """Each optimizer by default, with each argument alone, and with all together."""
    for name, (_, *others) in ARGUMENTS.items():
        together = [other for other in others if other not in HIDING]
        yield pytest.param(source(name))
        if together:
            yield pytest.param(source(name, *together))
        for other in others:
            marks = [] if other in HIDING else [pytest.mark.thorough]
            if [other] != together:
                yield pytest.param(source(name, other), marks=marks)


OF_TREES = (
    "optim.WeightNorm(optim.Adam(0.01, weight_decay=0.1), 0.05, 1e-3)",
    "optim.WeightNorm(wrapped_optimizer=optim.Momentum(0.01), wn_eps=1e-3, wn_decay=0.05)",
    f"optim.MultiOptimizer(({KERNELS}, optim.Adam(0.01, weight_decay=0.1)), ({BIASES}, optim.LAMB(0.02)))",
    f"optim.MultiOptimizer(({KERNELS}, optim.RMSProp(0.01, centered=True)))",
)


def pair(text: str) -> tuple[Any, Any]:
    """What a text makes of the real classes, and of those that are emitted."""
    names = {"ModelParamTraversal": ModelParamTraversal}
    with legacy_optim() as optim:
        old = eval(text, {"optim": optim, **names})
    return old, eval(text, {"optim": EMITTED, **names})


ALL = [*(f"optim.{name}(0.1)" for name in ARGUMENTS), *OF_TREES[1:3]]


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("text", ALL)
def test_as_a_transformation_it_is_the_same_function(text: str) -> None:
    old, new = pair(text)
    options: Any = {"steps": 100, "params": VECTORS_AND_KERNELS}
    comparison = compare_transformations(old, new, **options)
    assert comparison.verdict is not Verdict.DIFFERENT, comparison
    assert comparison.error < 1e-11


@pytest.mark.parametrize("text", [*of_leaves(), *OF_TREES])
def test_its_methods_give_the_same_to_the_last_bit(text: str) -> None:
    with double_everywhere():
        old, new = pair(text)
        results = [list(steps(definition)) for definition in (old, new)]
    for before, after in zip(*results, strict=True):
        assert before[0] == after[0]
        jax.tree_util.tree_map(np.testing.assert_array_equal, before[1:], after[1:])


def steps(definition: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The names of the hyperparameters, parameters and the state, as dicts, over some steps with rates of their own."""
    random = np.random.default_rng(0)
    params: Any = jax.tree_util.tree_map(np.asarray, VECTORS_AND_KERNELS)
    state = definition.init_state(params)
    for number in range(4):
        hyper_params = (
            definition.update_hyper_params(learning_rate=0.01 / (1 + number))
            if number
            else definition.hyper_params
        )
        grads = jax.tree_util.tree_map(lambda p: random.normal(size=p.shape), params)
        params, state = definition.apply_gradient(hyper_params, params, state, grads)
        yield fields(hyper_params), params, serialization.to_state_dict(state)


def fields(hyper_params: Any) -> list[str]:
    several = hyper_params if isinstance(hyper_params, list) else [hyper_params]
    return [word for one in several for word in vars(one)]


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_the_rule_of_one_parameter(name: str) -> None:
    with double_everywhere():
        old, new = pair(f"optim.{name}(0.1)")
        param = np.linspace(-1, 1, 6).reshape(2, 3)
        grad = np.linspace(0.5, -0.7, 6).reshape(2, 3)
        for definition in (old, new):
            definition.kept = definition.init_param_state(param)
        before, after = (
            one.apply_param_gradient(2, one.hyper_params, param, one.kept, grad)
            for one in (old, new)
        )
    np.testing.assert_array_equal(before[0], after[0])
    states = [serialization.to_state_dict(found[1]) for found in (before, after)]
    assert states[0].keys() == states[1].keys()


def test_groups_of_one_leaf_are_an_error() -> None:
    text = f"optim.MultiOptimizer(({KERNELS}, optim.Adam(0.1)), ({KERNELS}, optim.Momentum(0.1)))"
    for definition in pair(text):
        with pytest.raises(ValueError, match="Multiple optimizers match the same"):
            definition.init_state(PARAMS)


def test_optax_takes_it_as_it_is() -> None:
    clipped = optax.chain(optax.clip_by_global_norm(0.5), EMITTED.Adam(0.1))
    parts = {"a": EMITTED.Momentum(0.1), "b": optax.sgd(0.2)}
    divided = optax.transforms.partition(parts, {"kernel": "a", "bias": "b"})
    rated = optax.inject_hyperparams(EMITTED.Adam)(learning_rate=0.1)
    params = jax.tree_util.tree_map(np.float32, VECTORS_AND_KERNELS["Dense_0"])
    gathered = optax.MultiSteps(EMITTED.Adam(0.1), 2)
    for transformation in (clipped, divided, rated, gathered):
        updates, _ = transformation.update(params, transformation.init(params), params)
        assert updates.keys() == params.keys()
        assert np.isfinite(updates["kernel"]).all()
