"""What a conversion takes beside Python, JAX and Flax: the memory for one copy of the checkpoint, in either format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flax import serialization

from benchmarks.checkpoint import converted, lay_out
from optim2optax.checkpoints import flax_msgpack
from optim2optax.checkpoints.files import size_of
from optim2optax.checkpoints.state_dict_places import leaves

MOST = {"msgpack": 1.15, "orbax": 1.3}
"""So many times the size of the checkpoint."""


@pytest.mark.thorough
@pytest.mark.parametrize("format_", MOST)
@pytest.mark.parametrize("optimizer", ["adam", "lars"])
def test_no_second_copy(optimizer: str, format_: str, tmp_path: Path) -> None:
    for name, size in (("small", 0), ("large", 300e6)):
        (tmp_path / name).mkdir()
        lay_out(tmp_path / name, optimizer, size, 3, "msgpack")
    least, _ = converted(tmp_path / "small", format_)
    peak, _ = converted(tmp_path / "large", format_)

    assert peak - least <= MOST[format_] * size_of(tmp_path / "large" / "old")


@pytest.mark.parametrize("pieces", [2**30, 48])
def test_arrays_are_where_they_need_not_be_copied(
    pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serialization, "MAX_CHUNK_SIZE", pieces)
    types = ("complex128", "float64", "float32", "float16", "int8")
    tree = {
        f"{'_' * gap}{name}": np.arange(20).astype(name)
        for gap in range(9)
        for name in types
    }
    (tmp_path / "old").write_bytes(serialization.msgpack_serialize(tree))
    found: dict[Any, Any] = dict(leaves(flax_msgpack.read(tmp_path / "old")))

    assert len(found) == len(tree)
    for (name,), leaf in found.items():
        assert leaf.flags.aligned
        np.testing.assert_array_equal(leaf, tree[name])
