"""Every fixture: rewritten as expected, and training like before. Run as a script, it writes the expected results anew."""

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from codemods import FileResult, Options, Source, migrate
from codemods.vocabulary import words

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CASES = sorted(path.parent for path in FIXTURES.glob("*/before.py"))
NOTEBOOKS = sorted(path.parent for path in FIXTURES.glob("*/before.ipynb"))
CHAIN_CASES = sorted(path.parent for path in FIXTURES.glob("*/after_chain.py"))
FUNCTIONAL_FILES = FIXTURES.glob("*/after_functional.py")
FUNCTIONAL_CASES = sorted(path.parent for path in FUNCTIONAL_FILES)
IN_CHAINS = words("optimizer_zoo traversal_frozen_rest weight_norm")
"""With these, every optimizer, and what is done to one, is trained in the form of chains, too."""
MORE_IN_CHAINS = words("""
    alias_and_chain bare_definition class_by_name class_registry clip_in_chain
    custom_rules decayed_kernels group_rates handwritten_schedules large_batch
    learning_rate_schedule schedule_made_late trainer_class weight_norm_if_asked
""")
LONG = words("""
    adam_variants alias_and_chain any_optimizer backbone_and_head bare_definition
    carried_by_loops class_by_name clip_beside_chain clip_in_chain
    configured_optimizers decay_groups decayed_kernels ensemble federated_rounds
    group_rates half_precision_pmap handwritten_schedules large_batch
    latent_inversion learned_rate mnist_momentum moment_surgery optimizer_zoo
    private_training radiance_field rate_on_plateau replica_moments
    scheduled_hyper_params soft_actor_critic state_around_optimizer
    state_beside_optimizer three_optimizers train_script trainer_class
    traversal_frozen_rest vmap_batch_norm
""")
"""What takes two thirds of the time of all; `make parity` proves these, too, and some are trained in another form or style."""

LONG_IN_FUNCTIONAL_STYLE = words("""
    carried_by_loops clip_beside_chain clip_in_chain handwritten_schedules
    latent_inversion mnist_momentum
""")
RENAMED = words("gan scan_over_steps schedule_made_late")
MORE_RENAMED = words("clip_in_chain mnist_momentum pmap_replicate")


def trained(form: str, usual: Iterable[str], long: Iterable[str]) -> list[ParameterSet]:
    """Fixtures to train in a form, those that take long as thorough ones."""
    return [
        pytest.param(FIXTURES / name, form, id=f"{form}-{name}", marks=marks)
        for names, marks in ((usual, []), (long, [pytest.mark.thorough]))
        for name in names
    ]


def others(cases: Iterable[Path], long: Iterable[str]) -> list[str]:
    return [case.name for case in cases if case.name not in long]


FORMS = {
    "alias": Options(),
    "chain": Options(form="chain"),
    "functional": Options(style="functional"),
    "renamed": Options(rename=True),
}
IN_ANOTHER_FORM = {*others(FUNCTIONAL_CASES, LONG_IN_FUNCTIONAL_STYLE), *RENAMED}
"""What is trained so in each run is trained as a train state by its own names among all tests."""

THOROUGH = (*LONG, *sorted(IN_ANOTHER_FORM.difference(LONG)))
IN_PARTS = others(FUNCTIONAL_CASES, LONG_IN_FUNCTIONAL_STYLE)
TRAINED = [
    *trained("alias", others(CASES, THOROUGH), THOROUGH),
    *trained("chain", IN_CHAINS, MORE_IN_CHAINS),
    *trained("functional", IN_PARTS, LONG_IN_FUNCTIONAL_STYLE),
    *trained("renamed", RENAMED, MORE_RENAMED),
]
FUNCTIONAL = FORMS["functional"]


@cache
def rewritten(path: Path, form: str) -> FileResult:
    [result] = migrate([Source(path.name, path.read_bytes())], FORMS[form])
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rewrites_as_expected(case: Path) -> None:
    result = rewritten(case / "before.py", "alias")

    assert result.error is None
    assert [site for site in result.sites if site.status != "rewritten"] == []
    assert result.after.decode() == (case / "after.py").read_text()
    assert b"flax.optim" not in result.after


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_rewrites_as_expected_in_chain_form(case: Path) -> None:
    result = rewritten(case / "before.py", "chain")

    assert result.error is None
    assert result.after.decode() == (case / "after_chain.py").read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rewrites_as_expected_in_functional_style(case: Path) -> None:
    """What cannot fall into parts stays a train state, as in the other style."""
    result = rewritten(case / "before.py", "functional")
    expected = case / "after_functional.py"

    assert [site for site in result.sites if site.status != "rewritten"] == []
    expected = expected if expected.exists() else case / "after.py"
    assert result.after.decode() == expected.read_text()
    assert not migrate([Source("after.py", result.after)], FUNCTIONAL)[0].changed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_second_run_changes_nothing(case: Path) -> None:
    result = rewritten(case / "after.py", "alias")

    assert not result.changed
    assert result.sites == ()


@pytest.mark.parametrize(("case", "form"), TRAINED)
def test_trains_like_before(
    case: Path, form: str, tmp_path: Path, legacy_wheel: Path
) -> None:
    from optim2optax.parity.judging.comparison import Verdict
    from tests.optim2optax.parity.scenario.sides import run_scenario

    after = tmp_path / "after.py"
    after.write_bytes(rewritten(case / "before.py", form).after)
    if form in ("functional", "renamed"):
        assert after.read_bytes() != (case / "after.py").read_bytes()
    comparison = run_scenario(case / "scenario.py", case / "before.py", after)

    assert comparison.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT), comparison


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_notebooks(case: Path, legacy_wheel: Path) -> None:
    from optim2optax.parity.cases import scenario_case
    from optim2optax.parity.judging.comparison import Verdict

    result = rewritten(case / "before.ipynb", "alias")
    assert result.after.decode() == (case / "after.ipynb").read_text()
    assert {site.status for site in result.sites} == {"rewritten"}
    assert not rewritten(case / "after.ipynb", "alias").changed

    files = (case / name for name in ("scenario.py", "before.ipynb", "after.ipynb"))
    outcome = scenario_case(case.name, *files).outcome
    assert outcome in (Verdict.IDENTICAL, Verdict.EQUIVALENT)


if __name__ == "__main__":
    for folder in NOTEBOOKS:
        after = rewritten(folder / "before.ipynb", "alias").after
        (folder / "after.ipynb").write_bytes(after)
    for folder in CASES:
        alias, chain, functional = (
            rewritten(folder / "before.py", form).after
            for form in ("alias", "chain", "functional")
        )
        (folder / "after.py").write_bytes(alias)
        (folder / "after_functional.py").unlink(missing_ok=True)
        if functional != alias:
            (folder / "after_functional.py").write_bytes(functional)
        if folder in CHAIN_CASES:
            (folder / "after_chain.py").write_bytes(chain)
        sys.stdout.write(f"{folder.name}\n")
