"""What docs/faq.md says about numbers, and docs/guide does not measure."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optim2optax.legacy import legacy_optim

HALF = {"w": jnp.ones(3, jnp.bfloat16)}
HALF_GRADS = {"w": jnp.full(3, 0.1, jnp.bfloat16)}


def adam_with_rate(rate: float) -> optax.GradientTransformation:
    """Adam whose steps may set the learning rate."""
    descent = optax.inject_hyperparams(optax.scale_by_learning_rate)(rate)
    return optax.chain(optax.scale_by_adam(), descent)


def stepped(tx: Any, params: Any, grads: Any, steps: int) -> Any:
    @jax.jit
    def step(params: Any, state: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    state = jax.jit(tx.init)(params)
    for _ in range(steps):
        params, state = step(params, state)
    return params


@pytest.mark.usefixtures("legacy_wheel")
def test_legacy_adam_never_moved_bfloat16_and_optax_does() -> None:
    with legacy_optim() as optim:
        optimizer = optim.Adam(0.01).create(HALF)
        for _ in range(5):
            optimizer = jax.jit(optim.Optimizer.apply_gradient)(optimizer, HALF_GRADS)

    assert (optimizer.target["w"] == HALF["w"]).all()
    assert (stepped(optax.adam(0.01), HALF, HALF_GRADS, 5)["w"] < HALF["w"]).all()
    assert optimizer.state.param_states["w"].grad_ema.dtype == jnp.bfloat16


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize(
    ("name", "tx"),
    [
        ("RMSProp", optax.rmsprop(0.01, decay=0.9, eps=1e-8, eps_in_sqrt=False)),
        ("Adafactor", optax.adafactor(0.01)),
    ],
)
def test_rmsprop_and_adafactor_are_nearer_to_each_other_in_bfloat16_than_to_float32(
    name: str, tx: Any
) -> None:
    draws = np.random.RandomState(0).randn(31, 8, 8)
    with legacy_optim() as optim:

        def legacy(dtype: Any) -> Any:
            params, grads = jnp.asarray(draws[:2], dtype)
            optimizer = getattr(optim, name)(0.01).create(params)
            for _ in range(30):
                optimizer = jax.jit(optim.Optimizer.apply_gradient)(optimizer, grads)
            return np.asarray(optimizer.target, np.float64)

        old, exact = legacy(jnp.bfloat16), legacy(jnp.float32)
    params, grads = jnp.asarray(draws[:2], jnp.bfloat16)
    new = stepped(tx, params, grads, 30)
    apart = np.abs(np.asarray(new, np.float64) - old).max()

    assert np.abs(exact - draws[0]).max() > 0.1
    assert apart < np.abs(old - exact).max()


@pytest.mark.usefixtures("legacy_wheel")
def test_legacy_made_floats_of_whole_numbers_and_optax_keeps_them() -> None:
    params, grads = {"w": jnp.asarray([4, 5])}, {"w": jnp.asarray([0.5, 3.0])}
    with legacy_optim() as optim:
        optimizer = optim.GradientDescent(0.5).create(params).apply_gradient(grads)

    np.testing.assert_allclose(optimizer.target["w"], [3.75, 3.5])
    assert stepped(optax.sgd(0.5), params, grads, 1)["w"].tolist() == [3, 3]
    with pytest.raises(TypeError, match="int"):
        jax.grad(lambda params: params["w"].sum())(params)


def test_moments_are_as_precise_as_the_parameters_unless_mu_dtype_is_set() -> None:
    for mu_dtype, first in ((None, jnp.bfloat16), (jnp.float32, jnp.float32)):
        moments = optax.adam(0.01, mu_dtype=mu_dtype).init(HALF)[0]
        assert (moments.mu["w"].dtype, moments.nu["w"].dtype) == (first, jnp.bfloat16)


def test_constants_that_are_injected_are_rounded_to_bfloat16() -> None:
    everything = optax.inject_hyperparams(optax.adam)(0.01)
    rate_alone = adam_with_rate(0.01)

    assert jnp.isnan(stepped(everything, HALF, HALF_GRADS, 1)["w"]).all()
    assert (stepped(rate_alone, HALF, HALF_GRADS, 1)["w"] < HALF["w"]).all()


def test_an_injected_rate_changes_without_another_compilation_and_can_be_read() -> None:
    tx = adam_with_rate(0.1)
    traced = []

    @jax.jit
    def step(state: Any, rate: float) -> Any:
        traced.append(rate)
        state = optax.tree_utils.tree_set(state, learning_rate=rate)
        return tx.update({"w": jnp.ones(3)}, state, {"w": jnp.ones(3)})[1]

    state = tx.init({"w": jnp.ones(3)})
    for rate in (0.1, 0.2, 0.3):
        state = step(state, rate)

    assert len(traced) == 1
    assert np.isclose(optax.tree_utils.tree_get(state, "learning_rate"), 0.3)


def test_apply_if_finite_gives_in() -> None:
    tx = optax.apply_if_finite(optax.sgd(0.1), max_consecutive_errors=2)
    infinite = {"w": jnp.full(1, jnp.inf)}

    assert stepped(tx, {"w": jnp.ones(1)}, infinite, 2)["w"] == 1
    assert not jnp.isfinite(stepped(tx, {"w": jnp.ones(1)}, infinite, 3)["w"])


def test_adamw_decays_if_nothing_is_said() -> None:
    params = {"w": jnp.ones(1)}
    zero = {"w": jnp.zeros(1)}
    unsaid = stepped(optax.adamw(0.1), params, zero, 1)
    assert stepped(optax.adam(0.1), params, zero, 1)["w"] == 1
    assert np.isclose(unsaid["w"], 1 - 0.1 * 1e-4, rtol=1e-8)


@pytest.mark.usefixtures("legacy_wheel")
def test_legacy_lamb_never_moved_zeros_and_that_of_optax_does() -> None:
    params, grads = {"bias": jnp.zeros(2)}, {"bias": jnp.ones(2)}
    with legacy_optim() as optim:
        optimizer = optim.LAMB(0.1).create(params)
        optimizer = jax.jit(optim.Optimizer.apply_gradient)(optimizer, grads)

    assert (optimizer.target["bias"] == 0).all()
    assert (stepped(optax.lamb(0.1), params, grads, 1)["bias"] < 0).all()
