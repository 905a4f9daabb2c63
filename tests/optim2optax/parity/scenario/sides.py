"""A migration in a folder, with its scenario."""

from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from optim2optax.parity.judging.comparison import Comparison, with_open_loop
from optim2optax.parity.scenario.scenario import run_both_loops


class Sides(NamedTuple):
    """The files in the order in which they are asked for: `run_scenario(*sides)`."""

    scenario: Path
    before: Path
    after: Path


def written(folder: Path, scenario: str, before: str, after: str) -> Sides:
    sides = Sides(*(folder / f"{name}.py" for name in Sides._fields))
    for path, text in zip(sides, (scenario, before, after), strict=True):
        path.write_text(dedent(text))
    return sides


def run_scenario(scenario: Path, before: Path, after: Path) -> Comparison:
    """The closed loop, or the open one if that alone shows a difference."""
    return with_open_loop(*run_both_loops(scenario, before, after))
