"""Complex parameters stop an optimizer, and those of 16 bits are told; such numbers elsewhere do neither."""

import textwrap

import pytest

from tests.codemods.programs import result_of, table
from tests.codemods.test_alike import assert_alike

TRAINING = """
import functools

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import optim

MODEL

def run(rng, batches):
    params = PARAMS
    optimizer = optim.Adam(1e-3).create(params)
    for batch in batches:
        grad = jax.grad(loss)(optimizer.target, batch)
        optimizer = optimizer.apply_gradient(grad)
    return optimizer.target


def loss(params, batch):
    return jnp.sum(params["w"] * jnp.abs(batch))
"""
COMPUTING = """\
class Model(nn.Module):
    dtype: type = jnp.float32

    @nn.compact
    def __call__(self, image):
        hidden = image.astype(jnp.bfloat16) * jnp.ones(8, jnp.bfloat16)
        hidden = nn.Dense(3, dtype=self.dtype)(hidden)
        return nn.Dense(3, dtype=jnp.bfloat16, param_dtype=jnp.float32)(hidden)
"""

REAL = """
== what a model computes with
Model().init(rng, jnp.ones((8, 8)))["params"]
class Model(nn.Module):
    dtype: type = jnp.float32

    @nn.compact
    def __call__(self, image):
        return nn.Dense(3)(image).astype(jnp.complex64) * 1j
== what a method returns
Experiment(3).initial()
class Experiment:
    def __init__(self, size):
        self.kernel = jnp.ones(size)

    def initial(self):
        assert self.kernel.imag.sum() == 1j.imag
        return {"w": self.kernel}
"""

COMPLEX = """
== what a method returns
Experiment(3).initial()
class Experiment:
    def __init__(self, size):
        self.kernel = jnp.ones(size, jnp.complex64)

    def initial(self):
        assert self.kernel.imag.sum() == 1j.imag
        return {"w": self.kernel}
== arguments that are handed on
initial(dtype=jnp.complex64)
def initial(**options):
    return {"w": jnp.ones(3, **options)}
== an element set afterwards
initial()
def initial():
    params = {"w": None}
    params["w"] = jnp.ones(3, jnp.complex64)
    return params
== the type that a model has
Model().init(rng, jnp.ones((8, 8)))["params"]
class Model(nn.Module):
    dtype: type = jnp.complex64

    @nn.compact
    def __call__(self, image):
        return nn.Dense(3, param_dtype=self.dtype)(image)
== how a parameter is made
Model().init(rng, jnp.ones((8, 8)))["params"]
def phases(rng, shape):
    return jnp.exp(1j * jax.random.uniform(rng, shape))


class Model(nn.Module):
    @nn.compact
    def __call__(self, image):
        return image @ self.param("w", phases, (8, 3))
== a model within a model
Model().init(rng, jnp.ones((8, 8)))["params"]
class Wave(nn.Module):
    @nn.compact
    def __call__(self, image):
        return nn.Dense(3, param_dtype=np.complex64)(image)


class Model(nn.Module):
    @nn.compact
    def __call__(self, image):
        return Wave()(image)
"""
OF_ANY_TYPE = [
    row for row in table(COMPLEX, values=1) if "1j" not in str(row.values[0])
]
"""Those that make parameters of 16 bits if that is the type."""

LONG = """
== what a model computes with
Model(dtype=jnp.bfloat16).init(rng, jnp.ones((8, 8), jnp.bfloat16))["params"]
COMPUTING
== what a compiled function computes with
initial(rng, jnp.ones((8, 8), jnp.bfloat16))["params"]
COMPUTING

module = functools.partial(Model, dtype=jnp.bfloat16)
initial = jax.jit(module().init)
== the size of what a model is applied to
Model().init(rng, jnp.ones((8, 8)))["params"]
class Model(nn.Module):
    dtype: type = jnp.bfloat16

    @nn.compact
    def __call__(self, image):
        image = jnp.asarray(image, self.dtype)
        sizes = (image.shape[-1], 3)
        return image @ self.param("w", nn.initializers.ones, sizes)
== the shapes of parameters alone
jax.eval_shape(Model().init, rng, jnp.ones((8, 8), "bfloat16"))["params"]
COMPUTING
== a type that is asked for
initial(batches[0])
def initial(batch):
    return {"w": jnp.ones(3) if batch.dtype == jnp.bfloat16 else jnp.zeros(3)}
"""

SHORT = """
== an array
{"w": jnp.ones(3, jnp.bfloat16)}
== the type of an array by its name
{"w": jnp.ones(3, dtype="float16")}
== a type as a function
jax.tree_map(jnp.float16, {'w': np.ones(3)})
== a cast of all
flax.core.freeze(shortened(nn.Dense(3).init(rng, jnp.ones(3))['params']))
def shortened(params):
    return jax.tree_map(lambda x: x.astype(jnp.bfloat16), params)
== the type of a model's parameters
nn.Dense(3, param_dtype=jnp.bfloat16).init(rng, jnp.ones(3))["params"]
"""


@pytest.mark.parametrize("text", table(LONG, values=1))
def test_types_of_16_bits_that_params_do_not_have(text: str) -> None:
    assert notes_on_types(text) == {}


@pytest.mark.parametrize("text", table(SHORT, values=1) + OF_ANY_TYPE)
def test_params_of_16_bits(text: str) -> None:
    notes = notes_on_types(text.replace("complex64", "bfloat16"))
    assert len(notes) == 1
    assert "beta2 = 0.999" in notes.popitem()[1]


def test_the_place_of_a_type_and_an_optimizer_without_beta2() -> None:
    text = """
        import jax.numpy as jnp
        from flax import optim

        kernel = jnp.ones(3).astype(jnp.bfloat16)
        wide = optim.Momentum(0.1).create({"w": jnp.ones(3)})
        short = optim.Momentum(0.1).create({"w": kernel})
        """
    [note] = [site for site in result_of(text).sites if "16 bits" in site.note]
    assert note.line == 6
    assert "16 bits (train.py:4)" in note.note
    assert "beta2" not in note.note


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("given", ["", ", step_offset=1"])
def test_adafactor_never_made_params_float32(given: str) -> None:
    """It is told that moments are rounded, unless the interface and all numbers are kept."""
    text = f"""
        import jax
        import jax.numpy as jnp
        from flax import optim

        def run():
            params = {{"w": jnp.linspace(0, 1, 6, dtype=jnp.bfloat16)}}
            optimizer = optim.Adafactor(0.1).create(params)
            grads = {{"w": jnp.linspace(-1, 1, 6)}}
            optimizer = optimizer.apply_gradient(grads{given})
            return [str(x.dtype) for x in jax.tree_util.tree_leaves(optimizer.target)]
        """
    sites = result_of(text).sites
    notes = [site.note for site in sites if "16 bits" in site.note]
    assert len(notes) == (not given)
    assert not any("first step" in note for note in notes)
    assert_alike(textwrap.dedent(text))


def test_a_definition_that_keeps_its_interface() -> None:
    text = """
        import jax.numpy as jnp
        from flax import optim

        definition = optim.Adam(0.1)
        optimizer = definition.create({"w": jnp.ones(3, jnp.bfloat16)})
        optimizer = optimizer.apply_gradient({"w": jnp.ones(3)}, beta1=0.5)
        """
    result = result_of(text)
    assert {site.status for site in result.sites} == {"rewritten"}
    [note] = [site for site in result.sites if "16 bits" in site.note]
    assert note.line == 5
    assert "beta2" not in note.note


def training(text: str) -> str:
    """A program that trains parameters, of how they are made and what that needs."""
    params, _, model = text.partition("\n")
    model = model.replace("COMPUTING\n", COMPUTING)
    return TRAINING.replace("MODEL", model).replace("PARAMS", params)


def notes_on_types(text: str) -> dict[int, str]:
    """What is said of 16 bits, by line; all sites are rewritten."""
    result = result_of(training(text))
    assert {site.status for site in result.sites} == {"rewritten"}
    return {site.line: site.note for site in result.sites if "16 bits" in site.note}


@pytest.mark.parametrize("text", table(REAL, values=1))
def test_complex_numbers_that_params_are_not_made_of(text: str) -> None:
    result = result_of(training(text))
    assert {site.status for site in result.sites} == {"rewritten"}


@pytest.mark.parametrize("text", table(COMPLEX, values=1))
def test_params_that_are_made_of_complex_numbers(text: str) -> None:
    result = result_of(training(text))
    assert not result.changed
    assert "FO925" in {site.code for site in result.sites}
