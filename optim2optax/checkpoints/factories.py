"""The function of a migrated program that gives its fresh state, and the result of calling it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import jax

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.missing_transformations import split
from optim2optax.checkpoints.state_dict_places import Path

Fresh = tuple[Any, dict[Path, Any]]
"""A program's fresh state, and its transformations outside of train states by their places."""


def thought_of(factory: str) -> Fresh:
    """An abstract state: it has only a structure, shapes and dtypes, and takes no memory.

    Raises:
      CheckpointError: if there is no such function.
      Exception: whatever the function raises, perhaps only because it has no numbers.
    """
    make = made_by(factory)
    transformations: dict[Path, Any] = {}

    # JAX takes only arrays from a function
    def without_transformations() -> Any:
        state, found = split(make())
        transformations.update(found)
        return state

    return jax.eval_shape(without_transformations), transformations


def made(factory: str) -> Fresh:
    """A state with numbers.

    Raises:
      CheckpointError: if there is no such function, or it fails.
    """
    make = made_by(factory)
    try:
        return split(make())
    except (Exception, SystemExit) as error:
        # SystemExit: argparse, if the program needs arguments
        raise CheckpointError(f"{factory} failed with {error_text(error)}") from error


def made_by(factory: str) -> Callable[[], Any]:
    """The user's function with a name such as `train:create_state`.

    Raises:
      CheckpointError: if there is none.
    """
    name, separator, function = factory.partition(":")
    if not (name and separator and function):
        raise CheckpointError(
            f"{factory} names no function: write module:function, such as train:create_state."
        )
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CheckpointError(
            f"{factory} cannot be imported from here: {error}."
        ) from None
    except (Exception, SystemExit) as error:
        # module 'flax' has no attribute 'optim'
        is_legacy = "flax" in str(error) and "optim" in str(error)
        hint = " Is the program migrated?" if is_legacy else ""
        raise CheckpointError(
            f"{name} fails when it is imported, with {type(error).__name__}: {error}.{hint}"
        ) from error
    if not callable(getattr(module, function, None)):
        # train.py beside an installed package `train`, which was imported first
        file = getattr(module, "__file__", None) or "which is built in"
        raise CheckpointError(f"the module {name}, {file}, has no function {function}.")
    found: Callable[[], Any] = getattr(module, function)
    needed = _required(found)
    if needed:
        raise CheckpointError(
            f"{factory} needs arguments ({', '.join(needed)}): write a function without arguments "
            "that calls it, and name that."
        )
    return found


def _required(function: Callable[..., Any]) -> list[str]:
    """The parameters without which a function cannot be called."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some that are built in have no signature
        return []
    varying = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in varying
    ]


@contextmanager
def importing_from_here() -> Iterator[None]:
    """Let the modules in the current folder be imported."""
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path.remove(os.getcwd())


def forget_modules_here() -> None:
    """Let the modules in the current folder be imported again.

    They may keep abstract values from a call without numbers.
    """
    for name, module in [*sys.modules.items()]:
        if name != "__main__" and _is_here(module):
            del sys.modules[name]


def _is_here(module: Any) -> bool:
    """Whether a module is from the current folder."""
    # modules that are built in have no file
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    return FilePath(file).resolve().is_relative_to(FilePath.cwd().resolve())


def error_text(error: BaseException) -> str:
    """An error in one line."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"
