"""Every fixture is rewritten as it is by the analysis that takes in all facts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods import FileResult, Options, Source, migrate

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
CASES = sorted(path.parent for path in FIXTURES.glob("*/before.py"))
ON_DEMAND = Options(on_demand=True)
OTHERWISE = {
    "moment_surgery": "the optimizers of optax, for which the other analysis has the old rules",
}
"""Those that become something else, and what."""


def rewritten(case: Path, options: Options | None = None) -> FileResult:
    source = Source("before.py", (case / "before.py").read_bytes())
    [result] = migrate([source], options)
    assert result.error is None
    assert {site.status for site in result.sites} == {"rewritten"}
    return result


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name not in OTHERWISE],
    ids=lambda case: case.name,
)
def test_is_rewritten_alike(case: Path) -> None:
    assert rewritten(case, ON_DEMAND).after == rewritten(case).after


@pytest.mark.parametrize("name", OTHERWISE)
def test_is_rewritten_otherwise(name: str) -> None:
    after = rewritten(FIXTURES / name, ON_DEMAND).after

    assert after != rewritten(FIXTURES / name).after
    assert b"flax.optim" not in after
    ast.parse(after)
