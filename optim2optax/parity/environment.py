"""Where a parity run takes place."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from optim2optax.parity.result import Environment

PACKAGES = ("optim2optax", "jax", "jaxlib", "flax", "optax", "numpy")
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
HOST_DEVICES = "--xla_force_host_platform_device_count"


def prepare(jax_platform: str | None, devices: int | None) -> None:
    """Set what JAX reads when it is first imported: the platform, the number of devices on CPU, deterministic operations.

    Args:
        jax_platform: cpu, gpu or tpu; None leaves the choice to JAX.
        devices: how many devices a CPU shall feign; None leaves it at one.
    """
    if jax_platform is not None:
        os.environ["JAX_PLATFORMS"] = {"gpu": "cuda"}.get(jax_platform, jax_platform)
    flags = os.environ.get("XLA_FLAGS", "").split()
    for flag in (DETERMINISTIC, f"{HOST_DEVICES}={devices}" if devices is not None else ""):
        name = flag.partition("=")[0]
        if flag and not any(given.startswith(name) for given in flags):
            flags.append(flag)
    os.environ["XLA_FLAGS"] = " ".join(flags)


def environment(seed: int) -> Environment:
    """The environment of this process, as JAX found it."""
    import jax

    device = jax.devices()[0]
    return Environment(
        platform=device.platform,
        device_kind=device.device_kind,
        device_count=jax.device_count(),
        versions={"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        seed=seed,
        matmul_precision="highest",
        xla_flags=os.environ.get("XLA_FLAGS", ""),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
