"""The old code and the new, run side by side, and judged."""

from importlib.util import find_spec

from optim2optax.parity.observing import observe

__all__ = ["observe", "what_is_missing"]

NEEDED = ("jax", "flax", "optax", "pytest", "jinja2", "matplotlib")


def what_is_missing() -> str:
    """Which packages parity needs and are not here, and how to get them, in one sentence; nothing if all are."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    return (
        f"parity needs {', '.join(missing)}: pip install 'optim2optax[parity]'" if missing else ""
    )
