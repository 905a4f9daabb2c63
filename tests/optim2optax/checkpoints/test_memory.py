"""What a conversion takes beside Python, JAX and Flax: memory for the checkpoint, the fresh state and one more copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.checkpoint import converted, lay_out
from optim2optax.checkpoints.files import size_of

MOST = {"msgpack": 3.2, "orbax": 3.4}
"""So many times the size of the checkpoint."""


@pytest.mark.thorough
@pytest.mark.parametrize("format_", MOST)
@pytest.mark.parametrize("optimizer", ["adam", "lars"])
def test_few_copies(optimizer: str, format_: str, tmp_path: Path) -> None:
    for name, size in (("small", 0), ("large", 300e6)):
        (tmp_path / name).mkdir()
        lay_out(tmp_path / name, optimizer, size, 3, "msgpack")
    least, _ = converted(tmp_path / "small", format_)
    peak, _ = converted(tmp_path / "large", format_)

    assert peak - least <= MOST[format_] * size_of(tmp_path / "large" / "old")
