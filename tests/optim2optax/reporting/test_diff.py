"""Diffs: what `git apply` and `patch` make of one is, byte for byte, what a rewrite writes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codemods import FileResult
from optim2optax.reporting.diff import unified_diff
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY

PROGRAMS = [
    pytest.param(LEGACY.encode(), id="LF"),
    pytest.param(LEGACY.replace("\n", "\r\n").encode(), id="CRLF"),
    pytest.param(LEGACY.encode().rstrip(), id="no final newline"),
    pytest.param(b"\xef\xbb\xbf# \x0c\r\n" + LEGACY.encode(), id="BOM, form feed, mixed line endings"),
    pytest.param(b"# coding: latin-1\n# caf\xe9\n" + LEGACY.encode(), id="latin-1"),
]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [["git", "apply", "-"], ["patch", "-p1", "--binary", "-s"]],
    ids=["git", "patch"],
)
@pytest.mark.parametrize("content", PROGRAMS)
def test_applies(project: Path, run: Run, content: bytes, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = project / "train.py"
    path.write_bytes(content)
    diff = run("rewrite", "--diff", ".").stdout_bytes
    subprocess.run(command, input=diff, cwd=project, check=True)
    patched = path.read_bytes()
    path.write_bytes(content)
    run("rewrite", ".")
    assert patched == path.read_bytes() != content


def test_an_unchanged_file_has_none() -> None:
    assert unified_diff(FileResult("a.py", b"x\r", b"x\r")) == b""


def test_colour_is_added_and_nothing_else() -> None:
    result = FileResult("a.py", b"a\nb\nc", b"a\nB\nc\n")
    plain, coloured = unified_diff(result), unified_diff(result, colour=True)
    removed = b"\x1b[31m-b\x1b[0m\n\x1b[31m-c\x1b[0m\n\\ No newline at end of file\n"
    assert removed in coloured
    assert re.sub(rb"\x1b\[\d*m", b"", coloured) == plain


def test_a_blank_line_between_changes_stays_in_a_long_file() -> None:
    rest = b"".join(b"\n\nline %d" % number for number in range(150))
    result = FileResult("a.py", b"first\n\nsecond" + rest, b"FIRST\n\nSECOND" + rest)
    lines = unified_diff(result).splitlines()
    assert lines[3:8] == [b"-first", b"+FIRST", b" ", b"-second", b"+SECOND"]
