"""What it costs to compare a training command: its time over that of two plain runs, and its memory.

python -m benchmarks.training [--parameters N] [--steps N] [--platform gpu]

On a CPU, time is processor time, and memory that of the largest process. On a GPU, time is what a clock shows, and memory what
all processes together took from the device.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Taken, measured

PROGRAM = """\
import sys

import jax
import jax.numpy as jnp
from flax import optim

number, steps = map(int, sys.argv[1:])
LAYERS = 10
width = round((number / LAYERS) ** 0.5)


@jax.jit
def train_step(optimizer, x):
    def loss_fn(params):
        y = x
        for layer in params.values():
            y = jnp.tanh(y @ layer["kernel"] + layer["bias"])
        return jnp.mean((y - x) ** 2)

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))


def layer(key):
    return {"kernel": jax.random.normal(key, (width, width)) / width**0.5, "bias": jnp.zeros(width)}


keys = jax.random.split(jax.random.PRNGKey(0), LAYERS)
optimizer = optim.Adam(1e-4).create({f"layer_{n}": layer(key) for n, key in enumerate(keys)})
for step in range(steps):
    optimizer = train_step(optimizer, jax.random.normal(jax.random.PRNGKey(step), (16, width)))
jax.block_until_ready(optimizer.target)
"""

PLAIN = """
import runpy, sys
from optim2optax.legacy import legacy_flax
sys.argv = sys.argv[1:]
with legacy_flax():
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program with the old Flax."""


DEVICE_MEMORY = (
    "nvidia-smi",
    "--query-gpu=memory.used",
    "--format=csv,noheader,nounits",
    "--loop-ms=100",
)
LIMIT = 3_600.0


@dataclass(frozen=True)
class Cost:
    """What a command took: its output, seconds, and MB at the peak."""

    output: str
    seconds: float
    memory: float


def cost(words: Sequence[str], folder: Path, platform: str, limit: float) -> Cost:
    """Run a command in a folder. Raises RuntimeError with its output if it fails."""
    if platform == "cpu":
        taken = _succeeded(measured(words, limit, folder))
        return Cost(taken.output, taken.processor, taken.memory)
    watch = subprocess.Popen(DEVICE_MEMORY, stdout=subprocess.PIPE, text=True)
    try:
        taken = _succeeded(measured(words, limit, folder))
    finally:
        watch.terminate()
        lines, _ = watch.communicate()
    used = [int(line) for line in lines.split()]
    return Cost(taken.output, taken.seconds, max(used) - used[0])


def _succeeded(taken: Taken) -> Taken:
    if taken.status:
        raise RuntimeError(taken.output or f"exit code {taken.status}")
    return taken


def compared(
    parameters: int, steps: int, platform: str, limit: float = LIMIT
) -> Iterator[tuple[str, Cost]]:
    """The cost of a plain run of the old program, of the new one, and of their comparison, each within a limit in seconds."""
    words = ["train.py", str(parameters), str(steps)]
    os.environ["JAX_PLATFORMS"] = "cuda" if platform == "gpu" else platform
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    ours = [sys.executable, "-m", "optim2optax"]
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        for tree in (old, new):
            tree.mkdir()
            (tree / "train.py").write_text(PROGRAM, encoding="utf-8")
        subprocess.run(
            [*ours, "rewrite", str(new)], check=True, stdout=subprocess.DEVNULL
        )
        parity = [*ours, "parity", "--platform", platform, "--before", str(old), "--"]
        for name, command, where in (
            ("old", [sys.executable, "-c", PLAIN, *words], old),
            ("new", [sys.executable, *words], new),
            ("compared", [*parity, "python", *words], new),
        ):
            yield name, cost(command, where, platform, limit)


def main() -> None:
    """Run the program plainly on both sides, then compare the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=5_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--platform", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args()
    print(f"{options.parameters:,} parameters, {options.steps} steps")
    costs = dict(compared(options.parameters, options.steps, options.platform))
    for name, taken in costs.items():
        print(f"{name:10} {taken.seconds:6.1f} s, {taken.memory / 1024:5.2f} GB")
    print(f"{ratio(costs):.2f} times the two plain runs")
    print(verdict(costs["compared"]))


def ratio(costs: dict[str, Cost]) -> float:
    """The time of the comparison over that of both plain runs."""
    return costs["compared"].seconds / (costs["old"].seconds + costs["new"].seconds)


def verdict(compared: Cost) -> str:
    """What the comparison said of the command."""
    return next(
        (line for line in compared.output.splitlines() if " steps, " in line),
        compared.output,
    )


if __name__ == "__main__":
    main()
