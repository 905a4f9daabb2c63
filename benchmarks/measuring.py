"""The seconds and the memory of commands that go over a tree, each in processes of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

BATCH = 1000
"""As many files are given to one command at most."""

PARSING = """
import ast, sys, time, warnings
warnings.simplefilter("ignore")
sys.setrecursionlimit(100_000)
began = time.perf_counter()
for line in sys.stdin:
    try:
        ast.parse(open(line.rstrip("\\n"), encoding="utf-8").read())
    except (SyntaxError, UnicodeDecodeError):
        pass
print(time.perf_counter() - began)
"""

EDITING = """
import sys, time
import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
began = time.perf_counter()
for line in sys.stdin:
    module = cst.parse_module(open(line.rstrip("\\n"), "rb").read())
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    wrapper.resolve(PositionProvider)
    module.visit(cst.CSTTransformer()).code
print(time.perf_counter() - began)
"""

WATCHING = """
import json, os, resource, signal, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
try:
    output, errors = process.communicate(timeout=float(sys.argv[1]))
except BaseException:
    os.killpg(process.pid, signal.SIGKILL)
    output, errors = process.communicate()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "seconds": time.perf_counter() - began,
    "processor": used.ru_utime + used.ru_stime,
    "memory": used.ru_maxrss / 1024,
    "status": process.returncode,
    "output": output.decode(),
    "has_crashed": b"Traceback" in errors,
}))
"""
"""A small process in between: what a command takes at the peak counts from before it replaces the process that starts it."""


@dataclass(frozen=True)
class Taken:
    """What a command took: seconds, those of processors, and MB at the peak of its largest process; and how it ended."""

    seconds: float
    processor: float
    memory: float
    status: int
    output: str
    has_crashed: bool


def measured(command: Sequence[str], limit: float, folder: Path = Path("/")) -> Taken:
    """Run a command in a folder, for so many seconds at most."""
    watched = [sys.executable, "-c", WATCHING, str(limit), *command]
    done = subprocess.run(
        watched, capture_output=True, text=True, check=True, cwd=folder
    )
    return Taken(**json.loads(done.stdout))


def rewriting(tree: Path, limit: int) -> Taken:
    """`optim2optax rewrite --check` of a tree."""
    words = ["-P", "-m", "optim2optax", "rewrite", "--check", "--output-format", "json"]
    return measured([sys.executable, *words, str(tree)], limit)


def parsing(tree: Path, paths: Sequence[str]) -> float:
    """The seconds that `ast.parse` takes for some files of a tree."""
    return _timed(PARSING, tree, paths)


def editing(tree: Path, paths: Sequence[str]) -> float:
    """The seconds that LibCST alone takes for some files: to parse them, find positions, visit each node and print."""
    return _timed(EDITING, tree, paths)


def _timed(script: str, tree: Path, paths: Sequence[str]) -> float:
    names = "".join(f"{tree / path}\n" for path in paths)
    command = [sys.executable, "-c", script]
    return float(
        subprocess.run(
            command, input=names, capture_output=True, text=True, check=True
        ).stdout
    )


def linting(tree: Path, limit: int) -> float | None:
    """The seconds that ruff takes to look for what pyflakes finds; None if it is not there, or fails."""
    ruff = tool("ruff", "ruff")
    if ruff is None:
        return None
    taken = measured(
        [
            *ruff,
            "check",
            "--select",
            "F",
            "--no-cache",
            "--isolated",
            "--quiet",
            str(tree),
        ],
        limit,
    )
    return taken.seconds if taken.status in (0, 1) else None


def upgrading(tree: Path, limit: int) -> float | None:
    """The seconds that django-upgrade takes for a copy of a tree; None if it is not there, or fails."""
    upgrade = tool("django-upgrade", "django_upgrade")
    if upgrade is None:
        return None
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, tree.name)
        shutil.copytree(tree, copy)
        for paths in batches(copy):
            taken = measured([*upgrade, "--target-version", "5.0", *paths], limit)
            if taken.has_crashed or taken.status not in (0, 1):
                return None
            seconds += taken.seconds
    return seconds


def tool(name: str, module: str) -> list[str] | None:
    """How a tool is called, if it is on the path or can be imported."""
    path = shutil.which(name)
    if path is not None:
        return [path]
    return [sys.executable, "-m", module] if find_spec(module) else None


def batches(tree: Path) -> Iterator[list[str]]:
    """The Python files of a tree, as many as one command is given."""
    paths = iter(sorted(str(path) for path in tree.rglob("*.py")))
    while batch := list(islice(paths, BATCH)):
        yield batch
