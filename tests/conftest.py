"""What all tests share: eight devices to run on, and the wheel of the old Flax."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

# JAX reads these once, when it is first imported. Set the platform yourself to run the tests on another device.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling takes far longer here than what is compiled; without these, all tests together take a quarter longer.
FLAGS = {
    "xla_force_host_platform_device_count": "8",
    "xla_backend_optimization_level": "0",
    "xla_cpu_use_fusion_emitters": "false",
}
given = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = " ".join(
    [given, *(f"--{name}={value}" for name, value in FLAGS.items() if name not in given)]
)


@pytest.fixture(scope="session")
def legacy_wheel() -> Path:
    """The wheel of Flax 0.5.3, fetched if need be. Without it nothing can be compared, so its lack is an error."""
    from optim2optax.legacy_wheel import find_wheel

    return find_wheel()


VARIABLE = "OPTIM2OPTAX_LEGACY_ENV"
"""Names a folder in which to keep the environment from one run of the tests to the next."""


@pytest.fixture(scope="session")
def legacy_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the old Flax and JAX, made once, even if several processes ask for it."""
    from optim2optax.parity.running.interpreter import (
        LegacyEnvironmentError,
        create_legacy_environment,
        find_python,
    )

    try:
        find_python()
    except LegacyEnvironmentError as error:
        pytest.skip(str(error))
    shared = (
        tmp_path_factory.getbasetemp().parent
        if "PYTEST_XDIST_WORKER" in os.environ
        else tmp_path_factory.getbasetemp()
    )
    directory = Path(os.environ.get(VARIABLE) or shared / "legacy-env")
    lock, done = shared / "legacy-env.lock", shared / "legacy-env.done"
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        while not done.exists():
            time.sleep(0.5)
    else:
        try:
            create_legacy_environment(directory)
        finally:
            done.touch()
    return create_legacy_environment(directory)
