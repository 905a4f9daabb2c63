"""Complex parameters stop an optimizer, and those of 16 bits are told; such numbers elsewhere do neither."""

from __future__ import annotations

import pytest

from tests.codemods.programs import result_of

TRAINING = """
    import functools

    import flax
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

COMPUTING = """
    class Model(nn.Module):
        dtype: type = jnp.float32

        @nn.compact
        def __call__(self, image):
            hidden = image.astype(jnp.bfloat16) * jnp.ones(8, jnp.bfloat16)
            hidden = nn.Dense(3, dtype=self.dtype)(hidden)
            return nn.Dense(3, dtype=jnp.bfloat16, param_dtype=jnp.float32)(hidden)
    """

LONG = {
    "what a model computes with": (
        COMPUTING,
        'Model(dtype=jnp.bfloat16).init(rng, jnp.ones((8, 8), jnp.bfloat16))["params"]',
    ),
    "what a compiled function computes with": (
        COMPUTING
        + """
    module = functools.partial(Model, dtype=jnp.bfloat16)
    initial = jax.jit(module().init)
    """,
        'initial(rng, jnp.ones((8, 8), jnp.bfloat16))["params"]',
    ),
    "the size of what a model is applied to": (
        DENSE.format(
            dtype="jnp.bfloat16",
            body="""image = jnp.asarray(image, self.dtype)
            sizes = (image.shape[-1], 3)
            return image @ self.param("w", nn.initializers.ones, sizes)""",
        ),
        'Model().init(rng, jnp.ones((8, 8)))["params"]',
    ),
    "the shapes of parameters alone": (
        COMPUTING,
        'jax.eval_shape(Model().init, rng, jnp.ones((8, 8), "bfloat16"))["params"]',
    ),
    "a type that is returned beside": (
        """
    def initial(size):
        dtype = jnp.bfloat16
        return {"w": jnp.ones(size)}, dtype
    """,
        "initial(3)[0]",
    ),
    "a type that is asked for": (
        """
    def initial(batch):
        return {"w": jnp.ones(3) if batch.dtype == jnp.bfloat16 else jnp.zeros(3)}
    """,
        "initial(batches[0])",
    ),
    "a checkpoint of 16 bits": (
        """
    def widened(kernel):
        return kernel.view(jnp.bfloat16).astype(np.float32)
    """,
        '{"w": widened(np.load("kernel.npy"))}',
    ),
    "code out of view": (
        """
    from library import initial
    """,
        "initial(rng, jnp.ones(3, jnp.float16))",
    ),
}

SHORT = {
    "an array": ("", '{"w": jnp.ones(3, jnp.bfloat16)}'),
    "the type of an array by its name": ("", '{"w": jnp.ones(3, dtype="float16")}'),
    "a type as a function": ("", "jax.tree_map(jnp.float16, {'w': np.ones(3)})"),
    "a cast of all": (
        """
    def shortened(params):
        return jax.tree_map(lambda x: x.astype(jnp.bfloat16), params)
    """,
        "flax.core.freeze(shortened(nn.Dense(3).init(rng, jnp.ones(3))['params']))",
    ),
    "a type that may be": (
        """
    def initial(is_short):
        dtype = jnp.bfloat16 if is_short else jnp.float32
        return {"w": jnp.ones(3, dtype)}
    """,
        "initial(len(batches) > 1)",
    ),
    "the argument of a function": COMPLEX["the argument of a function"],
    "what a method returns": COMPLEX["what a method returns"],
    "a definition that is compiled": (
        COMPLEX["a definition that is compiled"][0],
        "compiled(optim.Adam(1e-3), {'w': jnp.ones(3, jnp.float16)}).target",
    ),
    "an element set afterwards": (
        """
    def initial():
        params = {"w": None}
        params["w"] = jnp.ones(3, jnp.float16)
        return params
    """,
        "initial()",
    ),
    "the type of a model's parameters": (
        "",
        'nn.Dense(3, param_dtype=jnp.bfloat16).init(rng, jnp.ones(3))["params"]',
    ),
    "the type that a model within is given by position": COMPLEX[
        "the type that a model within is given by position"
    ],
    "the type that a model is given": COMPLEX["the type that a model is given"],
    "the type that a model has": COMPLEX["the type that a model has"],
    "a parameter of a model": (
        DENSE.format(
            dtype="jnp.float16",
            body="""return image @ self.param("w", nn.initializers.ones, (8, 3), self.dtype)""",
        ),
        'jax.jit(Model().init)(rng, jnp.ones((8, 8)))["params"]',
    ),
}


@pytest.mark.parametrize(("model", "params"), LONG.values(), ids=LONG)
def test_types_of_16_bits_that_params_do_not_have(model: str, params: str) -> None:
    assert notes_on_types(model, params) == {}


@pytest.mark.parametrize(("model", "params"), SHORT.values(), ids=SHORT)
def test_params_of_16_bits(model: str, params: str) -> None:
    shortened = [text.replace("complex64", "bfloat16") for text in (model, params)]
    notes = notes_on_types(*shortened)
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


def notes_on_types(model: str, params: str) -> dict[int, str]:
    """What is said of 16 bits, by line; all sites are rewritten."""
    result = result_of(TRAINING.format(model=model, params=params))
    assert {site.status for site in result.sites} == {"rewritten"}
    return {site.line: site.note for site in result.sites if "16 bits" in site.note}


@pytest.mark.parametrize(("model", "params"), REAL.values(), ids=REAL)
def test_complex_numbers_that_params_are_not_made_of(model: str, params: str) -> None:
    result = result_of(TRAINING.format(model=model, params=params))
    assert {site.status for site in result.sites} == {"rewritten"}


@pytest.mark.parametrize(("model", "params"), COMPLEX.values(), ids=COMPLEX)
def test_params_that_are_made_of_complex_numbers(model: str, params: str) -> None:
    result = result_of(TRAINING.format(model=model, params=params))
    assert not result.changed
    assert "FO925" in {site.code for site in result.sites}
