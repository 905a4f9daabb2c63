"""Cases as plain text, in which they travel between processes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from optim2optax.parity.judging.comparison import (
    Comparison,
    Difference,
    LeafError,
    Verdict,
)
from optim2optax.parity.reports.result import Case


def pack(case: Case) -> str:
    """A case as JSON."""
    return json.dumps(asdict(case))


def unpack(text: str) -> Case:
    """The case that `pack` made text of. JSON has lists where the records have tuples."""
    values = json.loads(text)
    comparison = values.pop("comparison")
    if comparison is not None:
        comparison = _comparison(comparison)
    return Case(**values, comparison=comparison)


def _comparison(values: dict[str, Any]) -> Comparison:
    verdict = Verdict(values.pop("verdict"))
    leaves: list[LeafError] = []
    for leaf in values.pop("leaves"):
        shape = tuple(leaf.pop("shape"))
        leaves.append(LeafError(shape=shape, **leaf))
    difference = values.pop("first_difference")
    if difference is not None:
        index = tuple(difference.pop("index"))
        difference = Difference(index=index, **difference)
    for name in ("error_by_step", "drift_by_step", "remarks"):
        values[name] = tuple(values[name])
    return Comparison(
        verdict=verdict,
        leaves=tuple(leaves),
        first_difference=difference,
        **values,
    )
