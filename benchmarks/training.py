"""What it costs to compare a training command: its processor time over that of two plain runs, and its memory.

python -m benchmarks.training [--parameters N] [--steps N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import measured

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


LIMIT = 3_600


def main() -> None:
    """Run the program plainly on both sides, then compare the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=5_000_000)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    words = ["train.py", str(options.parameters), str(options.steps)]
    os.environ["JAX_PLATFORMS"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        for tree in (old, new):
            tree.mkdir()
            (tree / "train.py").write_text(PROGRAM, encoding="utf-8")
        rewriting = [sys.executable, "-m", "optim2optax", "rewrite", str(new)]
        subprocess.run(rewriting, check=True, stdout=subprocess.DEVNULL)
        plain = [
            measured([sys.executable, "-c", PLAIN, *words], LIMIT, old),
            measured([sys.executable, *words], LIMIT, new),
        ]
        parity = [
            sys.executable,
            "-m",
            "optim2optax",
            "parity",
            "--platform",
            "cpu",
            "--before",
            str(old),
        ]
        compared = measured([*parity, "--", "python", *words], LIMIT, new)
    print(
        next(
            (line for line in compared.output.splitlines() if " steps, " in line),
            compared.output,
        )
    )
    both = sum(side.processor for side in plain)
    print(f"{options.parameters:,} parameters, {options.steps} steps")
    for name, side in (("old", plain[0]), ("new", plain[1]), ("compared", compared)):
        print(
            f"{name:10} {side.processor:6.1f} s of processor time, {side.memory / 1024:5.2f} GB"
        )
    print(f"{compared.processor / both:.2f} times the two plain runs")


if __name__ == "__main__":
    main()
