"""The function of a migrated program that gives its fresh state, and the result of calling it."""

from __future__ import annotations

import importlib
import inspect
import os
import re
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

HINTS = {
    "flax.*optim|optim.*flax": "Is the program migrated?",
    "^SystemExit: 2": "It gets no arguments here: parse them below "
    "`if __name__ == '__main__':`, or give each a default.",
    "^UnparsedFlagAccessError": "Name a function that calls `flags.FLAGS(['program'])` first.",
}
"""What to do about errors, by patterns of their texts."""


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
        raise _failed(f"{factory} failed with", error) from error


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
    if name.endswith(".py"):
        module_name = ".".join(FilePath(name).with_suffix("").parts)
        raise CheckpointError(f"{name} is a file: write {module_name}:{function}.")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CheckpointError(
            f"{factory} cannot be imported from here: {error}."
        ) from None
    except (Exception, SystemExit) as error:
        raise _failed(f"{name} fails when it is imported, with", error) from error
    if not callable(getattr(module, function, None)):
        # train.py beside an installed package `train`, which was imported first
        file = getattr(module, "__file__", None) or "which is built in"
        raise CheckpointError(f"the module {name}, {file}, has no function {function}.")
    found: Callable[[], Any] = getattr(module, function)
    needed = _required(found)
    if needed:
        # create_state(learning_rate_fn=learning_rate_fn, seed=...)
        given = (f"{one}={one if hasattr(module, one) else '...'}" for one in needed)
        raise CheckpointError(
            f"{factory} needs arguments: name a function without, such as "
            f"`def fresh_state(): return {function}({', '.join(given)})` in the module {name}."
        )
    return found


def _failed(what: str, error: BaseException) -> CheckpointError:
    first = str(error).strip().partition("\n")[0].rstrip(".")
    text = f"{type(error).__name__}: {first}"
    hints = (hint for pattern, hint in HINTS.items() if re.search(pattern, text))
    return CheckpointError(" ".join([f"{what} {text}.", *hints]))


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
def importing_from_here(factory: str) -> Iterator[None]:
    """Let the modules in the current folder be imported, which see no arguments of a command."""
    sys.path.insert(0, os.getcwd())
    own, sys.argv = sys.argv, [factory.partition(":")[0]]
    try:
        yield
    finally:
        sys.argv = own
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
