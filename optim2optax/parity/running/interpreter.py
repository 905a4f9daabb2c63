"""Interpreters with the old Flax and JAX, for code that needs more than `flax.optim`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from optim2optax.wording import last_line

REQUIREMENTS = ("flax==0.5.3", "jax==0.4.13", "jaxlib==0.4.13", "numpy<2", "scipy<1.13")
VERSIONS = ("3.11", "3.10", "3.9", "3.8")
WORKER = Path(__file__).with_name("worker.py")
"""The script that such an interpreter runs a scenario with."""

PROBE = (
    "import json, sys, warnings; warnings.simplefilter('ignore'); "
    "import flax, jax, numpy; from flax import optim; "
    "print(json.dumps({'python': sys.version.split()[0], 'flax': flax.__version__, "
    "'jax': jax.__version__, 'numpy': numpy.__version__}))"
)


class LegacyEnvironmentError(click.UsageError):
    """There is no interpreter with the old Flax; the message says why, and what to do."""


def create_legacy_environment(directory: Path, python: Path | None = None) -> Path:
    """The interpreter of a virtual environment with Flax 0.5.3 and JAX 0.4.13.

    It is made by a Python from 3.8 to 3.11, unless it is there already. In it,
    `flax.training.checkpoints` works.

    Raises:
        LegacyEnvironmentError: if no fitting Python is found, the folder is something else, or
            pip fails.
    """
    interpreter = directory / (
        "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    )
    if interpreter.exists():
        check_legacy_python(interpreter)
        return interpreter
    if directory.exists() and any(directory.iterdir()):
        raise LegacyEnvironmentError(
            f"{directory} is not empty, and no environment for the old side. Name another folder."
        )
    base = python or find_python()
    _run([str(base), "-m", "venv", str(directory)], "make a virtual environment")
    if not _is_installed_by_uv(interpreter):
        install = [str(interpreter), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
        _run(install, f"install {', '.join(REQUIREMENTS)}")
    check_legacy_python(interpreter)
    # On Windows it is `Lib/site-packages`, elsewhere `lib/python3.8/site-packages`.
    for package in directory.glob("**/site-packages/jax/__init__.py"):
        add_stand_ins(package.parent.parent)
    return interpreter


def _is_installed_by_uv(interpreter: Path) -> bool:
    """Whether uv, which takes seconds where pip takes a minute, is there and does it.

    It has settings of its own, so that only pip may find a company's index.
    """
    beside = shutil.which("uv", path=str(Path(sys.executable).parent))
    uv = beside or shutil.which("uv")
    if uv is None:
        return False
    words = [uv, "pip", "install", "--quiet", "--python", str(interpreter)]
    return _done([*words, *REQUIREMENTS]).returncode == 0


def find_python() -> str:
    """A Python from 3.8 to 3.11. Raises LegacyEnvironmentError if there is none."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in VERSIONS:
        # This process may itself run under a Python that fits.
        found = (
            sys.executable if version == running else shutil.which(f"python{version}")
        )
        if found and _answers(found, version):
            return found
    raise LegacyEnvironmentError(
        "JAX 0.4.13 needs Python 3.8 to 3.11, and none was found. "
        "Install one, and name it with --legacy-python."
    )


def _answers(python: str, version: str) -> bool:
    """Whether an interpreter of this version runs."""
    # pyenv has a launcher called `python3.8` even where no Python 3.8 is installed.
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    return _done([python, "-I", "-c", script]).stdout.strip() == version


def check_legacy_python(python: Path) -> dict[str, str]:
    """The versions that an interpreter has of Python, Flax, JAX and NumPy.

    Raises:
        LegacyEnvironmentError: if it cannot run, or has no `flax.optim`.
    """
    try:
        done = _done([str(python), "-I", "-c", PROBE])
    except OSError as error:
        raise LegacyEnvironmentError(
            f"{python} cannot be run: {error.strerror}."
        ) from error
    if done.returncode:
        reason = last_line(done.stderr)
        raise LegacyEnvironmentError(
            f"{python} has no flax.optim ({reason}). Make an environment that has it: "
            "optim2optax parity --create-legacy-env DIR"
        )
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _done(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def _run(words: list[str], what: str) -> None:
    """Run a program. Raises LegacyEnvironmentError, with `what` it was to do, if it fails."""
    try:
        done = _done(words)
    except OSError as error:
        raise LegacyEnvironmentError(
            f"could not {what}: {words[0]}: {error.strerror}"
        ) from error
    if done.returncode:
        raise LegacyEnvironmentError(f"could not {what}: {last_line(done.stderr)}")


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
