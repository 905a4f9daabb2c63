"""Writes the checkpoints in this folder, with Flax of 2021: `python write.py FOLDER`, FOLDER having the unpacked wheel of one.

The versions of JAX that it was made for are gone from the package index; it runs on 0.4.13 with the names that were removed since.
For each checkpoint, after STEPS steps, there is a file with the parameters after as many more.
"""

import os
import sys
import types
from collections import namedtuple

os.environ.update(JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu")
sys.path.insert(0, sys.argv[1])

import jax
import numpy as np

jax.tree_multimap = jax.tree_map
jax.xla.DeviceArray = jax.Array
jax.interpreters.xla.call_translations = {}
for name in ("bool", "int", "float", "object"):
    setattr(np, name, vars(__builtins__)[name])
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
sys.modules["tensorflow.io"] = types.SimpleNamespace(gfile=types.SimpleNamespace(GFile=open))

from flax import nn, optim, serialization, version

STEPS = 10
Stats = namedtuple("Stats", ["mean", "var"])


def parameters():
    random = np.random.default_rng(0)
    shapes = {"dense": {"kernel": (3, 2), "bias": (2,)}, "out": {"kernel": (2, 2), "bias": (2,)}}
    return jax.tree_map(lambda shape: random.normal(size=shape), shapes, is_leaf=lambda node: isinstance(node, tuple))


def gradients(step):
    random = np.random.default_rng(100 + step)
    return jax.tree_map(lambda leaf: random.normal(size=leaf.shape), parameters())


def of_kind(word):
    return optim.ModelParamTraversal(lambda path, _: word in path)


def groups():
    return optim.MultiOptimizer((of_kind("bias"), optim.Momentum(0.1)), (of_kind("kernel"), optim.Adam(0.01)))


def rest_frozen():
    return optim.MultiOptimizer((of_kind("out"), optim.Adam(0.01)), (of_kind("dense"), optim.GradientDescent(0.1)))


def write(name, optimizer, tree, as_target=lambda params: params, params_of=lambda target: target):
    for step in range(2 * STEPS):
        if step == STEPS:
            with open(f"{name}_{version.__version__}", "wb") as file:
                file.write(serialization.to_bytes(tree(optimizer)))
        optimizer = optimizer.apply_gradient(as_target(gradients(step)))
    with open(f"{name}_{version.__version__}_{2 * STEPS}", "wb") as file:
        file.write(serialization.to_bytes(params_of(optimizer.target)))


write(
    "adam", optim.Adam(0.01).create(parameters()), lambda optimizer: {"optimizer": optimizer, "stats": Stats(1.0, 2.0)}
)
if version.__version__ < "0.3.2":
    model = lambda params: nn.Model(None, params)
    for name, definition in (("model", optim.Adam(0.01)), ("model_groups", groups())):
        write(
            name,
            definition.create(model(parameters())),
            lambda optimizer: optimizer,
            model,
            lambda target: target.params,
        )
else:
    write("groups", groups().create(parameters()), lambda optimizer: optimizer)
    write("rest", rest_frozen().create(parameters()), lambda optimizer: optimizer)
