"""The faults that the benchmark of parity plants: each has its place in the fixture as it is now."""

from pathlib import Path

import pytest

from benchmarks.faults import changed, trials

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize("level", ["update", "scenario"])
def test_each_fault_has_its_place(level: str) -> None:
    for trial in trials(level, as_they_are=False):
        text = (FIXTURES / trial.program / "after.py").read_text(encoding="utf-8")
        assert changed(text, trial) != text, trial.name
