"""A program whose numbers depend on what values are when it runs is migrated whole and equal, or refused or told with a word.

`python -m benchmarks.values` tries them by the thousand, and counts.
"""

import contextlib
from random import Random

import pytest

from tests.generated.values import FAMILIES, values
from tests.generated.verdicts import KEPT, InvalidProgramError, verdict

MANY = 4


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("family", FAMILIES)
def test_programs_of_each_family(family: str) -> None:
    for number in range(MANY):
        program = values(Random(number), family)
        with contextlib.suppress(InvalidProgramError):
            found = verdict(program.files)
            assert found.kind in KEPT, f"{found.why} ({', '.join(program.carriers)})"
