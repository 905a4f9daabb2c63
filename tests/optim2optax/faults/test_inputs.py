"""Files that are deep, damaged or hostile: each is reported by itself, and the others are done."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codemods import Source, migrate
from tests.optim2optax.conftest import Run
from tests.optim2optax.processes import run_command
from tests.optim2optax.programs import LEGACY
from tests.thinned import thinned

SOUND = Source("train.py", LEGACY.encode())
DEEP = {
    "brackets": "x = " + "(" * 3_000 + ")" * 3_000,
    "sum": "x = " + "+".join(["a"] * 20_000),
    "attributes": "x = a" + ".b" * 20_000,
    "conjunction": "x = " + " and ".join(["a"] * 20_000),
    "dotted import": "import " + ".".join(["a"] * 20_000),
    "dotted module": "from " + ".".join(["a"] * 20_000) + " import b",
    "elif": "if a:\n    pass\n" + "elif b:\n    pass\n" * 3_000,
    "functions": "".join(" " * depth + "def f():\n" for depth in range(1_000))
    + f"{1_000 * ' '}pass",
}


@pytest.mark.parametrize(
    "name", thinned({name: name for name in DEEP}, "brackets", "attributes", "elif")
)
def test_deep_nesting(project: Path, name: str) -> None:
    """In a process of its own, since what overflows the stack of a process ends it."""
    deep = f"{LEGACY}\n{DEEP[name]}\n"
    (project / "deep.py").write_text(deep)
    (project / "train.py").write_text(LEGACY)
    done = run_command("rewrite", "--jobs", "1", ".")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "deep.py" in done.stdout
    assert (project / "deep.py").read_text() == deep
    assert "optax" in (project / "train.py").read_text()


def test_a_long_line_takes_no_longer_than_a_short_one() -> None:
    """Five megabytes in one line; a source text that is looked for character by character took minutes."""
    long = LEGACY + "x = '" + "y" * 5_000_000 + "'\n"
    [result] = migrate([Source("train.py", long.encode())])
    [short] = migrate([Source("train.py", LEGACY.encode())])
    assert result.after == short.after + long[len(LEGACY) :].encode()


@pytest.mark.parametrize(
    "encoding", ["rot13", "hex", "undefined", "unicode_escape", "punycode", "klingon"]
)
def test_encodings_that_are_none(encoding: str) -> None:
    content = f"# coding: {encoding}\n{LEGACY}".encode()
    [result, other] = migrate([Source("odd.py", content), SOUND])
    assert result.after == content
    assert encoding in str(result.error)
    assert other.changed


CODE = "from flax import optim"
NOTEBOOKS: dict[str, Any] = {
    "no type": [{"source": CODE}],
    "a number": [{"cell_type": "code", "source": 7}, CODE],
    "numbers": [{"cell_type": "code", "source": [1, 2], "x": CODE}],
    "no cells": {"a": CODE},
    "nothing": None,
    "a marker": [
        {"cell_type": "code", "source": f"{CODE}\n__cell__ = 9\n__cell__ = 1"}
    ],
    "a placeholder": [{"cell_type": "code", "source": f"{CODE}\ny = __magic_7__\n"}],
}


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize(
    "metadata", [{}, {"kernelspec": "x", "language_info": ["flax.optim"]}, [CODE]]
)
def test_odd_notebooks(name: str, metadata: Any) -> None:
    words = {"metadata": metadata, "text": "flax.optim jax"}
    content = json.dumps({"cells": NOTEBOOKS[name], **words}).encode()
    [result, other] = migrate([Source("odd.ipynb", content), SOUND])
    assert not result.changed
    assert result.error is not None or name in ("no type", "no cells", "nothing")
    assert other.changed


def test_a_notebook_with_an_endless_number() -> None:
    text = f'{{"x": "flax.optim jax", "cells": [], "n": {6_000 * "9"}}}'
    [result] = migrate([Source("odd.ipynb", text.encode())])
    assert result.error is not None
    assert not result.changed


def test_thousands_of_unreadable_files(project: Path, run: Run) -> None:
    """A line for each, and their number."""
    for number in range(3_000):
        (project / f"unreadable_{number}.py").write_bytes(b"from flax import optim\0")
    result = run("rewrite", ".")
    assert result.exit_code == 1
    assert result.stdout.count("contains NUL bytes") == 3_000
    counted = "3,000 files could not be read, parsed or written: see above\n"
    assert result.stdout.endswith(counted)


def test_what_is_no_checkpoint(project: Path, run: Run) -> None:
    os.mkfifo(project / "pipe")
    (project / "huge").write_bytes(b"\xdf\xff\xff\xff\xff\xa1a\x01")
    result = run("checkpoint", "inspect", "pipe", "/dev/zero", "huge")
    assert result.exit_code == 1
    assert result.stdout.count("is neither a file nor a folder") == 2
    assert "huge is empty or cut off" in result.stdout


def test_a_reader_that_goes_away(project: Path) -> None:
    (project / "train.py").write_text(LEGACY)
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "optim2optax", "rewrite", "--diff", "."]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
