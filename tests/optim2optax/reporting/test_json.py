"""JSON: the documented schema, and nothing else on standard output."""

import json
from pathlib import Path
from typing import Any

import pytest

from codemods.vocabulary import words
from optim2optax.reporting import render
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files
from tests.optim2optax.programs import LEGACY, MIXED, MODERN
from tests.optim2optax.reporting.reports import report

SITE = {
    *words(
        "code line column status evidence message before after remedy note "
        "end_line end_column group cause related"
    )
}


@pytest.fixture
def described(project: Path, run: Run) -> dict[str, Any]:
    write_files(project, MIXED)
    result = run("rewrite", "--output-format", "json", ".")
    assert result.exit_code == 1
    assert result.stderr == ""
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def test_schema(described: dict[str, Any]) -> None:
    assert list(described) == ["version", "summary", "files"]
    assert described["version"] == 1
    fields = {*words("path kind changed error sites unused_suppressions hints")}
    assert [file["path"] for file in described["files"]] == [*MIXED][:4]
    for file in described["files"]:
        assert set(file) == fields
        for found in file["sites"]:
            assert set(found) == SITE
            assert found["status"] in {"rewritten", "suppressed", "unresolved"}
            assert (found["after"] is not None) == (found["status"] == "rewritten")
            assert (found["remedy"] is not None) == (found["status"] == "unresolved")


def test_totals_add_up(described: dict[str, Any]) -> None:
    summary, files = described["summary"], described["files"]
    statuses = [found["status"] for file in files for found in file["sites"]]
    assert summary == {
        "files_scanned": 5,
        "files_changed": sum(file["changed"] for file in files),
        "sites": len(statuses),
        "rewritten": statuses.count("rewritten"),
        "suppressed": statuses.count("suppressed"),
        "vendored": 0,
        "unresolved": statuses.count("unresolved"),
        "errors": 1,
    }
    assert summary["rewritten"] == 5


def test_positions_are_those_of_the_text(
    project: Path, described: dict[str, Any]
) -> None:
    for file in described["files"]:
        if not file["changed"]:
            lines = (project / file["path"]).read_text().splitlines()
            for found in file["sites"]:
                if found["line"] == found["end_line"]:
                    line = lines[found["line"] - 1]
                    text = line[found["column"] - 1 : found["end_column"] - 1]
                    assert text == found["before"]


def test_a_diff_comes_inside(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    told = run("rewrite", "--diff", "--output-format", "json", ".").stdout
    [file] = json.loads(told)["files"]
    assert file["changed"]
    assert file["diff"].startswith("--- a/train.py\n+++ b/train.py\n")
    assert (project / "train.py").read_text() == LEGACY


def test_nothing_to_migrate(project: Path, run: Run) -> None:
    (project / "modern.py").write_text(MODERN)
    described = json.loads(run("rewrite", "--output-format", "json", ".").stdout)
    assert described["files"] == []
    assert described["summary"]["files_scanned"] == 1


def test_odd_characters() -> None:
    files = json.loads(render(report(), "json"))["files"]
    assert [file["path"] for file in files] == ["src/train, 100%:.py", "bad é.py"]
    assert files[0]["sites"][3]["message"] == "50% of this:\r\nis odd, yes"
    assert files[0]["unused_suppressions"] == [9]
