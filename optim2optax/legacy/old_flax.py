"""The real `flax.optim`, of the published Flax 0.5.3, beside today's Flax in one process.

Only the subpackage `flax.optim` comes from the old wheel; everything else (`linen`, `struct`,
`training`, …) is today's Flax, so that both sides share one JAX, one XLA and one device, and differ
in their optimizers alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
import zipimport
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import flax
import jax
import jax.numpy as jnp

from optim2optax.legacy.namespaces import replaced
from optim2optax.legacy_wheel import find_wheel

REMOVED_FROM_JAX: Mapping[str, Callable[..., Any]] = {
    "tree_map": jax.tree_util.tree_map,
    "tree_multimap": jax.tree_util.tree_map,
    "tree_flatten": jax.tree_util.tree_flatten,
    "tree_unflatten": jax.tree_util.tree_unflatten,
    "tree_structure": jax.tree_util.tree_structure,
    "tree_leaves": jax.tree_util.tree_leaves,
}


@contextmanager
def legacy_flax() -> Iterator[ModuleType]:
    """Make `import flax` give a Flax that still has `optim`, as code for Flax 0.5.3 expects it.

    Inside, `flax.optim` is the old package, `init` and `apply` return frozen dictionaries as they
    did, and `jax` has the tree functions that it lost. Afterwards all is as before. Objects made
    inside keep working outside, for example when a later call traces them anew; only fresh imports
    of `flax.optim` fail there. May be nested.

    Yields:
        The module `flax`.

    Raises:
        LegacyWheelError: if there is no wheel, or its content is not the published one.
    """
    modules = _legacy_modules()
    removed = REMOVED_FROM_JAX.items()
    missing = {name: function for name, function in removed if name not in vars(jax)}
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # Today's Flax warns of traversals, as it has no flax.optim. The old side needs them.
        warnings.filterwarnings(
            "ignore", category=DeprecationWarning, module=r"flax\.traverse_util$"
        )
        stack.enter_context(replaced(sys.modules, modules))
        stack.enter_context(replaced(vars(flax), {"optim": modules["flax.optim"]}))
        stack.enter_context(replaced(vars(jax), missing))
        stack.enter_context(_frozen_variables())
        yield flax


@contextmanager
def legacy_optim() -> Iterator[Any]:
    """Like `legacy_flax`, and yields the old module `flax.optim` itself."""
    with legacy_flax() as module:
        yield module.optim


@contextmanager
def _frozen_variables() -> Iterator[None]:
    """Let `init` and `apply` return frozen dictionaries while the context lasts."""
    config: Any = flax.config
    before = config.flax_return_frozendict
    config.update("flax_return_frozendict", True)
    try:
        yield
    finally:
        config.update("flax_return_frozendict", before)


_TYPES = {"float32": jnp.float32, "int32": jnp.int32}


@cache
def _legacy_modules() -> Mapping[str, ModuleType]:
    """The modules of the old `flax.optim` by name, which leave no trace in `sys.modules`.

    They are executed once per process, so that their classes stay the same.
    """
    importer = zipimport.zipimporter(str(find_wheel() / "flax"))
    spec = importer.find_spec("flax.optim")
    assert spec is not None
    assert spec.loader is not None
    package: Any = importlib.util.module_from_spec(spec)
    # On import the old package changes the warning filters of the process. Defaults of parameters,
    # such as Adafactor's `dtype_momentum`, are those of optax, even if `precise` renames them now.
    with (
        warnings.catch_warnings(),
        replaced(sys.modules, {"flax.optim": package}),
        replaced(vars(jnp), _TYPES),
    ):
        spec.loader.exec_module(package)
        # Earlier releases had it in the package itself, for code with flax.optim.DynamicScale.
        package.DynamicScale = importlib.import_module(
            "flax.optim.dynamic_scale"
        ).DynamicScale
        loaded = sys.modules.items()
        modules = {
            name: module for name, module in loaded if name.startswith("flax.optim")
        }
    for name in modules:
        sys.modules.pop(name, None)
    for module in modules.values():
        give_removed_names(module)
        if hasattr(module, "warnings"):
            # They say that flax.optim is deprecated, which is known here.
            vars(module)["warnings"] = SimpleNamespace(warn=lambda *_, **__: None)
    return modules


@cache
def _old_jax() -> ModuleType:
    """`jax`, with the tree functions that were removed from it."""
    module = ModuleType("jax")
    vars(module).update(REMOVED_FROM_JAX, __getattr__=lambda name: getattr(jax, name))
    return module


def give_removed_names(module: ModuleType) -> None:
    """Let the functions of a module find the names that were removed from `jax`, in any call."""
    if vars(module).get("jax") is jax:
        vars(module)["jax"] = _old_jax()
