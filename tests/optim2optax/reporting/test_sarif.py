"""SARIF 2.1.0: what code-scanning services require of a log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codemods.rules import catalogue
from optim2optax import __version__
from optim2optax.reporting import Report, render
from tests.optim2optax.reporting.reports import report


def run_of(shown: Report) -> dict[str, Any]:
    log = json.loads(render(shown, "sarif", colour=False))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    assert isinstance(run, dict)
    return run


def test_rules_have_help() -> None:
    driver = run_of(report())["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("optim2optax", __version__)
    assert [rule["id"] for rule in driver["rules"]] == list(catalogue())
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]


@pytest.mark.parametrize(
    ("preview", "expected"),
    [
        (False, [("FO202", "note"), ("FO903", "warning")]),
        (True, [("FO202", "note"), ("FO203", "note"), ("FO202", "note"), ("FO903", "warning")]),
    ],
)
def test_results(preview: bool, expected: list[tuple[str, str]]) -> None:
    run = run_of(report(preview=preview))
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == expected
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert run["results"][-1]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/train%2C%20100%25%3A.py"},
                "region": {"startLine": 6, "startColumn": 5, "endLine": 6, "endColumn": 9},
            }
        }
    ]
    [suppressed] = [result for result in run["results"] if "suppressions" in result]
    assert suppressed["suppressions"] == [{"kind": "inSource"}]


def test_errors_are_notifications() -> None:
    [invocation] = run_of(report())["invocations"]
    assert invocation["executionSuccessful"] is False
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["message"]["text"] == "line 1: odd"
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "bad%20%C3%A9.py"
