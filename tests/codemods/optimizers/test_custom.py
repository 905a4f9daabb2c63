"""What makes an optimizer of one's own class: it is a transformation where it stands, whatever rate it is given."""

import pytest

from tests.codemods.programs import migrated

PROGRAM = """
    import flax
    import jax
    import jax.numpy as jnp
    from flax import optim


    @flax.struct.dataclass
    class Hyper:
        learning_rate: float
        beta: float


    class SignDescent(optim.OptimizerDef):
        def __init__(self, beta, learning_rate=None, *, scale=1.0):
            super().__init__(Hyper(learning_rate, beta))
            self.scale = scale

        def init_param_state(self, param):
            return jnp.zeros_like(param)

        def apply_param_gradient(self, step, hyper_params, param, state, grad):
            mean = hyper_params.beta * state + grad
            return param - self.scale * hyper_params.learning_rate * jnp.sign(mean), mean


    def train(params, batches, config):
        optimizer = {made}.create(params)
        for rate, grads in batches:
            optimizer = optimizer.apply_gradient(grads{given})
        return optimizer.target
    """
MADE = (
    "SignDescent(0.9, 0.1)",
    "SignDescent(learning_rate=config.rate, beta=0.9)",
    "SignDescent(0.9)",
    "SignDescent(0.9, scale=2.0)",
)


def after(made: str, given: str) -> str:
    return migrated(PROGRAM.replace("{made}", made).replace("{given}", given))


@pytest.mark.parametrize("made", MADE)
def test_it_stays_as_it_is(made: str) -> None:
    new = after(made, "")
    assert f"tx={made}" in new
    assert "optimizer = optimizer.apply_gradients(grads=grads)" in new
    assert "class SignDescent(OptimizerDef):" in new


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    "given", ["learning_rate=rate", "learning_rate=rate, beta=0.5", "**rate"]
)
def test_what_a_step_sets_is_handed_to_the_update(made: str, given: str) -> None:
    new = after(made, f", {given}")
    assert f"tx={made}" in new
    assert f"optimizer = apply_gradients_with(optimizer, grads, {given})" in new
