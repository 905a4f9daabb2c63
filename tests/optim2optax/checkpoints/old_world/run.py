"""Trains a legacy program, with the old Flax: `python run.py PROGRAM NAME FOLDER`.

PROGRAM is its file and NAME the name of its parts in `programs.py`; without one, of a program that creates a single optimizer. In
FOLDER, the checkpoint is written after STEPS steps as the old Flax does it, and `params` after as many more.
"""

import os
import sys
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"

import jax

jax.numpy.float32 = jax.numpy.float64  # in which Adafactor keeps its averages, whatever the parameters are

sys.path.insert(0, str(Path(__file__).parent))

from flax import serialization
from flax.training import checkpoints
from programs import PROGRAMS, OneOptimizer, load, params_of

STEPS = 50


def main(program, name, folder):
    parts, module = PROGRAMS.get(name) or OneOptimizer(), load(Path(program))
    state = parts.fresh(module)
    for number in range(2 * STEPS):
        if number == STEPS and hasattr(parts, "store"):
            (Path(folder) / f"checkpoint_{STEPS}").write_bytes(parts.store(module, state))
        elif number == STEPS:
            checkpoints.save_checkpoint(folder, state, STEPS)
        state = parts.step(module, state, number)
    (Path(folder) / "params").write_bytes(serialization.to_bytes(params_of(state)))


main(*sys.argv[1:])
