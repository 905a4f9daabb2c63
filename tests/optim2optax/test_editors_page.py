"""docs/editors.md: its patterns read what is reported."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.processes import run_program
from tests.optim2optax.test_pages import PROGRAM

TEXT = (Path(__file__).parents[2] / "docs" / "editors.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def report(project: Path, run: Run) -> str:
    for name, program in PROGRAM.findall(TEXT):
        (project / name).write_text(program)
    return run("rewrite", "--check", ".").stdout


def test_the_matcher_of_vs_code(report: str) -> None:
    [task] = json.loads(block("json"))["tasks"]
    found = re.findall(
        task["problemMatcher"]["pattern"]["regexp"], report, re.MULTILINE
    )
    assert [(path, line, code) for path, line, _, code, _ in found] == [
        ("describe.py", "9", "FO924")
    ]


def test_the_settings_of_vim(project: Path, report: str) -> None:
    vim = shutil.which("vim")
    if vim is None:
        pytest.skip("vim is not on this machine")
    (project / "settings.vim").write_text(block("vim"))
    (project / "report").write_text(report)
    commands = ["cgetfile report", "redir! > found", "silent clist", "qa!"]
    words = [word for command in commands for word in ("-c", command)]
    run_program(vim, "-Nes", "-u", "settings.vim", *words, timeout=60)
    [line] = (project / "found").read_text().strip().splitlines()
    assert "describe.py:9 col 15 warning: FO924 " in line
    assert "Tell optimizers apart" in line
