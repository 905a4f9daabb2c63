"""Find the published wheel of Flax 0.5.3, the last with `flax.optim`, and verify it."""

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
    f"Run `pip download --no-deps {REQUIREMENT}` where that works, and set the environment "
    f"variable {WHEEL_VARIABLE} to the path of {WHEEL_NAME}, which it brings."
)


class LegacyWheelError(RuntimeError):
    """The wheel with the old `flax.optim` is not found or fetched, or is not the published one."""


def find_wheel(wheel: Path | None = None) -> Path:
    """Find the wheel of Flax 0.5.3, or fetch it through pip.

    Args:
        wheel: its path. None looks at the environment variable OPTIM2OPTAX_LEGACY_WHEEL, then into
            the user's cache folder, and downloads it there if it is missing.

    Returns:
        The path of a wheel whose content is the published one.

    Raises:
        LegacyWheelError: if it is not found or fetched, or its content is not the published one.
    """
    if wheel is None:
        given = os.environ.get(WHEEL_VARIABLE)
        wheel = Path(given) if given else None
    if wheel is None:
        import platformdirs

        wheel = platformdirs.user_cache_path("optim2optax") / WHEEL_NAME
        if not wheel.exists():
            _download(wheel)
    _verify(wheel)
    return wheel.resolve()


def _verify(wheel: Path) -> None:
    # also if the user gives it: what the wheel has is run
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    except OSError as error:
        raise LegacyWheelError(
            f"cannot read the wheel of {REQUIREMENT} at {wheel}: {error.strerror}. {_REMEDY}"
        ) from error
    if digest != WHEEL_SHA256:
        raise LegacyWheelError(
            f"{wheel} is not the published wheel of {REQUIREMENT}: "
            f"its sha256 is {digest}, not {WHEEL_SHA256}. Discard it. {_REMEDY}"
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
            lines = done.stderr.strip().splitlines()
            reason = lines[-1] if lines else "it said nothing"
            raise LegacyWheelError(
                f"pip could not fetch {REQUIREMENT}, which holds the old flax.optim ({reason}). "
                f"{_REMEDY}"
            )
        _verify(fetched)
        fetched.replace(wheel)
