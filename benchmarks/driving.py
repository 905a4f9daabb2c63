"""One side of `benchmarks/real`: trains what a driver says, and saves losses and parameters. Works from Python 3.9 on.

python benchmarks/driving.py DRIVER TREE OUT [--wide]
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import MagicMock

import numpy as np

HERE = Path(__file__).resolve().parent
jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")


STUBS = [
    "PIL",
    "clu",
    "cv2",
    "gym",
    "imageio",
    "matplotlib",
    "tensorboard",
    "tensorflow",
    "tensorflow_addons",
    "tensorflow_datasets",
    "tensorflow_probability",
    "tensorflow_text",
    "tqdm",
]
"""What trees read data and write results with, and drivers do not."""


class Tree:
    """What a driver knows of the tree that it drives: its modules, made-up data, and where to leave results."""

    def __init__(self, root: Path, is_wide: bool) -> None:
        self.root = root
        self.stub(*STUBS)
        self.float = np.float64 if is_wide else np.float32
        self.chance = np.random.RandomState(0)
        self.losses: list[Any] = []
        self.parameters: list[list[Any]] = []

    def module(self, name: str, folder: str = "") -> Any:
        """A module of the tree, as a script in this folder of it imports it."""
        os.chdir(self.root / folder)
        if sys.path[0] != os.getcwd():
            sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)

    def stub(self, *packages: str) -> None:
        """Let these packages and their modules be imported, whether they are installed or not; nothing in them does anything."""
        sys.meta_path.insert(0, _Stubs(packages))

    def uniform(self, *shape: int) -> Any:
        """Numbers between 0 and 1."""
        return self.chance.uniform(size=shape).astype(self.float)

    def integers(self, below: int, *shape: int) -> Any:
        """Numbers from 0 on, as int32."""
        return self.chance.randint(0, below, shape).astype(np.int32)

    def like(self, arrays: Any) -> Any:
        """Made-up numbers in the place of all in a tree, where versions of Flax draw others."""
        return jax.tree_util.tree_map(lambda leaf: self.uniform(*leaf.shape), arrays)

    def folder(self) -> str:
        """A new empty folder."""
        return tempfile.mkdtemp()

    def record(self, *optimizers: Any, loss: Any = None) -> None:
        """What is compared after a step, and before the first: the parameters of optimizers, or parameters."""
        trees = [_parameters(one) for one in optimizers]
        leaves = jax.tree_util.tree_leaves(trees)
        self.parameters.append([np.array(leaf) for leaf in leaves])
        if loss is not None:
            self.losses.append(np.mean(np.asarray(loss)))

    def recorded(self, module: Any, name: str, read: Any) -> None:
        """Record after each call of a function, of which a loop that the driver only starts makes its steps.

        `read` makes from its result what holds the parameters, and the loss.
        """
        setattr(module, name, self._recording(getattr(module, name), read))

    def recorded_where_mapped(self, name: str, read: Any) -> None:
        """As `recorded`, of a function of this name that is given to `jax.pmap`."""
        pmap = jax.pmap

        def mapping(function: Any, *arguments: Any, **named: Any) -> Any:
            mapped = pmap(function, *arguments, **named)
            original = getattr(function, "func", function)
            is_step = original.__name__ == name
            return self._recording(mapped, read) if is_step else mapped

        jax.pmap = mapping

    def _recording(self, function: Any, read: Any) -> Any:
        def recording(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            parameters, loss = read(result)
            self.record(parameters, loss=loss)
            return result

        return recording

    def save(self, out: str) -> None:
        """Write what was recorded to an .npz file."""
        arrays = {
            f"{step}/{number}": leaf
            for step, leaves in enumerate(self.parameters)
            for number, leaf in enumerate(leaves)
        }
        save: Any = np.savez
        save(out, losses=np.asarray(self.losses, np.float64), **arrays)


def _parameters(node: Any) -> Any:
    """The parameters of an optimizer, a train state, or what has one of these as a field."""
    node = getattr(node, "optimizer", node)
    if hasattr(node, "optimizer_def"):
        return node.target
    return node.params if hasattr(node, "opt_state") else node


class _Stub(MagicMock):
    __path__: ClassVar[list[str]] = []
    __all__: ClassVar[list[str]] = []

    def __mro_entries__(self, bases: Any) -> Any:
        return (type("Stub", (), {}),)


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".", maxsplit=1)[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        return _Stub(name=spec.name, __spec__=spec, __name__=spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing is in it."""


def compute_alike(is_wide: bool) -> None:
    """Let both sides draw the same random numbers, and compute in float64 if `is_wide`."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_threefry_partitionable", False)
    jax.config.update("jax_default_matmul_precision", "float32")
    if is_wide:
        jax.config.update("jax_enable_x64", True)
        # Flax is not imported yet: float32 is the default of its layers.
        jnp.float32, jnp.int32 = jnp.float64, jnp.int64
    np.random.seed(0)
    random.seed(0)


def put_back() -> None:
    """Put back what JAX 0.4.13, the oldest that can be installed, and Flax 0.5.3 lack of what code of then uses."""
    lax_numpy: Any = importlib.import_module("jax._src.numpy.lax_numpy")
    partial_eval: Any = importlib.import_module("jax.interpreters.partial_eval")
    lax_numpy.isin = jnp.isin
    broadcast_to = jnp.broadcast_to
    jnp.broadcast_to = lambda array, shape: broadcast_to(jnp.asarray(array), shape)
    partial_eval.trace_to_jaxpr = partial_eval.trace_to_jaxpr_nounits
    jax.partial = partial
    jax.tree_multimap = jax.tree_util.tree_multimap = jax.tree_util.tree_map
    jax.ops.index_update = lambda array, where, values: array.at[where].set(values)
    for name in ("optimizers", "stax"):
        module = importlib.import_module(f"jax.example_libraries.{name}")
        sys.modules[f"jax.experimental.{name}"] = module
        setattr(jax.experimental, name, module)
    # As Flax 0.3.3 had it: a list of sizes that a module is given stays a list.
    linen: Any = importlib.import_module("flax.linen.module")
    freeze = linen._freeze_attr
    linen._freeze_attr = lambda value: (
        value
        if isinstance(value, list) and isinstance(value[0], int)
        else freeze(value)
    )
    # As Flax 0.4 had it.
    scaling: Any = importlib.import_module("flax.optim.dynamic_scale")
    vars(importlib.import_module("flax.optim"))["DynamicScale"] = scaling.DynamicScale
    if importlib.util.find_spec("flax.deprecated"):
        # As Flax 0.3.0 had it.
        sys.modules["flax.nn"] = importlib.import_module("flax.deprecated.nn")
    else:
        # Linen has the same activations.
        vars(importlib.import_module("flax"))["nn"] = importlib.import_module(
            "flax.linen"
        )


def main(name: str, root: str, out: str, *wide: str) -> None:
    """Train what a driver says."""
    warnings.simplefilter("ignore")
    compute_alike(bool(wide))
    if jax.__version__ == "0.4.13":
        put_back()
    # The folder of this file has modules of names that trees have too.
    sys.path[0] = str(HERE.parent)
    driver = importlib.import_module(f"benchmarks.drivers.{name}")
    del sys.path[0]
    tree = Tree(Path(root).resolve(), bool(wide))
    out = os.path.abspath(out)
    sys.argv = [name]
    driver.train(tree)
    tree.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
