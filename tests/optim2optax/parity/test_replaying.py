"""Learning rates that are set in the state of a transformation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from optim2optax.parity.replaying import with_rate

PARAMS = {"learning_rate": jnp.ones(3), "hyperparams": {"w": jnp.ones(2)}}


def test_a_state_without_one_stays_as_it_is() -> None:
    state = optax.adam(0.1).init(PARAMS)
    new = with_rate(state, 0.5)
    jax.tree_util.tree_map(np.testing.assert_array_equal, state, new)


def test_a_parameter_of_that_name_keeps_its_moments() -> None:
    adam = optax.inject_hyperparams(optax.adam)(0.1)
    state = optax.chain(optax.clip(1.0), adam).init(PARAMS)
    new = with_rate(state, 0.5)
    assert new[1].hyperparams == {**state[1].hyperparams, "learning_rate": 0.5}
    jax.tree_util.tree_map(np.testing.assert_array_equal, state[1][2:], new[1][2:])


def test_no_rate_leaves_each_its_own() -> None:
    sgd = optax.inject_hyperparams(optax.sgd)
    groups = {"a": sgd(0.1), "b": sgd(0.2)}
    labels = {"learning_rate": "a", "hyperparams": "b"}
    state = optax.transforms.partition(groups, labels).init(PARAMS)
    found = [
        optax.tree_utils.tree_get_all_with_path(with_rate(state, rate), "learning_rate")
        for rate in (jnp.nan, 0.5)
    ]
    rates = [
        [float(value) for path, value in each if "hyperparams" in str(path[-2])]
        for each in found
    ]
    np.testing.assert_allclose(rates, [[0.1, 0.2], [0.5, 0.5]], rtol=1e-6)
