"""How much memory `checkpoint convert` takes, as a ratio to the size of the checkpoint.

python -m benchmarks.checkpoint [--gigabytes N] [--format msgpack|orbax]

Two checkpoints are made up and converted: of Adam, with many arrays, and of LARS, whose momentum changes its sign, with arrays so
large that Flax stores them in pieces, if N is at least 2.2. Next to each is what the command takes for a few bytes of the same:
Python, JAX and Flax.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orbax.checkpoint as ocp

from optim2optax.checkpoints.files import size_of
from optim2optax.checkpoints.serializing import write

PROGRAM = """
import json
import pathlib
import jax.numpy as jnp
import optax
from flax.training import train_state

def state():
    tx, shapes = json.loads(pathlib.Path("shapes.json").read_text())
    params = {name: jnp.zeros(shape) for name, shape in shapes.items()}
    return train_state.TrainState.create(apply_fn=None, params=params, tx=getattr(optax, tx)(0.1))
"""
MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
unit = 1 if sys.platform == "darwin" else 1024
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
"""
FIELDS = {"adam": ("grad_ema", "grad_sq_ema"), "lars": ("momentum",)}
ROW = 1024
BYTES = 4


def lay_out(folder: Path, name: str, size: float, arrays: int, format_: str) -> None:
    """Write a checkpoint of about `size` bytes, as a program would, and what it takes to convert it."""
    rows = max(1, int(size / (1 + len(FIELDS[name])) / arrays / ROW / BYTES))
    shapes = {f"layer_{number}": (rows, ROW) for number in range(arrays)}
    random = np.random.default_rng(0)
    params = {
        layer: random.standard_normal(shape, np.float32)
        for layer, shape in shapes.items()
    }
    states = {
        layer: dict.fromkeys(FIELDS[name], array) for layer, array in params.items()
    }
    state = {"step": np.asarray(7, np.int32), "param_states": states}
    old = {"target": params, "state": state}
    if format_ == "orbax":
        ocp.PyTreeCheckpointer().save(folder / "old", old)
    else:
        write(folder / "old", old)
    (folder / "shapes.json").write_text(json.dumps([name, shapes]))
    (folder / "program.py").write_text(PROGRAM)


def converted(folder: Path, format_: str) -> tuple[int, float]:
    """The most memory that the command takes, in bytes, and its seconds."""
    words = [
        "checkpoint",
        "convert",
        "old",
        "new",
        "--state",
        "program:state",
        "--format",
        format_,
        "--force",
    ]
    command = [
        sys.executable,
        "-c",
        MEASURED,
        sys.executable,
        "-m",
        "optim2optax",
        *words,
    ]
    environment: Mapping[str, Any] = {**os.environ, "JAX_PLATFORMS": "cpu"}
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    code, peak = map(int, done.stdout.split())
    if code:
        raise SystemExit(done.stderr)
    return peak, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=2.2)
    parser.add_argument(
        "--format",
        choices=("msgpack", "orbax"),
        default="msgpack",
        help="what to write",
    )
    parser.add_argument(
        "--old", choices=("msgpack", "orbax"), default="msgpack", help="what to read"
    )
    options = parser.parse_args()
    print(
        "| checkpoint | size | written | memory | of its size | without Python, JAX and Flax | seconds |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for optimizer, arrays in (("adam", 24), ("lars", 1)):
        with (
            tempfile.TemporaryDirectory() as small,
            tempfile.TemporaryDirectory() as large,
        ):
            lay_out(Path(small), optimizer, 0, 1, options.old)
            least, _ = converted(Path(small), options.format)
            lay_out(
                Path(large), optimizer, options.gigabytes * 1e9, arrays, options.old
            )
            peak, seconds = converted(Path(large), options.format)
            size, written = size_of(Path(large) / "old"), size_of(Path(large) / "new")
        sizes = f"{size / 1e9:.2f} GB | {written / 1e9:.2f} GB | {peak / 1e9:.2f} GB"
        print(
            f"| {optimizer} | {sizes} | {peak / size:.2f} | {(peak - least) / size:.2f} | {seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
