"""The devices on which JAX computes."""

from __future__ import annotations

import os

import click

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
HOST_DEVICES = "--xla_force_host_platform_device_count"


class PlatformError(click.UsageError):
    """JAX finds no device of the chosen platform; the message says why, and what to do."""


def prepare(jax_platform: str | None, devices: int | None) -> None:
    """Set where JAX computes, and let operations be deterministic.

    That applies to this process and to those that it starts. Without a platform, the choice is left
    to JAX and to JAX_PLATFORMS. `devices` is how many of them a CPU shall feign.

    Raises:
        PlatformError: if there is no such platform here.
    """
    flags = _given_flags()
    wanted = [DETERMINISTIC]
    if devices is not None:
        wanted.append(f"{HOST_DEVICES}={devices}")
    for flag in wanted:
        name, _, _ = flag.partition("=")
        # A flag that the user has set stays.
        if not any(given.startswith(name) for given in flags):
            flags.append(flag)
    os.environ["XLA_FLAGS"] = " ".join(flags)
    # A command on both sides, and each of several jobs, shares the device with this process.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    asked = jax_platform or os.environ.get("JAX_PLATFORMS", "")
    if asked:
        _choose(asked)


def _choose(asked: str) -> None:
    """Let JAX compute on a platform. Raises PlatformError."""
    import jax

    # JAX calls a GPU cuda in this variable.
    first, *others = ("cuda" if asked == "gpu" else asked).split(",")
    # The host functions that steps call (`jax.debug.callback`) take their arguments on the CPU.
    names = ",".join(dict.fromkeys([first, *others, "cpu"]))
    os.environ["JAX_PLATFORMS"] = names
    jax.config.update("jax_platforms", names)  # type: ignore[no-untyped-call]
    try:
        jax.devices(first)
    # JAX asserts that it has a plugin for the platform.
    except (RuntimeError, AssertionError) as error:
        raise PlatformError(_why_not(first, error)) from error


def _why_not(asked: str, error: Exception) -> str:
    """The message on a platform that JAX does not find."""
    first, _, _ = str(error).partition("\n")
    reason = first.rstrip(".") or "it has no plugin for it"
    platform = "gpu" if asked == "cuda" else asked
    extra = {"gpu": "jax[cuda12]", "tpu": "jax[tpu]"}.get(platform, "jax")
    return (
        f"JAX finds no {platform} here: {reason}. Install JAX for it "
        f"(`pip install '{extra}'`), or choose another platform with --platform."
    )


def flags_for_old_xla() -> str:
    """The flags in XLA_FLAGS that an old XLA knows; any other one would end it."""
    known = [flag for flag in _given_flags() if flag.startswith(HOST_DEVICES)]
    return " ".join(known)


def _given_flags() -> list[str]:
    return os.environ.get("XLA_FLAGS", "").split()
