"""SARIF 2.1.0: what code-scanning services require of a log."""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, FormatChecker

from codemods.rules import catalogue
from optim2optax import __version__
from optim2optax.reporting import Report, render
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files
from tests.optim2optax.processes import run_program
from tests.optim2optax.programs import MIXED, MODERN, UNRESOLVABLE
from tests.optim2optax.reporting.reports import report

SCHEMA_PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
SCHEMA = "package/lib/schemas/sarif-2.1.0-rtm.5.json"


def run_of(shown: Report) -> dict[str, Any]:
    log = json.loads(render(shown, "sarif"))
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
)  # fmt: skip
def test_results(preview: bool, expected: list[tuple[str, str]]) -> None:
    run = run_of(report(preview=preview))
    results, rules = run["results"], run["tool"]["driver"]["rules"]
    assert [(result["ruleId"], result["level"]) for result in results] == expected
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    [location] = results[-1]["locations"]
    region = {"startLine": 6, "startColumn": 5, "endLine": 6, "endColumn": 9}
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "src/train%2C%20100%25%3A.py"},
        "region": region,
    }
    [suppressed] = [result for result in run["results"] if "suppressions" in result]
    assert suppressed["suppressions"] == [{"kind": "inSource"}]


def test_errors_are_notifications() -> None:
    [invocation] = run_of(report())["invocations"]
    assert invocation["executionSuccessful"] is False
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["message"]["text"] == "line 1: odd"
    [location] = notification["locations"]
    place = {"artifactLocation": {"uri": "bad%20%C3%A9.py"}}
    assert location["physicalLocation"] == place


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Draft4Validator:
    """The schema of SARIF 2.1.0, as a package of npm ships it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which fetches the schema, is not on this machine")
    folder = tmp_path_factory.mktemp("npm")
    done = run_program(npm, "pack", "--silent", SCHEMA_PACKAGE, cwd=folder)
    with tarfile.open(folder / done.stdout.strip()) as archive:
        file = archive.extractfile(SCHEMA)
        assert file is not None
        return Draft4Validator(
            json.load(file), format_checker=FormatChecker(["uri", "uri-reference"])
        )


PROJECTS = {
    "every status": MIXED,
    "odd names": dict.fromkeys(
        ("a b,#?%:.py", "ü ∇/é.py", "x\ny.py", "\udcff.py", "[1]{2}^`.py"), UNRESOLVABLE
    ),
    "nothing found": {"modern.py": MODERN},
    "no file": {},
}  # fmt: skip


@pytest.mark.network
@pytest.mark.parametrize("programs", PROJECTS.values(), ids=PROJECTS)
def test_logs_keep_to_the_schema(
    project: Path, run: Run, validator: Draft4Validator, programs: dict[str, str]
) -> None:
    write_files(project, programs)
    for arguments in (["--check"], []):
        words = ("rewrite", *arguments, "--output-format", "sarif", str(project))
        log = json.loads(run(*words).stdout)
        validator.validate(log)
        [only] = log["runs"]
        assert bool(only["results"]) == (len(programs) > 1)


@pytest.mark.network
def test_the_schema_tells_what_is_no_log(validator: Draft4Validator) -> None:
    log = json.loads(render(report(), "sarif"))
    [location] = log["runs"][0]["results"][0]["locations"]
    location["physicalLocation"]["artifactLocation"]["uri"] = "a b"
    del log["runs"][0]["results"][0]["message"]
    broken = {error.validator for error in validator.iter_errors(log)}
    assert broken == {"required", "format"}
