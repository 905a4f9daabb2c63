"""The old side of a scenario, run by an interpreter that has the old Flax and JAX: Python 3.8.

python worker.py SCENARIO MODULE OUT
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

jax: Any = importlib.import_module("jax")
flax: Any = importlib.import_module("flax")
linen: Any = importlib.import_module("flax.linen")
jnp: Any = importlib.import_module("jax.numpy")
save: Any = np.savez


def main(scenario: str, path: str, out: str) -> None:
    """Run the scenario on the module, and write what it yields to an .npz file."""
    draw_as_today()
    compute_in_float64()
    jnp.float32, jnp.int32 = jnp.float64, jnp.int64
    # from models import MLP
    sys.path.insert(0, str(root_of(path)))
    module = _load(path)
    script = _load(scenario)
    arrays = {"replay": np.asarray(getattr(script, "replay", False))}
    with contextlib.closing(script.run(module)) as values:
        for number, value in enumerate(values):
            for leaf, array in leaves(_parameters(value)):
                arrays[f"{number}/{leaf}"] = np.asarray(array)
    with open(out, "wb") as file:
        save(file, **arrays)


def draw_as_today() -> None:
    """Let the same keys give the same random numbers as by the defaults of today."""
    jax.config.update("jax_threefry_partitionable", True)


def compute_in_float64() -> None:
    """Let JAX compute in float64, and layers make float64 parameters by default."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    _widen_parameters(jnp.float32)


def _widen_parameters(float32: Any) -> None:
    """Let layers make float64 parameters where float32 is their default.

    A default is evaluated once, when the layer is defined, so that a new `jnp.float32` is too late.
    """
    layers: list[Any] = [*vars(linen).values()]
    for layer in layers:
        fields = getattr(layer, "__dataclass_fields__", {})
        field = fields.get("param_dtype")
        if field is None or field.default is not float32:
            continue
        field.default = jnp.float64
        layer.param_dtype = jnp.float64
        # The default is in the signature of `__init__`, too.
        defaults = layer.__init__.__defaults__ or ()
        wide = [jnp.float64 if value is float32 else value for value in defaults]
        layer.__init__.__defaults__ = tuple(wide)


def root_of(path: str) -> Path:
    """The folder that a file's modules are imported from."""
    root = Path(path).resolve().parent
    while (root / "__init__.py").exists():
        root = root.parent
    return root


def _load(path: str) -> Any:
    """Import a file, as a part of its package if it is in one."""
    inside = Path(path).resolve().relative_to(root_of(path)).with_suffix("")
    # `research.training.train` of `research/training/train.py`
    if len(inside.parts) > 1:
        return importlib.import_module(".".join(inside.parts))
    spec: Any = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _is_optimizer(node: Any) -> bool:
    """Whether this is an optimizer of `flax.optim`, or of a copy of it."""
    return hasattr(node, "optimizer_def") and hasattr(node, "target")


def _parameters(tree: Any) -> Any:
    """A tree with the parameters of every optimizer in the place of the optimizer."""

    def parameters(node: Any) -> Any:
        return node.target if _is_optimizer(node) else node

    return jax.tree_util.tree_map(parameters, tree, is_leaf=_is_optimizer)


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Leaves by paths such as `Dense_0/kernel`.

    The old JAX has no paths of leaves, so containers are taken apart here.
    """
    # The names are those that today's JAX gives, so that leaves of both sides correspond.
    if isinstance(tree, (dict, flax.core.FrozenDict)):
        items = [(str(key), tree[key]) for key in sorted(tree)]
    # A named tuple is a tuple, too, so it comes first.
    elif hasattr(tree, "_fields"):
        items = [(name, getattr(tree, name)) for name in tree._fields]
    elif isinstance(tree, (list, tuple)):
        items = [(str(index), item) for index, item in enumerate(tree)]
    elif hasattr(tree, "__dataclass_fields__"):
        fields = tree.__dataclass_fields__.values()
        names = [
            field.name for field in fields if field.metadata.get("pytree_node", True)
        ]
        items = [(name, getattr(tree, name)) for name in names]
    elif tree is None:
        items = []
    else:
        yield "/".join(path), tree
        return
    for name, item in items:
        yield from leaves(item, (*path, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
