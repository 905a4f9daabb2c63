"""Find the published wheel of Flax 0.5.3, the last that holds `flax.optim`, and make sure that it is the published one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENT = "flax==0.5.3"
WHEEL_NAME = "flax-0.5.3-py3-none-any.whl"
WHEEL_SHA256 = "911dc4d6463ccba9808d303f44dfb4a0a6de277be8f3cbfda1471ed1a3e19374"
WHEEL_VARIABLE = "OPTIM2OPTAX_LEGACY_WHEEL"

_REMEDY = (
    f"Run `pip download --no-deps {REQUIREMENT}` where that works, and set the environment variable {WHEEL_VARIABLE} to the "
    f"path of {WHEEL_NAME}, which it brings."
)


class LegacyWheelError(RuntimeError):
    """The wheel that holds the old `flax.optim` cannot be had, or is not the published one."""


def find_wheel(wheel: Path | None = None) -> Path:
    """Find the wheel of Flax 0.5.3, and fetch it through pip if it is nowhere.

    Args:
        wheel: where it is. None looks at the environment variable OPTIM2OPTAX_LEGACY_WHEEL, then into the user's cache
            folder, and downloads it there if need be.

    Returns:
        The path of a wheel whose content is the published one.

    Raises:
        LegacyWheelError: if it cannot be had, or its content is not the published one.
    """
    if wheel is None and (given := os.environ.get(WHEEL_VARIABLE)):
        wheel = Path(given)
    if wheel is None:
        import platformdirs

        wheel = platformdirs.user_cache_path("optim2optax") / WHEEL_NAME
        if not wheel.exists():
            _download(wheel)
    _verify(wheel)
    return wheel.resolve()


def _verify(wheel: Path) -> None:
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    except OSError as error:
        raise LegacyWheelError(
            f"cannot read the wheel of {REQUIREMENT} at {wheel}: {error.strerror}. {_REMEDY}"
        ) from error
    if digest != WHEEL_SHA256:
        raise LegacyWheelError(
            f"{wheel} is not the published wheel of {REQUIREMENT}: its sha256 is {digest}, not {WHEEL_SHA256}. "
            f"Discard it. {_REMEDY}"
        )


def _download(wheel: Path) -> None:
    try:
        wheel.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LegacyWheelError(
            f"cannot make {wheel.parent}: {error.strerror}. {_REMEDY}"
        ) from error
    # Several processes may fetch at once: each into a folder of its own, and the last rename wins.
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--dest",
            folder,
            REQUIREMENT,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = Path(folder) / WHEEL_NAME
        if done.returncode or not fetched.exists():
            reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise LegacyWheelError(
                f"pip could not fetch {REQUIREMENT}, which holds the old flax.optim ({reason}). {_REMEDY}"
            )
        _verify(fetched)
        fetched.replace(wheel)
