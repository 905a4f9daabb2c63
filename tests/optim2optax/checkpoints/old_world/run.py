"""Trains a legacy program, with the old Flax: `python run.py PROGRAM NAME FOLDER`.

PROGRAM is its file and NAME the name of its parts in `programs.py`; without one, of a program that creates a single optimizer. In
FOLDER, the checkpoint is written after STEPS steps as the old Flax does it, and `params` after as many more.
"""

import os
import shutil
import sys
import types
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"

# `flax.training.checkpoints` of then reads and writes by TensorFlow, of which this is all that it takes for files on a disk.
gfile = types.SimpleNamespace(
    GFile=open,
    exists=os.path.exists,
    isdir=os.path.isdir,
    listdir=os.listdir,
    makedirs=lambda path: os.makedirs(path, exist_ok=True),
    glob=lambda pattern: [str(path) for path in Path(pattern).parent.glob(Path(pattern).name)],
    rename=lambda old, new, overwrite=False: os.replace(old, new) if overwrite else os.rename(old, new),
    remove=os.remove,
    rmtree=shutil.rmtree,
)
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
sys.modules["tensorflow.io"] = types.SimpleNamespace(gfile=gfile)

# And it imports what JAX had for arrays across processes, of which there are none here.
arrays = types.SimpleNamespace(GlobalDeviceArray=type("GlobalDeviceArray", (), {}))
sys.modules["jax.experimental.global_device_array"] = arrays
sys.modules["jax.experimental.gda_serialization"] = types.ModuleType("gda_serialization")
sys.modules["jax.experimental.gda_serialization.serialization"] = types.SimpleNamespace(
    get_tensorstore_spec=None, GlobalAsyncCheckpointManager=None
)

import jax

jax.interpreters.xla.DeviceArray = jax.Array  # what arrays were called
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
