"""Baselines: files with what the old side of scenarios yielded.

Later runs are compared with them, and need no old Flax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.project.replacing import replacing

CASES = "cases"


class BaselineError(ValueError):
    """A file that is no baseline, or has no such scenario; the message says which."""


@dataclass(frozen=True)
class Baseline:
    """What the old side of one scenario yielded, each value by leaf path.

    `replay` says whether it is a replay of recorded gradients.
    """

    values: list[dict[str, NDArray[Any]]]
    replay: bool


def save_baselines(path: Path, baselines: Mapping[str, Baseline]) -> None:
    """Write baselines, by the names of their cases, to an .npz file. Raises OSError."""
    arrays: dict[str, Any] = {CASES: np.asarray(list(baselines))}
    for number, baseline in enumerate(baselines.values()):
        arrays[f"{number}/replay"] = np.asarray(baseline.replay)
        arrays[f"{number}/length"] = np.asarray(len(baseline.values))
        for step, leaves in enumerate(baseline.values):
            for leaf, values in leaves.items():
                arrays[f"{number}/{step}/{leaf}"] = values
    # A file that is there already stays if writing fails.
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def load_baseline(path: Path, case: str) -> Baseline:
    """The baseline of a case.

    Raises:
        BaselineError: if the file is no baseline, or has none of this case.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names = arrays[CASES].tolist()
            found = _read(names.index(case), arrays) if case in names else None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise BaselineError(f"{path} is no file that --save wrote: {error}") from error
    if found is None:
        raise BaselineError(
            f"{path} has no scenario called {case}. Save it anew, with --save."
        )
    return found


def _read(number: int, arrays: Any) -> Baseline:
    """The baseline of the case with a number."""
    length = int(arrays[f"{number}/length"])
    values: list[dict[str, NDArray[Any]]] = [{} for _ in range(length)]
    # The key `2/7/Dense_0/kernel` is a leaf of the eighth value of the third case.
    for key in arrays.files:
        place, _, rest = key.partition("/")
        step, _, leaf = rest.partition("/")
        if place == str(number) and step.isdigit():
            values[int(step)][leaf] = arrays[key]
    return Baseline(values, bool(arrays[f"{number}/replay"]))
