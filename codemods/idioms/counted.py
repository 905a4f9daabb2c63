"""What a program asks of optimizers as a whole, and of the steps that they count."""

from __future__ import annotations

from codemods.analysis.handling import Handling
from codemods.analysis.stepping import Stepping
from codemods.analysis.steps import Steps
from codemods.idioms.base import Results
from codemods.idioms.overrides import Overrides


class Counted(Steps):
    """The steps that optimizers count, by the learning rates that steps still set."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(Handling(stepping, results[Overrides].is_fixed))
