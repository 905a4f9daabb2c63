"""Programs of several files, run as they were and as they are."""

import importlib
import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.generated.properties import parameters

TOLERANCE = 1e-9


def outcome(files: Mapping[str, str], folder: Path, wheel: Path | None = None) -> Any:
    """What `run(params, gradients)` of `main.py` gives, with the old Flax of a wheel or with today's."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    roots = [str(folder), str(folder / "src")]
    sys.path[:0] = roots
    before = set(sys.modules)
    importlib.invalidate_caches()
    try:
        with (
            warnings.catch_warnings(),
            precise(),
            nullcontext() if wheel is None else legacy_flax(),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            found = importlib.import_module("main").run(parameters(), gradients())
            return jax.tree_util.tree_map(np.asarray, found)
    finally:
        for root in roots:
            sys.path.remove(root)
        for name in set(sys.modules) - before:
            if _is_within(sys.modules[name], folder):
                del sys.modules[name]


def _is_within(module: Any, folder: Path) -> bool:
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    return any(str(place).startswith(str(folder)) for place in places)


def gradients() -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    return [
        {"w": random.normal(size=(3, 2)), "b": random.normal(size=2)} for _ in range(4)
    ]


def assert_alike(before: Any, after: Any) -> None:
    """Two outcomes are trees of the same numbers, but for rounding, and something has moved."""
    old, new = jax.tree_util.tree_leaves(before), jax.tree_util.tree_leaves(after)
    assert len(old) == len(new)
    for left, right in zip(old, new, strict=True):
        np.testing.assert_allclose(left, right, rtol=TOLERANCE, atol=TOLERANCE)
    start = jax.tree_util.tree_leaves(parameters())
    assert any(
        not np.array_equal(leaf, first) for leaf, first in zip(old, start, strict=True)
    )
