"""One side of a scenario, run."""

from __future__ import annotations

import ast
import importlib
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from codemods.sources.notebook import python_of
from optim2optax.legacy import legacy_flax, load_module, replaced
from optim2optax.parity.judging.movement import leaves_by_path
from optim2optax.parity.recording.patching import recording
from optim2optax.parity.recording.process import import_packages
from optim2optax.parity.running.worker import root_of
from optim2optax.parity.scenario.states import parameters
from optim2optax.parity.scenario.tape import Tape
from optim2optax.precision import (
    double_everywhere,
    parameters_in_float64,
    precise,
)


@contextmanager
def as_module(path: Path) -> Iterator[Path]:
    """The module itself; a notebook is a module of the code in its cells."""
    if path.suffix != ".ipynb":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="optim2optax-") as folder:
        module = Path(folder, f"{path.stem}.py")
        module.write_text(python_of(path.read_bytes()), encoding="utf-8")
        yield module


def drive(scenario: Path, path: Path, legacy: bool, tape: Tape) -> None:
    """Run one side, and keep what it yields and the steps that it takes on a tape."""
    # The user's functions may import the old Flax when they are called, so it stays to the end.
    with legacy_flax() if legacy else nullcontext(), as_module(path) as path:
        import_packages(path)
        import_packages(scenario)
        with (
            double_everywhere(),
            recording(tape, legacy),
            precise(),
            parameters_in_float64(),
            told_apart(),
            modules_around(path) as package,
        ):
            module = (
                importlib.import_module(package)
                if package
                else load_module(path, path.stem, legacy)
            )
            script = load_module(scenario, scenario.stem, legacy)
            tape.replay = getattr(script, "replay", False)
            with closing(script.run(module)) as values:
                for value in values:
                    # A later step may be given the same buffers to write into.
                    leaves = leaves_by_path(parameters(value))
                    tape.values.append(jax.tree_util.tree_map(np.array, leaves))
                    tape.states.keep(value)


@contextmanager
def modules_around(path: Path) -> Iterator[str]:
    """Let a file find the modules beside it while the context lasts.

    Then these are removed: the other side has modules of the same names.

    Yields:
        The full name of the file's own module if it is part of a package, else an empty text.
    """
    root = root_of(str(path))
    before = list(sys.path)
    known = set(sys.modules)
    sys.path[:0] = [str(root)]
    try:
        inside = path.resolve().relative_to(root).with_suffix("")
        yield ".".join(inside.parts) if len(inside.parts) > 1 else ""
    finally:
        sys.path[:] = before
        for name in set(sys.modules) - known:
            file = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if file.is_relative_to(root) and "site-packages" not in file.parts:
                del sys.modules[name]


def module_of(scenario: Path) -> str | None:
    """The path of the file that a scenario drives, from the scenario's folder on.

    It is None unless the scenario says `module = "train.py"` at its top level.

    Raises:
        SyntaxError: if the scenario is not Python.
        ValueError: if it says that by anything but a string literal.
    """
    tree = ast.parse(scenario.read_bytes(), str(scenario))
    for node in tree.body:
        match node:
            # module = "../train.py"
            case ast.Assign(
                targets=[ast.Name(id="module")], value=ast.Constant(value=str(path))
            ):
                return path
            case ast.Assign(targets=[ast.Name(id="module")]):
                # The scenario is run later, and here only read.
                said = ast.unparse(node)
                raise ValueError(f"`{said}` is not the path of a file as a plain text")
    return None


REGISTER = jax.tree_util.register_dataclass


@contextmanager
def told_apart() -> Iterator[None]:
    """Let new dataclasses of Flax be pytrees that equal no others, within the context.

    To JAX (seen in 0.10) two pytrees of dataclasses are equal if they have as many fields, whatever
    their classes. Where one process loads a file often, or the old and the new file of one class, a
    function that was traced with one of the classes then may give its objects for those of another:
    optax has such functions, and about one load in a hundred meets one.
    """
    with replaced(vars(jax.tree_util), {"register_dataclass": _register}):
        yield


def _register(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type:
    """Do as JAX does, by functions that flatten and unflatten if Flax has given fields."""
    if data_fields is None or meta_fields is None:
        return REGISTER(nodetype, data_fields, meta_fields, drop_fields)
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(node: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        leaves = [
            (jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in data
        ]
        return leaves, tuple(getattr(node, name) for name in meta)

    def unflatten(values: tuple[Any, ...], leaves: Iterable[Any]) -> Any:
        return nodetype(**dict(zip((*data, *meta), (*leaves, *values), strict=True)))

    jax.tree_util.register_pytree_with_keys(nodetype, flatten, unflatten)
    return nodetype
