"""What all tests share: eight devices to run on, and the wheel of the old Flax."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# JAX reads these once, when it is first imported. Set the platform yourself to run the tests on another device.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()


@pytest.fixture(scope="session")
def legacy_wheel() -> Path:
    """The wheel of Flax 0.5.3, fetched if need be. Without it nothing can be compared, so its lack is an error."""
    from optim2optax.parity.wheel import find_wheel

    return find_wheel()
