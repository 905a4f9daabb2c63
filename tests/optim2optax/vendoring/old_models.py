"""Small programs that are written for `flax.nn`: at least one for each of its public names.

They also run on Python 3.9, Flax 0.3.6 and JAX 0.4.13, where `old_models.json` was made:

    python tests/optim2optax/vendoring/old_models.py tests/optim2optax/vendoring/old_models.json

JAX 0.4.13 is the oldest that can still be installed. It lacks three names that Flax 0.3.6
uses, and which `main` puts back.
"""

# what is checked is today's JAX and Flax
# mypy: ignore-errors

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}

KEY = jax.random.PRNGKey(3)
X = jnp.asarray(np.sin(np.arange(24.0)).reshape(2, 12), jnp.float32)
IMAGES = jnp.asarray(np.cos(np.arange(96.0)).reshape(2, 4, 4, 3), jnp.float32)
ROWS = IMAGES.reshape(8, 12)
WORDS = jnp.asarray(np.sin(np.arange(48.0)).reshape(2, 4, 6), jnp.float32)


def program(function: Program) -> Program:
    PROGRAMS[function.__name__.rstrip("_")] = function
    return function


def trained(nn: Any, module: Any, *inputs: Any) -> Any:
    """What a module returns, its params, and both after a step of gradient descent, under `jit`."""
    output, params = jax.jit(module.init)(KEY, *inputs)
    model = nn.Model(module, params)

    @jax.jit
    def step(model: Any) -> Any:
        def loss(model: Any) -> Any:
            leaves = jax.tree_util.tree_leaves(model(*inputs))
            return sum(jnp.sum(leaf**2) for leaf in leaves)

        value, grad = jax.value_and_grad(loss)(model)
        return value, jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, model, grad)

    value, model = step(model)
    return output, params, value, model.params


# Activations and initializers


def _activation(name: str) -> Program:
    return lambda nn: jax.vmap(jax.grad(lambda x: jnp.sum(getattr(nn, name)(x))))(X)


ACTIVATIONS = (
    "celu elu gelu glu leaky_relu log_sigmoid log_softmax relu sigmoid soft_sign softmax "
    "softplus swish silu tanh"
)
for _name in ACTIVATIONS.split():
    PROGRAMS[_name] = _activation(_name)


@program
def activation(nn: Any) -> Any:
    names = "normalize selu hard_tanh relu6 hard_sigmoid hard_swish"
    return [getattr(nn.activation, name)(3 * X) for name in names.split()]


@program
def initializers(nn: Any) -> Any:
    found = nn.initializers
    makers = (
        "kaiming_normal kaiming_uniform lecun_normal lecun_uniform normal orthogonal uniform "
        "xavier_normal xavier_uniform"
    )
    return [
        [getattr(found, name)()(KEY, (4, 3)) for name in makers.split()],
        found.delta_orthogonal()(KEY, (3, 3, 2, 2)),
        found.variance_scaling(1.0, "fan_in", "normal")(KEY, (4, 3)),
        found.zeros(KEY, (2,)),
        found.ones(KEY, (2,)),
    ]


# Modules


@program
def Module(nn: Any) -> Any:
    class Layer(nn.Module):
        def apply(self, x: Any, features: int) -> Any:
            normal = nn.initializers.lecun_normal()
            kernel = self.param("kernel", (x.shape[-1], features), normal)
            scale = self.param("scale", None, lambda *_: jnp.float32(2))
            return x @ kernel * scale + self.get_param("kernel").sum()

    class Net(nn.Module):
        def apply(self, x: Any) -> Any:
            return Layer(nn.relu(Layer(x, 3, name="first")), features=2)

    several = jax.vmap(lambda key: Net.init(key, X)[1])(jax.random.split(KEY))
    return trained(nn, Net, X), several


@program
def module(nn: Any) -> Any:
    @nn.module
    def net(x: Any, features: int) -> Any:
        return nn.Dense(nn.tanh(nn.Dense(x, features)), 1)

    return trained(nn, net.partial(features=3, name="net"), X)


@program
def shared(nn: Any) -> Any:
    class Net(nn.Module):
        def apply(self, x: Any) -> Any:
            dense = nn.Dense.shared(features=12, name="again")
            return dense(nn.tanh(dense(x)))

    return trained(nn, Net, X)


@program
def init_by_shape(nn: Any) -> Any:
    class Net(nn.Module):
        def apply(self, x: Any) -> Any:
            return nn.dropout(nn.Dense(x, 3), 0.5)

    specs = [((2, 12), jnp.float32)]
    with nn.stochastic(KEY):
        shape, params = Net.init_by_shape(KEY, specs)
    _, model = nn.Dense.create_by_shape(KEY, specs, features=3)
    return list(shape.shape), params, model.params


@program
def create(nn: Any) -> Any:
    output, model = nn.Dense.create(KEY, X, features=3)
    with nn.stochastic(KEY):
        called = nn.Dense.call(model.params, X, features=3)
    return output, model.params, called


@program
def Model(nn: Any) -> Any:
    class Net(nn.Module):
        def apply(self, x: Any) -> Any:
            return nn.Dense(nn.Dense(x, 3, name="inner"), 2)

    model = nn.Model(Net, Net.init(KEY, X)[1])
    states = jax.tree_util.tree_map(lambda leaf: jnp.stack([leaf]), model)
    mapped = jax.pmap(lambda model, x: model(x))(states, X[None])
    halved = model.replace(params=jax.tree_util.tree_map(lambda p: p / 2, model.params))
    inner = model.truncate_at({"it": "/inner"})(X)
    vmapped = jax.vmap(model)(X)
    return mapped, halved(X), inner, vmapped


@program
def module_method(nn: Any) -> Any:
    class Coder(nn.Module):
        def apply(self, x: Any) -> Any:
            kernel = self.param("kernel", (12, 3), nn.initializers.normal())
            return x @ kernel

        @nn.module_method
        def decode(self, x: Any) -> Any:
            return x @ self.get_param("kernel").T

    class Net(nn.Module):
        def apply(self, x: Any) -> Any:
            coder = Coder.shared(name="coder")
            return coder.decode(coder(x))

    model = nn.Model(Coder, Coder.init(KEY, X)[1])
    return trained(nn, Net, X), model.decode(model(X))


@program
def capture_module_outputs(nn: Any) -> Any:
    @nn.module
    def net(x: Any) -> Any:
        return nn.Dense(nn.Dense(x, 3), 2)

    with nn.capture_module_outputs() as outputs:
        net.init(KEY, X)
    return outputs.as_dict()


# State and random numbers


class _Counting:
    """A module with a state, made for one `flax.nn`."""

    def __init__(self, nn: Any) -> None:
        class Net(nn.Module):
            def apply(self, x: Any, train: bool = True) -> Any:
                seen = self.state("seen", (), nn.initializers.zeros)
                if train:
                    seen.value = seen.value + jnp.mean(x)
                x = nn.BatchNorm(nn.Dense(x, 3), use_running_average=not train)
                return x + seen.value * (1 if self.is_stateful() else 0)

        self.net = Net


@program
def stateful(nn: Any) -> Any:
    net = _Counting(nn).net
    with nn.stateful() as state:
        _, params = net.init(KEY, ROWS)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        def loss(params: Any) -> Any:
            with nn.stateful(state) as new_state:
                return jnp.sum(net.call(params, ROWS) ** 3), new_state

        (value, new), grad = jax.value_and_grad(loss, has_aux=True)(params)
        return value, new, grad

    first = step(params, state)
    second = step(params, first[1])
    with nn.stateful(second[1], mutable=False):
        evaluated = net.call(params, ROWS, train=False)
    return first[0], second[0], second[1].as_dict(), second[2], evaluated


@program
def get_state(nn: Any) -> Any:
    net = _Counting(nn).net
    with nn.stateful():
        net.init(KEY, X)
        return nn.get_state().as_dict()


@program
def Collection(nn: Any) -> Any:
    class Net(nn.Module):
        def apply(self, x: Any, seen: Any) -> Any:
            before = seen.retrieve(default=jnp.float32(0))
            seen.store(before + jnp.sum(x))
            return nn.Dense(x, 2)

    with nn.Collection().mutate() as first:
        _, params = Net.init(KEY, X, first)

    @jax.jit
    def step(seen: Any) -> Any:
        with seen.mutate() as new:
            return Net.call(params, X, new), new

    output, second = step(first)
    return output, first["/"], second["/"], second.state


@program
def stochastic(nn: Any) -> Any:
    @jax.jit
    def run(key: Any) -> Any:
        with nn.stochastic(key):
            first = jax.random.normal(nn.make_rng(), (3,))
            return first, nn.dropout(X, 0.4), nn.dropout(X, 0.4, deterministic=True)

    return run(KEY)


@program
def make_rng(nn: Any) -> Any:
    with nn.stochastic(KEY):
        return [nn.make_rng(), nn.make_rng()]


@program
def is_stochastic(nn: Any) -> Any:
    with nn.stochastic(KEY):
        return [nn.is_stochastic()]


@program
def dropout(nn: Any) -> Any:
    def loss(x: Any) -> Any:
        return jnp.sum(nn.dropout(x, 0.3, rng=KEY) ** 2)

    return nn.dropout(X, 0.0), jax.jit(jax.grad(loss))(X)


# Layers


@program
def Dense(nn: Any) -> Any:
    wide = nn.Dense.partial(
        features=3, bias_init=nn.initializers.ones, precision=jax.lax.Precision.HIGHEST
    )
    plain = nn.Dense.partial(features=2, bias=False)
    return trained(nn, wide, X), trained(nn, plain, X)


@program
def DenseGeneral(nn: Any) -> Any:
    layer = nn.DenseGeneral.partial(features=(2, 3), axis=(-1,), batch_dims=(0,))
    along_two = nn.DenseGeneral.partial(features=4, axis=(-2, -1))
    return trained(nn, layer, X), trained(nn, along_two, WORDS)


@program
def Conv(nn: Any) -> Any:
    layer = nn.Conv.partial(features=4, kernel_size=(3, 3), strides=(2, 2))
    options = {"padding": "VALID", "kernel_dilation": (2, 2), "bias": False}
    groups = {"features": 3, "feature_group_count": 3, "kernel_size": (2, 2)}
    grouped = nn.Conv.partial(**groups, **options)
    return trained(nn, layer, IMAGES), trained(nn, grouped, IMAGES)


@program
def ConvTranspose(nn: Any) -> Any:
    layer = nn.ConvTranspose.partial(features=2, kernel_size=(3, 3), strides=(2, 2))
    return trained(nn, layer, IMAGES)


@program
def Embed(nn: Any) -> Any:
    tokens = jnp.array([[0, 2], [4, 1]])
    embed = nn.Embed.partial(num_embeddings=5, features=3)
    model = nn.Model(embed, embed.init(KEY, tokens)[1])
    return trained(nn, embed, tokens), model.attend(model(tokens))


@program
def BatchNorm(nn: Any) -> Any:
    def run(x: Any, params: Any, state: Any) -> Any:
        with nn.stateful(state) as new:
            return nn.BatchNorm.call(params, x, momentum=0.9, axis_name="devices"), new

    with nn.stateful() as state:
        _, params = nn.BatchNorm.init(KEY, IMAGES)
    mapped = jax.pmap(run, axis_name="devices", in_axes=(0, None, None))
    output, new = mapped(IMAGES[None], params, state)
    with nn.stateful(state, mutable=False):
        used = nn.BatchNorm.call(params, IMAGES, use_running_average=True)
    return output, new.as_dict(), used


@program
def LayerNorm(nn: Any) -> Any:
    plain = nn.LayerNorm.partial(bias=False, scale=False)
    return trained(nn, nn.LayerNorm, X), trained(nn, plain, X)


@program
def GroupNorm(nn: Any) -> Any:
    return trained(nn, nn.GroupNorm.partial(num_groups=3), IMAGES)


def _pool(name: str, size: int, stride: int) -> Program:
    def run(nn: Any) -> Any:
        def pooled(x: Any) -> Any:
            places = {"strides": (stride, stride), "padding": "SAME"}
            return getattr(nn, name)(x, (size, size), **places)

        slope = jax.jit(jax.grad(lambda x: jnp.sum(pooled(x) ** 2)))
        return pooled(IMAGES), slope(IMAGES)

    return run


PROGRAMS |= {"max_pool": _pool("max_pool", 2, 2), "avg_pool": _pool("avg_pool", 3, 1)}


# Attention


@program
def dot_product_attention(nn: Any) -> Any:
    heads = WORDS.reshape(2, 4, 2, 3)

    def run(query: Any, key: Any) -> Any:
        def attended(**more: Any) -> Any:
            given = (query, heads, heads)
            return nn.dot_product_attention(*given, dropout_rate=0.5, **more)

        with nn.stochastic(key):
            return attended(), attended(broadcast_dropout=False)

    return jax.jit(run)(heads, KEY)


@program
def MultiHeadDotProductAttention(nn: Any) -> Any:
    mask = jnp.array([[True, True, True, False], [True, True, False, False]])[..., None]
    layer = nn.MultiHeadDotProductAttention.partial(
        num_heads=2, padding_mask=mask, deterministic=True, dropout_rate=0.1
    )
    across = nn.MultiHeadDotProductAttention.partial(
        num_heads=3, qkv_features=6, out_features=4, bias=False
    )
    segments = jnp.array([[1, 1, 2, 2], [1, 2, 2, 2]])
    packed = nn.SelfAttention.partial(num_heads=2, segmentation=segments[..., None])
    return (
        trained(nn, layer, WORDS, None),
        trained(nn, across, WORDS, WORDS[:, :3]),
        trained(nn, packed, WORDS),
    )


@program
def SelfAttention(nn: Any) -> Any:
    """Decoding word by word, with a cache, within a scan."""

    class Net(nn.Module):
        def apply(self, x: Any, cache: Any = None) -> Any:
            return nn.SelfAttention(x, num_heads=2, causal_mask=True, cache=cache)

    with nn.attention.Cache().mutate() as empty:
        _, params = Net.init(KEY, WORDS, cache=empty)
    cache = empty.initialize_cache((2, 4))

    @jax.jit
    def decoded(params: Any, cache: Any) -> Any:
        def step(cache: Any, word: Any) -> Any:
            with cache.mutate() as new:
                return new, Net.call(params, word[:, None], cache=new)

        return jax.lax.scan(step, cache, WORDS.swapaxes(0, 1))

    new, outputs = decoded(params, cache)
    return outputs, Net.call(params, WORDS), new.state, trained(nn, Net, WORDS)


# Recurrence


def _unrolled(nn: Any, cell: Any, carry: Any, inputs: Any) -> Any:
    """A cell in a scan, with gradients through it."""
    _, params = cell.init(KEY, carry, inputs[0])

    @jax.jit
    def run(params: Any) -> Any:
        def loss(params: Any) -> Any:
            def step(carry: Any, x: Any) -> Any:
                return cell.call(params, carry, x)

            carried, outputs = jax.lax.scan(step, carry, inputs)
            return jnp.sum(outputs**2), (carried, outputs)

        return jax.value_and_grad(loss, has_aux=True)(params)

    return params, run(params)


def _cell(name: str) -> Program:
    def run(nn: Any) -> Any:
        cell = getattr(nn, name)
        carry = cell.initialize_carry(KEY, (4,), 3, nn.initializers.normal())
        return _unrolled(nn, cell, carry, WORDS)

    return run


for _name in ("LSTMCell", "GRUCell", "OptimizedLSTMCell"):
    PROGRAMS[_name] = _cell(_name)


@program
def ConvLSTM(nn: Any) -> Any:
    cell = nn.ConvLSTM.partial(features=2, kernel_size=(3, 3))
    carry = nn.ConvLSTM.initialize_carry(KEY, (2,), (4, 4, 2))
    return _unrolled(nn, cell, carry, jnp.stack([IMAGES, IMAGES**2]))


# What is compared


def described(result: Any) -> Any:
    """Of each array: its shape, two sums, and its first numbers."""
    leaves = jax.tree_util.tree_leaves(jax.device_get(result))
    found = []
    for leaf in leaves:
        array = np.asarray(leaf, np.float64)
        flat = array.ravel()
        weighted = flat @ np.cos(np.arange(flat.size))
        numbers = [flat.sum(), weighted, *flat[:4]]
        found.append([list(array.shape), [float(f"{one:.7g}") for one in numbers]])
    return found


def main() -> None:
    import jax._src.numpy.lax_numpy as lax_numpy
    import jax.interpreters.partial_eval as partial_eval

    lax_numpy.isin = jnp.isin
    jax.tree_multimap = jax.tree_util.tree_map
    partial_eval.trace_to_jaxpr = partial_eval.trace_to_jaxpr_nounits
    from flax import nn
    from flax.deprecated.nn import activation, attention, initializers  # noqa: F401

    found = {name: described(run(nn)) for name, run in PROGRAMS.items()}
    lines = ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in found.items())
    with open(sys.argv[1], "w") as file:
        file.write(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
