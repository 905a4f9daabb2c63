"""One side of a scenario, run."""

from __future__ import annotations

import ast
import importlib
import itertools
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

import jax
import numpy as np

from optim2optax.legacy import legacy_flax, load_module
from optim2optax.parity.judging.leaves import PyTree
from optim2optax.parity.recording.process import import_packages
from optim2optax.parity.recording.recording import recording
from optim2optax.parity.scenario.dataclass_nodes import told_apart
from optim2optax.parity.scenario.states import States, parameters
from optim2optax.parity.scenario.tape import Tape
from optim2optax.precision import (
    double_everywhere,
    parameters_in_float64,
    precise,
)


def drive(
    scenario: Path,
    path: Path,
    legacy: bool,
    steps: int | None,
    tape: Tape | None = None,
    states: States | None = None,
    rounding: bool = False,
    wide: bool = True,
) -> tuple[list[PyTree], bool]:
    """Run one side.

    Returns:
        The parameters in each value that it yields, and whether it was a replay.
    """
    # The user's functions may import the old Flax when they are called, so it stays to the end.
    with legacy_flax() if legacy else nullcontext():
        import_packages(path)
        import_packages(scenario)
        recorded: AbstractContextManager[None] = nullcontext()
        if tape is not None:
            recorded = recording(tape, legacy, rounding=rounding, wide=wide)
        with (
            double_everywhere(),
            recorded,
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
            trajectory = []
            with closing(script.run(module)) as values:
                for value in itertools.islice(values, steps):
                    # A later step may be given the same buffers to write into.
                    trajectory.append(
                        jax.tree_util.tree_map(np.array, parameters(value))
                    )
                    if states is not None:
                        states.keep(value)
    return trajectory, getattr(script, "replay", False)


@contextmanager
def modules_around(path: Path) -> Iterator[str]:
    """Let a file find the modules beside it while the context lasts.

    Then these are removed: the other side has modules of the same names.

    Yields:
        The full name of the file's own module if it is part of a package, else an empty text.
    """
    root = path.resolve().parent
    while (root / "__init__.py").exists():
        root = root.parent
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

    The scenario says `module = "train.py"` at its top level. It is None if it does not: then it
    drives the `before.py` and `after.py` beside it.

    Raises:
        SyntaxError: if the scenario is not Python.
        ValueError: if it says that by anything but a string literal.
    """
    tree = ast.parse(scenario.read_bytes(), str(scenario))
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        # module = "../train.py"
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "module" not in names:
            continue
        # The scenario is run later, and here only read.
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        if not isinstance(value, str):
            said = ast.unparse(node)
            raise ValueError(f"`{said}` is not the path of a file as a plain text")
        return value
    return None
