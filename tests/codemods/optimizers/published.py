"""The optimizers that Flax published, without those that people had in copies of their own."""

from collections.abc import Mapping

from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from codemods.vendoring.packages import OPTIM


def published() -> Mapping[str, LegacyOptimizer]:
    """The optimizers of which Flax 0.5.3 has the module, so that they can be run."""
    known = optimizers().items()
    return {
        name: optimizer
        for name, optimizer in known
        if f"{optimizer.module}.py" in OPTIM.modules
    }
