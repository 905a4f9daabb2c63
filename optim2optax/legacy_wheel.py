"""Find a published wheel of an old Flax, and verify it.

Flax 0.5.3 is the last with `flax.optim`, and 0.3.6 the last with `flax.nn`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from optim2optax.wording import last_line

WHEEL_VARIABLE = "OPTIM2OPTAX_LEGACY_WHEEL"


@dataclass(frozen=True)
class Release:
    """A published wheel: what it holds, and the environment variable that may have its path."""

    requirement: str
    wheel: str
    sha256: str
    variable: str
    holds: str

    @property
    def remedy(self) -> str:
        """What to do where it cannot be fetched."""
        return (
            f"Run `pip download --no-deps {self.requirement}` where that works, and set the "
            f"environment variable {self.variable} to the path of {self.wheel}, which it brings."
        )


OPTIM_RELEASE = Release(
    "flax==0.5.3",
    "flax-0.5.3-py3-none-any.whl",
    "911dc4d6463ccba9808d303f44dfb4a0a6de277be8f3cbfda1471ed1a3e19374",
    WHEEL_VARIABLE,
    "flax.optim",
)
NN_RELEASE = Release(
    "flax==0.3.6",
    "flax-0.3.6-py3-none-any.whl",
    "8c1c3e181ed7f30aabe761b81bbfad1499173a5480ef5073082183b7469a9f0e",
    "OPTIM2OPTAX_LEGACY_NN_WHEEL",
    "flax.nn",
)


class LegacyWheelError(RuntimeError):
    """A wheel of an old Flax is not found or fetched, or is not the published one."""


def find_wheel(release: Release = OPTIM_RELEASE) -> Path:
    """Find the wheel of an old Flax, or fetch it through pip.

    It is at the path in the environment variable of the release, else in the user's cache folder,
    to which it is downloaded if it is missing.

    Returns:
        The path of a wheel whose content is the published one.

    Raises:
        LegacyWheelError: if it is not found or fetched, or its content is not the published one.
    """
    if given := os.environ.get(release.variable):
        wheel = Path(given)
    else:
        import platformdirs

        wheel = platformdirs.user_cache_path("optim2optax") / release.wheel
        if not wheel.exists():
            _download(wheel, release)
    _verify(wheel, release)
    return wheel.resolve()


def _verify(wheel: Path, release: Release) -> None:
    # also if the user gives it: what the wheel has is run
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    except OSError as error:
        raise LegacyWheelError(
            f"cannot read the wheel of {release.requirement} at {wheel}: {error.strerror}. "
            f"{release.remedy}"
        ) from error
    if digest != release.sha256:
        raise LegacyWheelError(
            f"{wheel} is not the published wheel of {release.requirement}: "
            f"its sha256 is {digest}, not {release.sha256}. Discard it. {release.remedy}"
        )


def _download(wheel: Path, release: Release) -> None:
    try:
        wheel.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LegacyWheelError(
            f"cannot make {wheel.parent}: {error.strerror}. {release.remedy}"
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
            release.requirement,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = Path(folder) / release.wheel
        if done.returncode or not fetched.exists():
            raise LegacyWheelError(
                f"pip could not fetch {release.requirement}, which holds the old {release.holds} "
                f"({last_line(done.stderr)}). {release.remedy}"
            )
        _verify(fetched, release)
        fetched.replace(wheel)
