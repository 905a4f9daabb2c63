"""The inputs of steps, written whole, so that another transformation can take the same steps.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from optim2optax.parity.recording.stream import INPUTS, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from optim2optax.parity.recording.sketch import Part

BUDGET = 2**28
"""The bytes of inputs in each process; if they do not suffice, the first steps are written."""


class InputsWriter:
    """Writes the inputs of each step once, as long as the budget lasts."""

    def __init__(self, folder: Path) -> None:
        self._writer = Writer(folder, INPUTS)
        self._written: set[bytes] = set()
        self._left = BUDGET

    def write_step(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, Mapping[Part, NDArray[Any]]],
    ) -> None:
        """Write the inputs of a step, unless another device has, or the budget is used up."""
        identity = repr((facts["step"], facts["kind"]))
        content = hashlib.blake2b(identity.encode())
        for group in ("given", "gradients"):
            for values in arrays[group].values():
                content.update(values.tobytes())
                self._left -= values.nbytes
        digest = content.digest()
        # Each device of a `pmap` calls back with the same averaged gradients.
        if digest not in self._written and self._left > 0:
            self._written.add(digest)
            self._writer.write(facts, arrays)

    def write(self, facts: Mapping[str, Any]) -> None:
        """Write facts on all steps of an optimizer, or of the process."""
        self._writer.write(facts)
