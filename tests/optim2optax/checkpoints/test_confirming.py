"""What is carried over wrongly is found from the other side, whatever went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optim2optax.checkpoints import CheckpointError, carrying, correspondence, loading
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from tests.optim2optax.checkpoints.test_loading import fresh, stored

pytestmark = pytest.mark.usefixtures("legacy_wheel")


def exchanged(_: str) -> Mapping[str, str]:
    return {"mu": "grad_sq_ema", "nu": "grad_ema"}


def changed(value: Any, *_: Any) -> Any:
    """A value of which one element is lost."""
    if not np.shape(value):
        return value
    lost = np.array(value)
    lost.flat[0] = 0.5
    return lost


def put_in_place(*arguments: Any) -> dict[str, Any]:
    """The right numbers at the right places, of which a later one overwrites an earlier one."""
    found = carrying.carried_parts(*arguments)
    np.asarray(found["opt_state"]["0"]["nu"]["bias"])[:] = found["params"]["bias"]
    return found


def counting_from_zero(*arguments: Any) -> dict[str, Any]:
    found = carrying.carried_parts(*arguments)
    found["opt_state"]["0"]["count"] = np.int32(0)
    return found


DEFECTS: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "moments that are exchanged": (
        correspondence,
        "old_names",
        exchanged,
        "state/param_states/bias/grad_",
    ),
    "an element that is lost": (carrying, "fitted", changed, "target/bias"),
    "a buffer that is written twice": (
        loading,
        "carried_parts",
        put_in_place,
        "state/param_states/bias/grad_sq_ema",
    ),
    "a count that begins anew": (
        loading,
        "carried_parts",
        counting_from_zero,
        "state/step",
    ),
}


@pytest.mark.parametrize(
    ("module", "name", "defect", "place"), DEFECTS.values(), ids=DEFECTS
)
def test_a_defect_is_found(
    module: Any,
    name: str,
    defect: Any,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = stored(tmp_path / "checkpoint_3", lambda optimizer: optimizer)
    monkeypatch.setattr(module, name, defect)
    with pytest.raises(
        CheckpointError, match=f"`{place}.*` is not found again in the new state"
    ):
        load_legacy_checkpoint(path, fresh())
