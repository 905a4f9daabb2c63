"""Drive a user's own functions, old and new, through the same small script, and compare results.

A scenario is a Python file with a generator `run(module)`. It gets the imported module, which is
the old code or the new, and yields what to compare, usually the optimizer: once at the start, and
again after each step.

    def run(module):
        state = module.create(jax.random.PRNGKey(0))
        yield state
        for batch in batches():
            state = module.train_step(state, batch)
            yield state

Its steps are a closed loop, in which each side computes its own gradients. A scenario that feeds
recorded gradients to both sides says `replay = True` at its top level, and is then judged by the
much narrower gate of a replay.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen

from optim2optax.parity.baseline import Baseline
from optim2optax.parity.dataclass_nodes import told_apart
from optim2optax.parity.interpreter import drive_elsewhere
from optim2optax.parity.judge import (
    Comparison,
    PyTree,
    Verdict,
    compare_trajectories,
    leaves_by_path,
)
from optim2optax.parity.legacy import legacy_flax, load_module
from optim2optax.parity.noise import settled
from optim2optax.parity.open_loop import Tape, compare_open_loop, evidence_of
from optim2optax.parity.packages import import_packages
from optim2optax.parity.precision import double_everywhere, precise
from optim2optax.parity.recorder import recording
from optim2optax.parity.states import States, with_states


def run_scenario(
    scenario: Path,
    before: Path,
    after: Path,
    steps: int | None = None,
    legacy_python: Path | None = None,
) -> Comparison:
    """Run a scenario on the old code and on the new, and judge whether they train alike.

    Both run in float64.

    Args:
        scenario: the file with `run(module)`.
        before: the old code, which is run with the real `flax.optim`.
        after: the new code.
        steps: how many of the yielded values to compare; None means all.
        legacy_python: an interpreter with a Flax of its own, under which the old code is run;
            None runs it in this process.

    Returns:
        The comparison; its step 0 is the first value yielded.

    Raises:
        ValueError: if the two sides yield different numbers of values, or values that do not
            correspond.
    """
    if legacy_python is not None:
        old, replay = drive_elsewhere(legacy_python, scenario, before, steps)
        tape = Tape()
        new, _ = _drive(scenario, after, False, steps, tape)
        evidence = evidence_of(Tape(), tape, old)
        return compare_trajectories(old, new, closed_loop=not replay, evidence=evidence)
    closed, opened = run_both_loops(scenario, before, after, steps)
    if opened is None or closed.verdict is Verdict.DIFFERENT:
        return closed
    return opened if opened.verdict is Verdict.DIFFERENT else closed


def run_both_loops(
    scenario: Path, before: Path, after: Path, steps: int | None = None
) -> tuple[Comparison, Comparison | None]:
    """Run a scenario in closed loop as `run_scenario` does, and its optimizers in open loop.

    Returns:
        The comparison of what the scenario yields, and that of the optimizers alone, on the
        gradients that the old side computed, where the code allows it.
    """
    tapes = Tape(), Tape()
    try:
        return _run_both_loops(scenario, before, after, steps, tapes, wide=True)
    except Exception:
        # A program that was given float64 in the place of float32 may fail for that alone.
        if not any(tape.widened for tape in tapes):
            raise
    return _run_both_loops(scenario, before, after, steps, (Tape(), Tape()), wide=False)


def _run_both_loops(
    scenario: Path,
    before: Path,
    after: Path,
    steps: int | None,
    tapes: tuple[Tape, Tape],
    wide: bool,
) -> tuple[Comparison, Comparison | None]:
    states = States(), States()
    old, replay = _drive(scenario, before, True, steps, tapes[0], states[0], wide=wide)
    new, _ = _drive(scenario, after, False, steps, tapes[1], states[1], wide=wide)
    evidence = evidence_of(*tapes, old)

    def compare(gate: float | None = None) -> Comparison:
        return compare_trajectories(old, new, closed_loop=not replay, evidence=evidence, gate=gate)

    def noise() -> Comparison | None:
        tape = Tape()
        try:
            again, _ = _drive(scenario, before, True, steps, tape, rounding=True, wide=wide)
            found = compare_trajectories(old, again, closed_loop=True, evidence=evidence)
        except Exception:  # noqa: BLE001 - a user's code may check a value that is another one here
            return None
        return found if tape.steps or tape.defined else None

    parameters_alone = settled(compare(), compare, noise)
    with precise():
        return with_states(parameters_alone, *states, evidence), compare_open_loop(*tapes)


def baseline_of(scenario: Path, before: Path, legacy_python: Path | None = None) -> Baseline:
    """The baseline of a scenario: what its old side yields."""
    if legacy_python is not None:
        values, replay = drive_elsewhere(legacy_python, scenario, before, None)
    else:
        values, replay = _drive(scenario, before, True, None, Tape())
    return Baseline([leaves_by_path(value) for value in values], replay)


def compare_with_baseline(baseline: Baseline, scenario: Path, after: Path) -> Comparison:
    """Run a scenario on the new code alone, and compare it with what the old code once yielded."""
    tape = Tape()
    new, _ = _drive(scenario, after, False, None, tape)
    evidence = evidence_of(Tape(), tape, baseline.values)
    return compare_trajectories(
        baseline.values, new, closed_loop=not baseline.replay, evidence=evidence
    )


def module_of(scenario: Path) -> str | None:
    """The path of the file that a scenario drives, from the scenario's folder on.

    The scenario says `module = "train.py"` at its top level. It is None if it does not: then it
    drives the `before.py` and `after.py` beside it.

    Raises:
        SyntaxError: if the scenario is not Python.
        ValueError: if it says that by anything but a string literal.
    """
    for node in ast.parse(scenario.read_bytes(), str(scenario)).body:
        if not isinstance(node, ast.Assign):
            continue
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "module" in names:
            if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
                raise ValueError(f"`{ast.unparse(node)}` is not the path of a file as a plain text")
            return node.value.value
    return None


def parameters(tree: PyTree) -> PyTree:
    """A tree with the parameters of every optimizer in the place of the optimizer.

    An optimizer is an `Optimizer`, a `TrainState`, or `(params, opt_state)`. So one scenario serves
    both sides. `run_scenario` applies it to all that a scenario yields.
    """
    return jax.tree_util.tree_map(_parameters, tree, is_leaf=_holds_parameters)


def _parameters(node: Any) -> PyTree:
    if _is_legacy_optimizer(node):
        return node.target
    if _is_pair(node):
        return node[0]
    return node.params if _is_train_state(node) else node


def _holds_parameters(node: Any) -> bool:
    return _is_legacy_optimizer(node) or _is_train_state(node) or _is_pair(node)


def _is_pair(node: Any) -> bool:
    """Whether this is `(params, opt_state)`, perhaps with the number of steps."""
    return type(node) is tuple and len(node) in (2, 3) and _is_optimizer_state(node[1])


def _is_optimizer_state(node: Any) -> bool:
    """Whether this is the state of a gradient transformation, or a tuple of those of a chain."""
    if type(node) is tuple:
        return bool(node) and all(map(_is_optimizer_state, node))
    kind = type(node)
    if not hasattr(kind, "_fields"):
        return False
    # Helpers that `rewrite` emits define states such as `ScaleBySumOfSquaresState`.
    return kind.__module__.startswith("optax.") or kind.__name__.startswith("ScaleBy")


def _is_legacy_optimizer(node: Any) -> bool:
    return hasattr(node, "optimizer_def") and hasattr(node, "target")


def _is_train_state(node: Any) -> bool:
    return hasattr(node, "tx") and hasattr(node, "opt_state") and hasattr(node, "params")


def _drive(
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
                    trajectory.append(jax.tree_util.tree_map(np.array, parameters(value)))
                    if states is not None:
                        states.keep(value, _holds_parameters)
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


@contextmanager
def parameters_in_float64() -> Iterator[None]:
    """Let layers of Flax make float64 parameters where they would make float32 ones by default."""

    def widen(method: Any, args: Any, kwargs: Any, context: linen.module.InterceptorContext) -> Any:
        if getattr(context.module, "param_dtype", None) == np.float32:
            object.__setattr__(context.module, "param_dtype", jnp.float64)
        return method(*args, **kwargs)

    with linen.intercept_methods(widen):
        yield
