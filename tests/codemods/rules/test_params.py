"""Which class of train state is made: the plain one, or where that would fail one that takes any parameters."""

import pytest

from tests.codemods.programs import migrated

PLAIN = {
    "a dict": 'optim.Adam(1e-3).create({"w": jnp.zeros(3)})',
    "what a model made": 'optim.Adam(1e-3).create(model.init(key)["params"])',
    "a collection of variables": 'optim.Adam(1e-3).create(model["params"])',
    "variables from which it was taken": 'optim.Adam(1e-3).create(model.pop("params"))',
    "something that is given": "optim.Adam(1e-3).create(model)",
    "a frozen dict": "optim.Adam(1e-3).create(flax.core.freeze(model.start(key)))",
    "a dict of the user's own": "optim.Adam(1e-3).create(Named(w=z))",
    "an element of something": 'optim.Adam(1e-3).create(key["norm"]["scale"])',
    "a field of something": "optim.Adam(1e-3).create(key.temperature)",
    "what an unknown function gave": "optim.Adam(1e-3).create(model.start(key))",
}
ANY = {
    "an array": "optim.Adam(1e-3).create(jnp.zeros(3))",
    "an array that was set": "optim.Adam(1e-3).create(jnp.zeros(3).at[0].set(1.0))",
    "a number": "optim.Adam(1e-3).create(0.1)",
    "arithmetic on an array": "optim.Adam(1e-3).create(-jnp.ones(3) / 2)",
    "arithmetic on something unknown": "optim.Adam(1e-3).create(2.0 * key)",
    "arithmetic of something unknown": "optim.Adam(1e-3).create(key / 2.0)",
    "all leaves in one": "optim.Adam(1e-3).create(ravel_pytree(key)[0])",
    "a parameter annotated as an array": "optim.Adam(1e-3).create(z)",
    "a dataclass": "optim.Adam(1e-3).create(Decorated(z))",
    "an object with another decorator": "optim.Adam(1e-3).create(Kept(z))",
    "a dataclass by a decorator with options": "optim.Adam(1e-3).create(Frozen(z))",
    "a dataclass by its base": "optim.Adam(1e-3).create(Derived(z))",
}
PROGRAM = """
    import chex
    import flax
    import jax.numpy as jnp
    from flax import optim
    from jax.flatten_util import ravel_pytree

    class Named(dict):
        pass

    @registered
    class Kept:
        z: jnp.ndarray

    @flax.struct.dataclass
    class Decorated:
        z: jnp.ndarray

    @chex.dataclass(frozen=True)
    class Frozen:
        z: jnp.ndarray

    class Derived(flax.struct.PyTreeNode):
        z: jnp.ndarray

    def train(model, key, z: jnp.ndarray, grads):
        optimizer = {}
        return optimizer.apply_gradient(grads)
    """


@pytest.mark.parametrize("creation", PLAIN.values(), ids=PLAIN)
def test_plain(creation: str) -> None:
    assert "AnyParams" not in migrated(PROGRAM.format(creation))


@pytest.mark.parametrize("creation", ANY.values(), ids=ANY)
def test_any(creation: str) -> None:
    after = migrated(PROGRAM.format(creation))
    assert "    optimizer = AnyParamsTrainState.create(" in after


@pytest.mark.parametrize(
    ("params", "state"),
    [("z", "AnyParamsTrainState"), ('{"w": z}', "train_state.TrainState")],
)
def test_in_a_function_that_makes_the_optimizer(params: str, state: str) -> None:
    text = PROGRAM.format(f"jax.jit(optim.Adam(1e-3).create)({params})")
    after = migrated(text.replace("import chex", "import chex\n    import jax"))
    assert f"lambda params: {state}.create(" in after
    assert ("class AnyParamsTrainState" in after) == (state == "AnyParamsTrainState")


def test_unknown_parameters_are_like_those_beside_them() -> None:
    """A restored agent takes the same steps, so that its parameters are of the same kind."""
    after = migrated("""
        import jax.numpy as jnp
        from flax import optim

        class Agent:
            def __init__(self):
                self.temperature = optim.Adam(1e-3).create(jnp.log(0.1))
                self.network = optim.Adam(1e-3).create({"w": jnp.zeros(3)})

            def restore(self, bundle):
                self.temperature = optim.Adam(1e-3).create(bundle["temperature"])
                self.network = optim.Adam(1e-3).create(bundle["network"])

            def step(self, grads):
                self.temperature = self.temperature.apply_gradient(grads)
                self.network = self.network.apply_gradient(grads)
        """)
    assert after.count("self.temperature = AnyParamsTrainState.create(") == 2
    assert after.count("self.network = train_state.TrainState.create(") == 2


def test_a_dict_is_told_from_an_array_beside_it() -> None:
    after = migrated("""
        import jax.numpy as jnp
        from flax import optim

        def create(z, deep):
            if deep:
                return optim.Adam(1e-3).create({"w": z})
            return optim.Adam(1e-3).create(jnp.zeros(3))

        def train(z, deep, grads):
            return create(z, deep).apply_gradient(grads)
        """)
    assert after.count("return train_state.TrainState.create(") == 1
    assert after.count("return AnyParamsTrainState.create(") == 1
