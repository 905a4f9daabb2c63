"""Tables of which some rows are tried in every run, and the others among all tests."""

from collections.abc import Mapping

import pytest
from _pytest.mark import ParameterSet


def thinned(table: Mapping[str, object], *usual: str) -> list[ParameterSet]:
    """The rows of a table by their names; all but the usual ones are thorough."""
    unknown = {*usual} - table.keys()
    assert not unknown, unknown
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            id=name,
            marks=[] if name in usual else pytest.mark.thorough,
        )
        for name, row in table.items()
    ]
