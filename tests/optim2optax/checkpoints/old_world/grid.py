"""The grid of resumes: what is stored, of which the old side is written by `python grid.py FOLDER PART…`, with the old Flax.

A part is an optimizer in a precision, such as `float32-0`.

For each optimizer and precision there is a file for each layout after STEPS steps, and `…-params` after as many more. With 16 bits,
these are taken in float64, from what was stored: in 16 bits, a step is little more than rounding.
"""

import os
import sys

import ml_dtypes
import numpy as np

STEPS = 3
GROUP = "(optim.ModelParamTraversal(lambda path, _: {!r} in path), optim.{})"


def groups(*pairs):
    return f"optim.MultiOptimizer({', '.join(GROUP.format(*pair) for pair in pairs)})"


OPTIMIZERS = {
    "gradient descent": "optim.GradientDescent(0.1)",
    "momentum": "optim.Momentum(0.05, beta=0.8, weight_decay=0.1)",
    "momentum, nesterov": "optim.Momentum(0.05, nesterov=True)",
    "adam": "optim.Adam(0.01, beta1=0.8, beta2=0.99, eps=1e-6, weight_decay=0.1)",
    "adam, defaults": "optim.Adam(0.01)",
    "adabelief": "optim.AdaBelief(0.01, beta1=0.8, beta2=0.99, eps=1e-6)",
    "lamb": "optim.LAMB(0.01, beta1=0.8, weight_decay=0.1)",
    "lars": "optim.LARS(0.1, beta=0.8, weight_decay=0.1, trust_coefficient=0.01)",
    "lars, nesterov": "optim.LARS(0.1, nesterov=True, eps=1e-4)",
    "adagrad": "optim.Adagrad(0.05, eps=1e-6)",
    "adadelta": "optim.Adadelta(0.5, rho=0.8, eps=1e-4)",
    "rmsprop": "optim.RMSProp(0.01, beta2=0.8, eps=1e-5)",
    "rmsprop, centered": "optim.RMSProp(0.01, centered=True)",
    "adafactor": "optim.Adafactor(0.01, min_dim_size_to_factor=2, decay_rate=0.7)",
    "adafactor, average": "optim.Adafactor(0.01, beta1=0.9, dtype_momentum=jnp.float32)",
    "adafactor, whole": "optim.Adafactor(0.01, factored=False, weight_decay_rate=0.01, clipping_threshold=2.0)",
    "weight norm": "optim.WeightNorm(optim.Momentum(0.05), wn_decay=0.1)",
    "weight norm of adam": "optim.WeightNorm(optim.Adam(0.01, eps=1e-4))",
    "weight norm of lars": "optim.WeightNorm(optim.LARS(0.1))",
    "two groups": groups(("kernel", "Adam(0.01)"), ("bias", "Momentum(0.1)")),
    "three groups": groups(("kernel", "LARS(0.1)"), ("bias", "RMSProp(0.01)"), ("count", "Adagrad(0.05)")),
}
PROGRAM = "import jax.numpy as jnp\nfrom flax import optim\n\n\n" + "\n\n".join(
    f"def create_{number}(params):\n    return {definition}.create(params)\n"
    for number, definition in enumerate(OPTIMIZERS.values())
)
PRECISIONS = {
    "float64": np.float64,
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
"""What parameters are stored in."""

LATER = {"float64": "float64", "float32": "float32", "bfloat16": "float64", "float16": "float64"}
"""What the steps are taken in that go on from there."""


def parameters(precision):
    random = np.random.default_rng(0)
    shapes = {"trace": {"kernel": (3, 2), "bias": (2,)}, "10": {"count": (2, 2)}}
    return {
        layer: {name: random.normal(size=shape).astype(PRECISIONS[precision]) for name, shape in names.items()}
        for layer, names in shapes.items()
    }


def gradients(precision, step):
    random = np.random.default_rng(100 + step)
    return {
        layer: {name: random.normal(size=leaf.shape).astype(PRECISIONS[precision]) for name, leaf in names.items()}
        for layer, names in parameters(precision).items()
    }


def replicated(tree):
    import jax

    return jax.tree_util.tree_map(lambda leaf: np.stack([leaf, leaf]), tree)


LAYOUTS = {
    "alone": lambda optimizer: optimizer,
    "in a dict": lambda optimizer: {"epoch": 7, "optimizer": optimizer, "name": "of mine"},
    "in a tuple": lambda optimizer: (optimizer, {"best": optimizer}),
    "in a dataclass": lambda optimizer: {"step": optimizer.state.step, "optimizer": optimizer, "batch_stats": {}},
    "replicated": lambda optimizer: {"optimizer": replicated(optimizer), "epoch": np.array([7, 7])},
    "in pieces": lambda optimizer: optimizer,
}
"""The layouts of checkpoints, by what a program stored of its optimizer."""

SMALLEST_PIECE = 16


def cast(tree, precision):
    """A tree with its numbers in a precision, as arrays of JAX's: NumPy would compute with 16 bits in its own way."""
    import jax
    import jax.numpy as jnp

    def one(leaf):
        return jnp.asarray(leaf, PRECISIONS[precision] if jnp.issubdtype(leaf.dtype, jnp.floating) else None)

    return jax.tree_util.tree_map(one, tree)


def main(folder, *parts):
    import jax.numpy as jnp

    single = jnp.float32
    jnp.float32 = jnp.float64  # in which Adafactor keeps its averages, whatever the parameters are
    from flax import serialization
    from flax.training import checkpoints  # noqa: F401 - it knows what arrays were called

    program = {}
    exec(PROGRAM, program)
    for part in parts:
        precision, number = part.split("-")
        jnp.float32 = jnp.float64 if precision == "float64" else single
        optimizer = program[f"create_{number}"](cast(parameters(precision), precision))
        for step in range(STEPS):
            optimizer = optimizer.apply_gradient(cast(gradients(precision, step), precision))
        for index, (layout, stored) in enumerate(LAYOUTS.items()):
            serialization.MAX_CHUNK_SIZE = SMALLEST_PIECE if layout == "in pieces" else 2**30
            write(folder, f"{part}-{index}", serialization.to_bytes(stored(optimizer)))
        later = LATER[precision]
        jnp.float32 = jnp.float64 if later == "float64" else single
        definition = program[f"create_{number}"](parameters(later)).optimizer_def
        optimizer = cast(optimizer, later).replace(optimizer_def=definition)
        for step in range(STEPS, 2 * STEPS):
            optimizer = optimizer.apply_gradient(cast(gradients(later, step), later))
        write(folder, f"{part}-params", serialization.to_bytes(optimizer.target))


def write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
