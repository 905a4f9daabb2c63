"""`optim2optax rewrite -`: standard input to standard output, byte for byte."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY, UNPARSABLE, UNRESOLVABLE

MIXED = b"\xef\xbb\xbfx = 1\r\n\x0c\r\ny = '\xc3\xa9'\r\nmixed = 3\nold = 3\r#"
CONTENTS = {
    "empty": b"",
    "BOM, form feed, mixed line endings, no final newline": MIXED,
    "latin-1": b"# coding: latin-1\ns = '\xe9'\n",
    "no text": b"\xff\x00not Python at all",
    "legacy, but cannot be parsed": UNPARSABLE.encode(),
    "legacy, but cannot be rewritten": UNRESOLVABLE.replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_passes_through(content: bytes) -> None:
    """As a real process: no text layer may translate anything."""
    words = [sys.executable, "-m", "optim2optax", "rewrite", "-"]
    done = subprocess.run(words, input=content, capture_output=True, check=False)
    assert done.stdout == content


def test_rewrites(run: Run) -> None:
    stdin = LEGACY.replace("\n", "\r\n").encode()
    result = run("rewrite", "--stdin-filename", "src/train.py", "-", stdin=stdin)
    assert result.exit_code == 0
    assert b"optax.sgd(" in result.stdout_bytes
    assert b"Momentum" not in result.stdout_bytes
    assert result.stdout_bytes.count(b"\n") == result.stdout_bytes.count(b"\r\n")
    assert result.stderr.startswith("src/train.py: 5 sites rewritten\n")


def test_exit_codes_and_report(run: Run) -> None:
    result = run("rewrite", "-", stdin=UNRESOLVABLE.encode())
    assert result.exit_code == 1
    assert "<stdin>:5:20: FO903" in result.stderr
    assert "waiting for this: 2 sites at <stdin>:1, 5" in result.stderr
    result = run("rewrite", "-", stdin=UNPARSABLE.encode())
    assert result.exit_code == 1
    assert "<stdin>: error: " in result.stderr


def test_diff(run: Run) -> None:
    words = ("rewrite", "--diff", "--stdin-filename", "src/train.py", "-")
    result = run(*words, stdin=LEGACY.encode())
    assert result.exit_code == 1
    assert result.stdout.startswith("--- a/src/train.py\n+++ b/src/train.py\n")
    assert "would be rewritten" in result.stderr


def test_check(run: Run) -> None:
    result = run("rewrite", "--check", "-", stdin=LEGACY.encode())
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>: 5 sites would be rewritten\n")
    words = ("rewrite", "--check", "--output-format", "json", "-")
    result = run(*words, stdin=LEGACY.encode())
    assert result.stdout.startswith('{\n  "version": 1,')


def test_the_report_goes_aside_in_every_format(run: Run) -> None:
    result = run("rewrite", "--output-format", "json", "-", stdin=LEGACY.encode())
    assert "optax.sgd(" in result.stdout
    assert result.stderr.startswith('{\n  "version": 1,')


def test_an_excluded_name_passes_through(project: Path, run: Run) -> None:
    named = ("--stdin-filename", project / "vendor/train.py")
    arguments = ("rewrite", *named, "--exclude", "vendor/", "-")
    assert run(*arguments, stdin=LEGACY.encode()).stdout == LEGACY
