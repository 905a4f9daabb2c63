"""The real `flax.optim`, of the published Flax 0.5.3, beside today's Flax in one process.

Only the subpackage `flax.optim` comes from the old wheel; everything else (`linen`, `struct`,
`training`, …) is today's Flax, so that both sides share one JAX, one XLA and one device, and differ
in their optimizers alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import sys
import warnings
import zipimport
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import flax
import jax
import jax.numpy as jnp

from optim2optax.legacy_wheel import find_wheel

_load_count = itertools.count()


@contextmanager
def legacy_flax(wheel: Path | None = None) -> Iterator[ModuleType]:
    """Make `import flax` give a Flax that still has `optim`, as code for Flax 0.5.3 expects it.

    Inside, `flax.optim` is the old package, `init` and `apply` return frozen dictionaries as they
    did, and `jax` has the tree functions that it lost. Afterwards all is as before. Objects made
    inside keep working outside, for example when a later call traces them anew; only fresh imports
    of `flax.optim` fail there. May be nested.

    Args:
        wheel: the wheel of Flax 0.5.3; None searches as `find_wheel` does.

    Yields:
        The module `flax`.

    Raises:
        LegacyWheelError: if there is no wheel, or its content is not the published one.
    """
    modules = _legacy_modules(find_wheel(wheel))
    removed = _REMOVED_FROM_JAX.items()
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
def legacy_optim(wheel: Path | None = None) -> Iterator[Any]:
    """Like `legacy_flax`, and yields the old module `flax.optim` itself."""
    with legacy_flax(wheel) as module:
        yield module.optim


def load_module(path: Path, name: str, legacy: bool) -> ModuleType:
    """Execute a user's file as a module of its own, which no later `import` finds.

    Args:
        path: the file.
        name: what the module is called in tracebacks; made unique, so that the same file can be
            loaded often.
        legacy: execute it within `legacy_flax`. Its functions may be called outside, unless they
            themselves import something that only the old Flax has.

    Returns:
        The module.
    """
    spec = importlib.util.spec_from_file_location(f"{name}_{next(_load_count)}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    spec.loader = _Fresh(spec.name, str(path))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name while they are being defined.
    with (
        legacy_flax() if legacy else nullcontext(),
        replaced(sys.modules, {module.__name__: module}),
    ):
        spec.loader.exec_module(module)
    if legacy:
        _give_removed_names(module)
    return module


class _Fresh(SourceFileLoader):
    """Reads a file anew: bytecode may be that of another text of the same second and length."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(path)


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


@contextmanager
def replaced(namespace: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Put values into a namespace, such as the dictionary of a module, while the context lasts.

    Then the values of before come back.
    """
    before = {name: namespace[name] for name in values if name in namespace}
    namespace.update(values)
    try:
        yield
    finally:
        for name in values:
            namespace.pop(name, None)
        namespace.update(before)


_modules: dict[str, ModuleType] = {}
_TYPES = {"float32": jnp.float32, "int32": jnp.int32}


def _legacy_modules(wheel: Path) -> Mapping[str, ModuleType]:
    """The modules of the old `flax.optim` by name.

    They are executed once per process, so that their classes stay the same.
    """
    if not _modules:
        _modules.update(_execute(wheel))
    return _modules


def _execute(wheel: Path) -> dict[str, ModuleType]:
    """Execute the modules of the old `flax.optim`, which leave no trace in `sys.modules`."""
    importer = zipimport.zipimporter(str(wheel / "flax"))
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
        package.DynamicScale = importlib.import_module("flax.optim.dynamic_scale").DynamicScale
        loaded = sys.modules.items()
        modules = {name: module for name, module in loaded if name.startswith("flax.optim")}
    for name in modules:
        sys.modules.pop(name, None)
    for module in modules.values():
        _give_removed_names(module)
        if hasattr(module, "warnings"):
            # They say that flax.optim is deprecated, which is known here.
            vars(module)["warnings"] = SimpleNamespace(warn=_ignore)
    return modules


def _ignore(*_args: Any, **_kwargs: Any) -> None:
    pass


def _tree_multimap(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    return jax.tree_util.tree_map(function, tree, *rest)


_REMOVED_FROM_JAX: Mapping[str, Callable[..., Any]] = {
    "tree_map": jax.tree_util.tree_map,
    "tree_multimap": _tree_multimap,
    "tree_flatten": jax.tree_util.tree_flatten,
    "tree_unflatten": jax.tree_util.tree_unflatten,
    "tree_structure": jax.tree_util.tree_structure,
    "tree_leaves": jax.tree_util.tree_leaves,
}


class _OldJax(ModuleType):
    """`jax`, with the tree functions that were removed from it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)


@functools.cache
def _old_jax() -> ModuleType:
    module = _OldJax("jax")
    vars(module).update(_REMOVED_FROM_JAX)
    return module


def _give_removed_names(module: ModuleType) -> None:
    """Let the functions of a module find the names that were removed from `jax`, in any call."""
    if vars(module).get("jax") is jax:
        vars(module)["jax"] = _old_jax()
