"""Do repositories of others train as before, migrated by one command and nothing else?

`python -m benchmarks.real TREES` takes each folder of TREES that `benchmarks/drivers` has a driver for, named `OWNER__NAME` and
holding the repository as a folder. It migrates a copy with `optim2optax rewrite --modernize --vendor .`, lets the driver take some
steps of training on both sides, on made-up data, and prints a table. The old side runs with JAX 0.4.13, the oldest that can
still be installed, and Flax 0.5.3, or 0.3.6 if its models are written with `flax.nn`; the new one with those of today. `--environments DIR` keeps the two environments for later runs;
`--only NAME` chooses trees.

Differences are relative, the largest of any step: of the loss, and of a parameter over what it has moved. float64 decides: Adam
divides small gradients by their size, so that in float32 rounding alone may move a parameter that moves little by as much.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import tool
from optim2optax.parity.running.interpreter import add_stand_ins

HERE = Path(__file__).resolve().parent
OLD = "jax==0.4.13 jaxlib==0.4.13 numpy<1.24 scipy<1.13 dm-haiku==0.0.9"
ENVIRONMENTS = {
    "0.3.6": ("3.9", f"flax==0.3.6 {OLD}"),
    "0.5.3": ("3.9", f"flax==0.5.3 {OLD}"),
    "today": ("3.11", "flax jax optax chex dm-haiku"),
}
BOTH = "absl-py einops gin-config ml_collections packaging six"
"""What trees import beside; the packages that `benchmarks/driving` stubs are in neither."""

# Programs that are compiled with less care are compiled in half the time.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
LIMIT = 900
"""Seconds that one side may take."""

STILL = 1e-12
"""What moves by less than this part of what moves most has a gradient of zero but for rounding, as the bias of keys in attention."""

Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Difference:
    """The largest relative difference of losses and of parameters."""

    loss: float
    parameters: float


class NotTrainedError(Exception):
    """A side did not train; the message is the last line that it said."""


def environment(folder: Path, flax: str) -> Path:
    """The interpreter with a version of Flax, whose environment is made if it is not there."""
    root = folder / flax
    python = root / "bin" / "python"
    if not python.exists():
        uv = tool("uv", "uv")
        assert uv is not None, "uv is not installed"
        version, packages = ENVIRONMENTS[flax]
        words = [*packages.split(), *BOTH.split()]
        subprocess.run([*uv, "venv", "-q", "-p", version, root], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "-p", python, *words], check=True)
        if flax != "today":
            add_stand_ins(next(root.glob("lib/*/site-packages")))
    return python


def migrated(tree: Path, folder: Path) -> tuple[Path, int]:
    """A copy of a tree that one command has migrated, and the number of sites that it leaves.

    Raises NotTrainedError if the command fails.
    """
    copy = folder / tree.name
    shutil.copytree(tree, copy, symlinks=True)
    (copy / ".git").mkdir(exist_ok=True)
    words = ["rewrite", "--modernize", "--vendor", "--output-format", "json", "."]
    done = subprocess.run(
        [sys.executable, "-m", "optim2optax", *words],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise NotTrainedError(done.stderr.strip().splitlines()[-1])
    left: int = json.loads(done.stdout)["summary"]["unresolved"]
    return copy, left


def trained(python: Path, driver: str, tree: Path, is_wide: bool) -> Arrays:
    """What a driver records on one side. Raises NotTrainedError."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.npz")
        script = HERE / "driving.py"
        words = [str(python), str(script), driver, str(tree), str(out)]
        if is_wide:
            words.append("--wide")
        try:
            done = subprocess.run(
                words,
                env={**os.environ, "XLA_FLAGS": QUICK},
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NotTrainedError(f"took more than {LIMIT} s") from error
        if done.returncode:
            raise NotTrainedError(done.stderr.strip().splitlines()[-1])
        with np.load(out) as arrays:
            return dict(arrays)


def difference(old: Arrays, new: Arrays) -> Difference:
    """How far two sides are from each other."""
    losses = np.abs(new["losses"] - old["losses"]) / np.abs(old["losses"])
    assert old.keys() == new.keys(), "the sides record other steps or leaves"
    worst = 0.0
    first: list[NDArray[np.float64]] = []
    for before, after in zip(steps(old), steps(new), strict=True):
        # Another model begins.
        if [leaf.shape for leaf in before] != [leaf.shape for leaf in first]:
            first = before
        pairs = list(zip(first, before, after, strict=True))
        moved = [largest(p - start) or largest(p) for start, p, _ in pairs]
        errors = [largest(p - q) for _, p, q in pairs]
        still = STILL * max(moved, default=0.0)
        for error, movement in zip(errors, moved, strict=True):
            if max(error, movement) > still:
                worst = max(worst, error / movement)
    return Difference(float(np.max(losses, initial=0)), worst)


def steps(arrays: Arrays) -> Iterator[list[NDArray[np.float64]]]:
    """The leaves after each step."""
    names = [name.split("/") for name in arrays if "/" in name]
    for step in range(1 + max(int(step) for step, _ in names)):
        count = sum(int(one) == step for one, _ in names)
        yield [arrays[f"{step}/{leaf}"].astype(np.float64) for leaf in range(count)]


def largest(array: NDArray[np.float64]) -> float:
    """The largest absolute value."""
    return float(np.max(np.abs(array), initial=0))


def line(tree: Path, driver: str, environments: Path) -> str:
    """The line of the table for a tree."""
    module = importlib.import_module(f"benchmarks.drivers.{driver}")
    before = environment(environments, getattr(module, "FLAX", "0.5.3"))
    today = environment(environments, "today")
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        try:
            copy, left = migrated(tree, Path(folder))
        except NotTrainedError as error:
            return f"{driver} | is not migrated: {error}" + " |" * 6
        migrating = time.monotonic() - start
        for is_wide in (False, True):
            try:
                old = trained(before, driver, tree, is_wide)
            except NotTrainedError as error:
                cells += [f"the old side does not run: {error}", ""]
                continue
            try:
                new = trained(today, driver, copy, is_wide)
            except NotTrainedError as error:
                cells += [f"does not train: {error}", ""]
                continue
            found = difference(old, new)
            cells += [f"{found.loss:.0e}", f"{found.parameters:.0e}"]
        training = time.monotonic() - start - migrating
    return " | ".join(
        [driver, *cells, f"{migrating:.0f}", f"{training:.0f}", str(left)]
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--environments", type=Path)
    options = parser.parse_args()
    print(
        "| tree | loss | parameters | loss, float64 | parameters, float64 "
        "| s to migrate | s to train, four times | left |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        environments = options.environments or Path(folder)
        for tree in sorted(options.trees.resolve().glob("*/*/")):
            name = tree.parent.name
            # google__flax@mnist has google__flax_mnist.py
            driver = re.sub(r"\W", "_", name)
            if options.only and name not in options.only:
                continue
            if (HERE / "drivers" / f"{driver}.py").exists():
                print(f"| {line(tree, driver, environments)} |", flush=True)


if __name__ == "__main__":
    main()
