"""`optim2optax explain` and `optim2optax rules`."""

import json

import pytest

from codemods.optimizers import optimizers
from codemods.rules import catalogue
from tests.optim2optax.conftest import Run


@pytest.mark.parametrize("code", sorted(catalogue()))
def test_explains_each_rule(run: Run, code: str) -> None:
    rule = catalogue()[code]
    result = run("explain", code.lower())
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code}: {rule.summary}\n")
    assert " ".join(rule.explanation.split()) in " ".join(result.stdout.split())
    assert ("Before:" in result.stdout) == bool(rule.before)
    assert ("After:" in result.stdout) == bool(rule.after)
    for line in (rule.before + rule.after).strip().splitlines():
        assert line.strip() in result.stdout


@pytest.mark.parametrize("name", sorted(optimizers()))
def test_explains_each_optimizer(run: Run, name: str) -> None:
    result = run("explain", name.lower())
    assert result.exit_code == 0
    assert result.stdout.split() == optimizers()[name].documentation.split()


HINTS = {"FO22": "did you mean FO", "Adm": "mean Adam", "xyzzy": "called xyzzy\n"}


@pytest.mark.parametrize(("name", "hint"), HINTS.items())
def test_unknown_names(run: Run, name: str, hint: str) -> None:
    result = run("explain", name)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert result.stdout == ""


def test_rules_lists_all(run: Run) -> None:
    lines = run("rules").stdout.splitlines()
    assert lines == [f"{code}  {rule.summary}" for code, rule in catalogue().items()]


def test_rules_as_json(run: Run) -> None:
    described = json.loads(run("rules", "--output-format", "json").stdout)
    assert [rule["code"] for rule in described] == list(catalogue())
    assert set(described[0]) == {"code", "summary", "explanation", "before", "after"}
