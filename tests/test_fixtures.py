"""Every fixture: rewritten as expected, and training like before. Run as a script, it writes the expected results anew."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from codemods import FileResult, Options, Source, migrate

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CASES = sorted(path.parent for path in FIXTURES.glob("*/before.py"))
NOTEBOOKS = sorted(path.parent for path in FIXTURES.glob("*/before.ipynb"))
CHAIN_CASES = sorted(path.parent for path in FIXTURES.glob("*/after_chain.py"))
FUNCTIONAL_CASES = sorted(
    path.parent for path in FIXTURES.glob("*/after_functional.py")
)
IN_CHAINS = (
    "alias_and_chain",
    "clip_in_chain",
    "optimizer_zoo",
    "traversal_frozen_rest",
    "weight_norm",
)
"""With these, every optimizer, and what is done to one, is trained in the form of chains, too."""
MORE_IN_CHAINS = (
    *(
        "bare_definition",
        "class_by_name",
        "class_registry",
        "custom_rules",
        "decay_mask",
    ),
    *("group_rates", "handwritten_schedules", "large_batch", "learning_rate_schedule"),
    *("schedule_made_late", "trainer_class", "weight_norm_if_asked"),
)
LONG = (
    "federated_rounds",
    "half_precision_pmap",
    "learned_rate",
    "radiance_field",
    "replica_moments",
    "soft_actor_critic",
    "state_around_optimizer",
)
"""What takes a tenth of the time of all; `make parity` proves these, too."""
TRAINED = [
    *(
        pytest.param(
            case,
            "alias",
            id=f"alias-{case.name}",
            marks=[pytest.mark.thorough] if case.name in LONG else [],
        )
        for case in CASES
    ),
    *(pytest.param(FIXTURES / name, "chain", id=f"chain-{name}") for name in IN_CHAINS),
    *(
        pytest.param(
            FIXTURES / name, "chain", id=f"chain-{name}", marks=pytest.mark.thorough
        )
        for name in MORE_IN_CHAINS
    ),
]
FUNCTIONAL = Options(style="functional")


@cache
def rewritten(path: Path, options: Options | None = None) -> FileResult:
    [result] = migrate([Source(path.name, path.read_bytes())], options)
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rewrites_as_expected(case: Path) -> None:
    result = rewritten(case / "before.py")

    assert result.error is None
    assert [site for site in result.sites if site.status != "rewritten"] == []
    assert result.after.decode() == (case / "after.py").read_text()
    assert b"flax.optim" not in result.after


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_rewrites_as_expected_in_chain_form(case: Path) -> None:
    result = rewritten(case / "before.py", Options(form="chain"))

    assert result.error is None
    assert result.after.decode() == (case / "after_chain.py").read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rewrites_as_expected_in_functional_style(case: Path) -> None:
    """What cannot fall into parts stays a train state, as in the other style."""
    result = rewritten(case / "before.py", FUNCTIONAL)
    expected = case / "after_functional.py"

    assert [site for site in result.sites if site.status != "rewritten"] == []
    assert (
        result.after.decode()
        == (expected if expected.exists() else case / "after.py").read_text()
    )
    assert not migrate([Source("after.py", result.after)], FUNCTIONAL)[0].changed


@pytest.mark.parametrize("case", FUNCTIONAL_CASES, ids=lambda case: case.name)
def test_trains_like_before_in_functional_style(case: Path, legacy_wheel: Path) -> None:
    from optim2optax.parity.judging.comparison import Verdict
    from optim2optax.parity.scenario.scenario import run_scenario

    comparison = run_scenario(
        case / "scenario.py", case / "before.py", case / "after_functional.py"
    )

    assert comparison.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT), comparison


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_second_run_changes_nothing(case: Path) -> None:
    result = rewritten(case / "after.py")

    assert not result.changed
    assert result.sites == ()


@pytest.mark.parametrize(("case", "form"), TRAINED)
def test_trains_like_before(
    case: Path, form: str, tmp_path: Path, legacy_wheel: Path
) -> None:
    from optim2optax.parity.judging.comparison import Verdict
    from optim2optax.parity.scenario.scenario import run_scenario

    after = tmp_path / "after.py"
    options = None if form == "alias" else Options(form="chain")
    after.write_bytes(rewritten(case / "before.py", options).after)
    comparison = run_scenario(case / "scenario.py", case / "before.py", after)

    assert comparison.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT), comparison


RENAMED = (
    "mnist_momentum",
    "gan",
    "pmap_replicate",
    "schedule_made_late",
    "clip_in_chain",
    "scan_over_steps",
)


@pytest.mark.parametrize("name", RENAMED)
def test_trains_like_before_under_new_names(
    name: str, tmp_path: Path, legacy_wheel: Path
) -> None:
    from optim2optax.parity.judging.comparison import Verdict
    from optim2optax.parity.scenario.scenario import run_scenario

    case, after = FIXTURES / name, tmp_path / "after.py"
    after.write_bytes(rewritten(case / "before.py", Options(rename=True)).after)
    assert after.read_bytes() != (case / "after.py").read_bytes()
    comparison = run_scenario(case / "scenario.py", case / "before.py", after)

    assert comparison.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT), comparison


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_notebooks(case: Path, legacy_wheel: Path) -> None:
    from optim2optax.parity.cases import scenario_case
    from optim2optax.parity.reports.result import Outcome

    result = rewritten(case / "before.ipynb")
    assert result.after.decode() == (case / "after.ipynb").read_text()
    assert {site.status for site in result.sites} == {"rewritten"}
    assert not rewritten(case / "after.ipynb").changed

    outcome = scenario_case(
        case.name, case / "scenario.py", case / "before.ipynb", case / "after.ipynb"
    ).outcome
    assert outcome in (Outcome.IDENTICAL, Outcome.EQUIVALENT)


if __name__ == "__main__":
    for folder in NOTEBOOKS:
        (folder / "after.ipynb").write_bytes(rewritten(folder / "before.ipynb").after)
    for folder in CASES:
        (folder / "after.py").write_bytes(rewritten(folder / "before.py").after)
        functional = rewritten(folder / "before.py", FUNCTIONAL).after
        (folder / "after_functional.py").unlink(missing_ok=True)
        if functional != (folder / "after.py").read_bytes():
            (folder / "after_functional.py").write_bytes(functional)
        if folder in CHAIN_CASES:
            (folder / "after_chain.py").write_bytes(
                rewritten(folder / "before.py", Options(form="chain")).after
            )
        sys.stdout.write(f"{folder.name}\n")
