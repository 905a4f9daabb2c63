"""The environment of a parity run, as reports have it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from optim2optax.parity.reports.result import Environment

PACKAGES = ("optim2optax", "jax", "jaxlib", "flax", "optax", "numpy")


def environment(seed: int) -> Environment:
    """The environment of this process, as JAX found it."""
    import jax

    device = jax.devices()[0]
    return Environment(
        platform=device.platform,
        device_kind=device.device_kind,
        device_count=jax.device_count(),
        versions={
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
        seed=seed,
        matmul_precision="highest",
        xla_flags=os.environ.get("XLA_FLAGS", ""),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
