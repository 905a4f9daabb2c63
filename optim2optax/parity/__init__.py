"""The old code and the new, run side by side, and judged."""

from importlib.util import find_spec

from optim2optax.parity.recording.observing import observe
from optim2optax.wording import command_to_install

__all__ = ["observe", "what_is_missing"]

NEEDED = ("jax", "flax", "optax")


def what_is_missing() -> str:
    """A sentence on the packages that parity needs and that are missing; empty if none is."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return ""
    return f"parity needs {', '.join(missing)}: {command_to_install('parity')}"
