"""Stand-ins for modules that `flax.training.checkpoints` of Flax 0.5.3 imports.

It reads and writes files by TensorFlow, which is large to install for that alone, and has a case
for arrays across processes, which JAX 0.4.13 has no more in the form of then.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GFILE = '''"""The part of TensorFlow that Flax 0.5.3 takes to read and write checkpoints \
on a disk."""

import glob as _glob
import io
import os
from os import listdir, remove
from os.path import exists, isdir
from shutil import rmtree


class GFile(io.FileIO):
    def size(self):
        return os.fstat(self.fileno()).st_size


def glob(pattern):
    return _glob.glob(pattern)


def makedirs(path):
    os.makedirs(path, exist_ok=True)


def rename(old, new, overwrite=False):
    if not overwrite and os.path.exists(new):
        raise FileExistsError(new)
    os.replace(old, new)
'''
ARRAYS = '''"""Arrays across processes, as they were before JAX 0.4: there are none."""

import jax

if not hasattr(jax.interpreters.xla, "DeviceArray"):
    jax.interpreters.xla.DeviceArray = jax.Array  # what arrays were called


class GlobalDeviceArray:
    pass
'''
SERIALIZATION = '''"""How arrays across processes were stored: there are none."""


class GlobalAsyncCheckpointManager:
    pass


def get_tensorstore_spec(path):
    raise NotImplementedError
'''
FILES: Mapping[str, str] = {
    "tensorflow/__init__.py": "",
    "tensorflow/io/__init__.py": "from . import gfile\n",
    "tensorflow/io/gfile.py": GFILE,
    "jax/experimental/global_device_array.py": ARRAYS,
    "jax/experimental/gda_serialization/__init__.py": "",
    "jax/experimental/gda_serialization/serialization.py": SERIALIZATION,
}


def add_stand_ins(site_packages: Path) -> None:
    """Write the modules that are missing into the packages of an environment."""
    missing = {name for name in FILES if not (site_packages / name).exists()}
    for name in missing:
        # A TensorFlow that is installed there stays whole.
        if name.startswith("tensorflow") and "tensorflow/__init__.py" not in missing:
            continue
        (site_packages / name).parent.mkdir(parents=True, exist_ok=True)
        (site_packages / name).write_text(FILES[name])
