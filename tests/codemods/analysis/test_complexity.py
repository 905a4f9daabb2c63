"""Complex parameters stop an optimizer; complex numbers elsewhere do not."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

TRAINING = """
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import optim

    {model}

    def run(rng, batches):
        params = {params}
        optimizer = optim.Adam(1e-3).create(params)
        for batch in batches:
            grad = jax.grad(loss)(optimizer.target, batch)
            optimizer = optimizer.apply_gradient(grad)
        return optimizer.target


    def loss(params, batch):
        return jnp.sum(params["w"] * jnp.abs(batch))
    """
DENSE = """
    class Model(nn.Module):
        dtype: type = {dtype}

        @nn.compact
        def __call__(self, image):
            {body}
    """

METHOD = """
    class Experiment:
        def __init__(self, size):
            self.kernel = {kernel}

        def initial(self):
            assert self.kernel.imag.sum() == 1j.imag
            return {{"w": self.kernel}}
    """

REAL = {
    "a plane of frequencies": (
        """
    def undersampled(image, mask):
        return jnp.fft.ifft2(jnp.fft.fft2(image + 0j) * mask)
    """,
        '{"w": jnp.ones(3)}',
    ),
    "images that the model is made with": (
        DENSE.format(dtype="jnp.float32", body="return nn.Dense(3)(jnp.abs(image))"),
        'Model().init(rng, jnp.ones((8, 8), jnp.complex64))["params"]',
    ),
    "what a model computes with": (
        DENSE.format(
            dtype="jnp.float32",
            body="return nn.Dense(3)(image).astype(jnp.complex64) * 1j",
        ),
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "what a model makes on its way": (
        DENSE.format(
            dtype="jnp.complex64",
            body="return nn.Dense(3)(jnp.abs(image + jnp.zeros(8, dtype=self.dtype)))",
        ),
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "another model beside": (
        DENSE.format(dtype="jnp.complex64", body="return nn.Dense(3)(image)").replace(
            "Model", "Wave"
        ),
        'nn.Dense(3).init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "a variable that a function has of that name": (
        """
    def phases(params):
        params = 1j * params
        return params
    """,
        '{"w": jnp.ones(3)}',
    ),
    "what a method returns": (
        METHOD.format(kernel="jnp.ones(size)"),
        "Experiment(3).initial()",
    ),
    "what is asked of a type": (
        """
    def initial():
        value = jnp.ones(3)
        return {"w": 0 if isinstance(value, complex) else value}
    """,
        "initial()",
    ),
}

COMPLEX = {
    "what a function returns": (
        """
    def initial(rng):
        kernel = jax.random.normal(rng, (3,)) * (1 + 1j)
        return {"w": kernel}
    """,
        "initial(rng)",
    ),
    "a compiled function": (
        """
    @jax.jit
    def initial(rng):
        return {"w": jnp.ones(3, dtype="complex64")}
    """,
        "initial(rng)",
    ),
    "the argument of a function": (
        """
    def initial(size, dtype=jnp.float32):
        return {"w": jnp.ones(size, dtype)}
    """,
        "initial(3, jnp.complex64)",
    ),
    "what a method returns": (
        METHOD.format(kernel="jnp.ones(size, jnp.complex64)"),
        "Experiment(3).initial()",
    ),
    "arguments that are handed on": (
        """
    def initial(**options):
        return {"w": jnp.ones(3, **options)}
    """,
        "initial(dtype=jnp.complex64)",
    ),
    "a definition that is compiled": (
        """
    def compiled(definition, params):
        return jax.jit(definition.create)(params)
    """,
        "compiled(optim.Adam(1e-3), {'w': jnp.ones(3) * 1j}).target",
    ),
    "the type that a model within is given by position": (
        """
    class Wave(nn.Module):
        kind: type

        @nn.compact
        def __call__(self, image):
            return nn.Dense(3, param_dtype=self.kind)(image)


    class Model(nn.Module):
        @nn.compact
        def __call__(self, image):
            return Wave(jnp.complex64)(image)
    """,
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "an element set afterwards": (
        """
    def initial():
        params = {"w": None}
        params["w"] = jnp.ones(3, complex)
        return params
    """,
        "initial()",
    ),
    "the type that a model is given": (
        DENSE.format(
            dtype="jnp.float32",
            body="return nn.Dense(3, param_dtype=self.dtype)(image)",
        ),
        'Model(dtype=jnp.complex64).init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "the type that a model has": (
        DENSE.format(
            dtype="jnp.complex64",
            body="return nn.Dense(3, param_dtype=self.dtype)(image)",
        ),
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "a parameter of a model": (
        DENSE.format(
            dtype="jnp.float32",
            body="""return image @ self.param("w", nn.initializers.ones, (8, 3), complex)""",
        ),
        'jax.jit(Model().init)(rng, jnp.ones((8, 8)))["params"]',
    ),
    "how a parameter is made": (
        """
    def phases(rng, shape):
        return jnp.exp(1j * jax.random.uniform(rng, shape))


    class Model(nn.Module):
        @nn.compact
        def __call__(self, image):
            return image @ self.param("w", phases, (8, 3))
    """,
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "a model within a model": (
        """
    class Wave(nn.Module):
        @nn.compact
        def __call__(self, image):
            return nn.Dense(3, param_dtype=np.complex64)(image)


    class Model(nn.Module):
        @nn.compact
        def __call__(self, image):
            return Wave()(image)
    """,
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
}


@pytest.mark.parametrize(("model", "params"), REAL.values(), ids=REAL)
def test_complex_numbers_that_params_are_not_made_of(model: str, params: str) -> None:
    result = result_of(TRAINING.format(model=model, params=params))
    assert {site.status for site in result.sites} == {"rewritten"}


@pytest.mark.parametrize(("model", "params"), COMPLEX.values(), ids=COMPLEX)
def test_params_that_are_made_of_complex_numbers(model: str, params: str) -> None:
    result = result_of(TRAINING.format(model=model, params=params))
    assert not result.changed
    assert "FO925" in {site.code for site in result.sites}
