"""How long `rewrite` takes beside other tools that go over a whole tree, on the same files in the same run.

python -m benchmarks.speed [--jobs N] [--copies N]

The files are those of the installed jax, flax, optax and numpy, which are clean of `flax.optim`; for the second line, twenty of
them are exchanged for the legacy programs in `fixtures/`. Other tools are run if they are on the path: pyupgrade,
django-upgrade, ruff, bump-pydantic, and LibCST's own runner. Each gets copies of its own, and the best of three runs counts,
or one that takes more than five seconds. With
`--copies`, the clean files are laid out that many times more, to see how the time grows.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, cycle, islice
from pathlib import Path

from codemods.sources.prefilter import mentions_legacy

FILES = 1000
LEGACY = 20
PACKAGES = ("jax", "flax", "optax", "numpy", "scipy")
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OURS = "optim2optax"
SLOW = 5.0
"""Seconds after which one run is enough."""


def sources() -> list[bytes]:
    """The contents of FILES files."""
    folders = [
        Path(spec.origin).parent
        for name in PACKAGES
        if (spec := find_spec(name)) and spec.origin
    ]
    files = chain.from_iterable(sorted(folder.rglob("*.py")) for folder in folders)
    contents = (path.read_bytes() for path in files)
    return list(
        islice((content for content in contents if not mentions_legacy(content)), FILES)
    )


def lay_out(folder: Path, contents: Sequence[bytes], copies: int = 1) -> int:
    """Write the files into packages of fifty, and the whole as often as is asked for; returns the number of bytes."""
    for copy in range(copies):
        for number, content in enumerate(contents):
            package = folder / f"copy_{copy}" / f"package_{number // 50}"
            package.mkdir(parents=True, exist_ok=True)
            (package / f"module_{number}.py").write_bytes(content)
    return copies * sum(map(len, contents))


def commands(jobs: int) -> Mapping[str, list[str]]:
    """The command line of each tool that is there, without its paths."""
    libcst = [sys.executable, "-m", "libcst.tool", "codemod", "--no-format"]
    known = {
        OURS: [
            sys.executable,
            "-m",
            "optim2optax",
            "rewrite",
            "--check",
            "--jobs",
            str(jobs),
        ],
        "ruff": ["ruff", "check", "--quiet", "--no-cache", "--isolated"],
        "pyupgrade": ["pyupgrade", "--py310-plus"],
        "django-upgrade": ["django-upgrade", "--target-version", "4.2"],
        "bump-pydantic": ["bump-pydantic"],
        "libcst.tool": [
            *libcst,
            "convert_format_to_fstring.ConvertFormatStringCommand",
            "--jobs",
            str(jobs),
        ],
    }
    return {name: words for name, words in known.items() if shutil.which(words[0])}


def seconds(name: str, words: Sequence[str], folder: Path) -> float | None:
    """The best of three runs over a folder, or a single slow one; None if the tool fails on it."""
    takes_files = name in ("pyupgrade", "django-upgrade")
    paths = (
        [str(path) for path in sorted(folder.rglob("*.py"))]
        if takes_files
        else [str(folder)]
    )
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(
            [*words, *paths], capture_output=True, check=False, text=True
        )
        if "Traceback" in done.stderr:
            return None
        best = min(best, time.perf_counter() - start)
        if best > SLOW:
            break
    return best


def loads_libcst(folder: Path) -> bool:
    """Whether a run over a folder imports LibCST."""
    words = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "optim2optax",
        "rewrite",
        "--check",
        str(folder),
    ]
    return b"libcst" in subprocess.run(words, capture_output=True, check=False).stderr


def main() -> None:
    """Print a line for each tool and tree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--copies", type=int, default=0)
    options = parser.parse_args()
    clean = sources()
    legacy = [path.read_bytes() for path in sorted(FIXTURES.glob("*/before.py"))]
    mixed = [*islice(cycle(legacy), LEGACY), *clean[LEGACY:]]
    print("| tree | tool | seconds | of ours |\n|---|---|---:|---:|")
    for title, contents in (("clean", clean), (f"{LEGACY} legacy files", mixed)):
        ours = None
        for name, words in commands(options.jobs).items():
            with tempfile.TemporaryDirectory() as folder:
                size = lay_out(Path(folder), contents)
                taken = seconds(name, words, Path(folder))
                ours = ours or taken
                figures = (
                    f"{taken:.2f} | {taken / (ours or taken):.1f}"
                    if taken
                    else "fails |"
                )
                print(
                    f"| {title}, {size / 1e6:.0f} MB | {name} | {figures} |", flush=True
                )
                if name == OURS:
                    print(
                        f"| {title} | LibCST is {'' if loads_libcst(Path(folder)) else 'not '}imported | | |"
                    )
    if options.copies:
        with tempfile.TemporaryDirectory() as folder:
            size = lay_out(Path(folder), clean, options.copies)
            taken = seconds(OURS, commands(options.jobs)[OURS], Path(folder))
            print(
                f"| {options.copies * len(clean)} clean files, {size / 1e6:.0f} MB | {OURS} | {taken or 0:.2f} | |"
            )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nThe largest of these processes took {peak:.0f} MB.")


if __name__ == "__main__":
    main()
