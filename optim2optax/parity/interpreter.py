"""The old side under another interpreter, for code that needs more than `flax.optim`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from optim2optax.parity.environment import HOST_DEVICES
from optim2optax.parity.judge import PyTree
from optim2optax.parity.legacy_stand_ins import add_stand_ins
from optim2optax.parity.processes import run_whole

REQUIREMENTS = ("flax==0.5.3", "jax==0.4.13", "jaxlib==0.4.13", "numpy<2", "scipy<1.13")
VERSIONS = ("3.11", "3.10", "3.9", "3.8")
WORKER = Path(__file__).with_name("legacy_worker.py")
PROBE = (
    "import json, sys, warnings; warnings.simplefilter('ignore'); "
    "import flax, jax, numpy; from flax import optim; "
    "print(json.dumps({'python': sys.version.split()[0], 'flax': flax.__version__, "
    "'jax': jax.__version__, 'numpy': numpy.__version__}))"
)
LAST_LINES = 15


class LegacyEnvironmentError(RuntimeError):
    """There is no interpreter with the old Flax; the message says why, and what to do."""


class LegacyRunError(RuntimeError):
    """The old side failed under the other interpreter; the message ends with its traceback."""


def create_legacy_environment(directory: Path, python: str | None = None) -> Path:
    """Make a virtual environment with Flax 0.5.3 and JAX 0.4.13.

    In it, `flax.training.checkpoints` works.

    Args:
        directory: its folder; it must not exist, unless it is such an environment already.
        python: a Python from 3.8 to 3.11; None looks for one.

    Returns:
        The path of its interpreter.

    Raises:
        LegacyEnvironmentError: if no fitting Python is found, the folder is something else, or
            pip fails.
    """
    interpreter = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if interpreter.exists():
        check_legacy_python(interpreter)
        return interpreter
    if directory.exists() and any(directory.iterdir()):
        raise LegacyEnvironmentError(
            f"{directory} is not empty, and no environment for the old side. Name another folder."
        )
    base = python or find_python()
    _run([base, "-m", "venv", str(directory)], "make a virtual environment")
    install = [str(interpreter), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
    _run(install, f"install {', '.join(REQUIREMENTS)}")
    check_legacy_python(interpreter)
    # On Windows it is `Lib/site-packages`, elsewhere `lib/python3.8/site-packages`.
    for package in directory.glob("**/site-packages/jax/__init__.py"):
        add_stand_ins(package.parent.parent)
    return interpreter


def find_python() -> str:
    """A Python from 3.8 to 3.11. Raises LegacyEnvironmentError if there is none."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in VERSIONS:
        # This process may itself run under a Python that fits.
        found = sys.executable if version == running else shutil.which(f"python{version}")
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
    done = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def check_legacy_python(python: Path) -> dict[str, str]:
    """The versions that an interpreter has of Python, Flax, JAX and NumPy.

    Raises:
        LegacyEnvironmentError: if it cannot run, or has no `flax.optim`.
    """
    words = [str(python), "-I", "-c", PROBE]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LegacyEnvironmentError(f"{python} cannot be run: {error.strerror}.") from error
    if done.returncode:
        reason = _last_line(done.stderr)
        raise LegacyEnvironmentError(
            f"{python} has no flax.optim ({reason}). Make an environment that has it: "
            "optim2optax parity --create-legacy-env DIR"
        )
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def drive_elsewhere(
    python: Path, scenario: Path, before: Path, steps: int | None
) -> tuple[list[PyTree], bool]:
    """Run the old side of a scenario under another interpreter.

    Returns:
        What it yielded, each value as a dict of arrays by leaf path, and whether it is a replay
        of recorded gradients.

    Raises:
        LegacyRunError: if it failed there.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "values.npz")
        words = list(map(str, (python, WORKER, scenario, before, out, steps or 0, os.getpid())))
        environment = {**os.environ, "XLA_FLAGS": flags_for_old_xla()}
        code, errors = run_whole(words, environment=environment)
        if code:
            lines = "\n".join(errors.strip().splitlines()[-LAST_LINES:])
            raise LegacyRunError(f"the old side failed under {python}:\n{lines}")
        values: dict[int, PyTree] = {}
        with np.load(out) as arrays:
            for key in arrays.files:
                # `7/Dense_0/kernel` is a leaf of the eighth value.
                number, _, leaf = key.partition("/")
                if number != "replay":
                    values.setdefault(int(number), {})[leaf] = arrays[key]
            return [values[number] for number in sorted(values)], bool(arrays["replay"])


def flags_for_old_xla() -> str:
    """The flags in XLA_FLAGS that an old XLA knows; any other one would end it."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    return " ".join(flag for flag in flags if flag.startswith(HOST_DEVICES))


def _last_line(errors: str) -> str:
    """The last line of what a program wrote to its stderr, such as the message of an exception."""
    return (errors.strip().splitlines() or ["it said nothing"])[-1]


def _run(words: list[str], what: str) -> None:
    """Run a program. Raises LegacyEnvironmentError, with `what` it was to do, if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LegacyEnvironmentError(f"could not {what}: {words[0]}: {error.strerror}") from error
    if done.returncode:
        raise LegacyEnvironmentError(f"could not {what}: {_last_line(done.stderr)}")
