"""What the rewriter makes of real repositories, and what a change of it does to them.

python -m benchmarks.ecosystem LIST TREES [--jobs N] [--save FILE] [--compare FILE] [--left] [--modernize]

LIST names a tree on each line, in its first column; what follows a tab and lines that begin with # are passed over. The tree of
`owner/name` lies in TREES/owner__name. Copies are rewritten, twice; the trees stay as they are. The result is judged apart from
the rewriter: whether it parses, which undefined names are new (pyflakes), what a plain scan still finds that no report names.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedName

from benchmarks.scan import code_of
from codemods.model import FileResult, Options
from optim2optax.project import Patterns, find_files
from optim2optax.rewriting import rewrite_files
from tests.remains import METHODS, own_members, remains


@dataclass
class Tree:
    """The figures of one tree. `problems` are lines to read; `left` the legacy files not migrated whole, with their codes."""

    name: str
    files: int = 0
    legacy: int = 0
    migrated: int = 0
    sites: int = 0
    rewritten: int = 0
    invalid: int = 0
    missed: int = 0
    second: int = 0
    seconds: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(
        self,
        before: FileResult,
        again: FileResult,
        own: tuple[Collection[str], Collection[str]],
    ) -> None:
        """Count one file: what became of it, and what a second run makes of that.

        `own` are the members that classes of the tree define themselves, before and after.
        """
        unresolved = [site.code for site in before.sites if site.status == "unresolved"]
        old, new = (
            _remains(before.path, before.before, own[0]),
            _remains(before.path, before.after, own[1]),
        )
        self.sites += len(before.sites)
        self.rewritten += sum(site.status == "rewritten" for site in before.sites)
        self.codes = dict(Counter(self.codes) + Counter(unresolved))
        if old or before.sites or before.error:
            self.legacy += 1
            if new or unresolved or before.error:
                self.left[before.path] = sorted(set(unresolved)) + [
                    "cannot be read"
                ] * bool(before.error)
            else:
                self.migrated += 1
        if invalid := _invalid(before):
            self.invalid += 1
            self.problems.append(f"{before.path}: {invalid}")
        if again.changed:
            self.second += 1
            self.problems.append(f"{before.path}: a second run changes it")
        reported = {
            line for site in again.sites for line in range(site.line, site.end_line + 1)
        }
        for line, name in sorted(new.items()):
            if line not in reported and not before.error:
                self.missed += 1
                self.problems.append(
                    f"{before.path}:{line}: {name} is left and not reported"
                )


def measure(name: str, trees: Path, options: Options) -> Tree:
    """Rewrite a copy of a tree, and judge it."""
    figures = Tree(name)
    with tempfile.TemporaryDirectory() as folder:
        # some import themselves by the name of their folder
        copy = Path(folder, name.rpartition("/")[2].partition("@")[0])
        shutil.copytree(trees / name.replace("/", "__"), copy)
        (copy / ".git").mkdir(exist_ok=True)
        start = time.perf_counter()
        found = find_files([str(copy)], Patterns(folder, ()))
        results = rewrite_files(found, options, write=True)
        figures.seconds = round(time.perf_counter() - start, 2)
        # with the modules that the first run added
        found = find_files([str(copy)], Patterns(folder, ()))
        second = rewrite_files(found, options, write=False)
        again = {result.path: result for result in second}
        figures.files = len(found)
        own = (
            _own_members((result.path, result.before) for result in results),
            _own_members((result.path, result.after) for result in results),
        )
        for first in results:
            inside = os.path.relpath(
                os.path.realpath(first.path), os.path.realpath(copy)
            )
            named = FileResult(
                inside, first.before, first.after, first.sites, first.error
            )
            figures.add(named, again[first.path], own)
    return figures


def _remains(path: str, content: bytes, own: Collection[str]) -> dict[int, str]:
    try:
        return remains(code_of(path, content), own)
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _own_members(files: Iterable[tuple[str, bytes]]) -> set[str]:
    own = set()
    for path, content in files:
        with suppress(SyntaxError, ValueError, RecursionError):
            own |= (
                own_members(code_of(path, content))
                if any(name.encode() in content for name in METHODS)
                else set()
            )
    return own


def _invalid(result: FileResult) -> str:
    if not result.changed:
        return ""
    try:
        old = _undefined(result.path, result.before)
    except (SyntaxError, ValueError):  # a notebook with a cell that was none
        return ""
    try:
        new = _undefined(result.path, result.after) - old
    except (SyntaxError, ValueError) as error:
        return f"does not parse: {error}"
    return f"undefined: {', '.join(sorted(new))}" if new else ""


def _undefined(path: str, content: bytes) -> set[str]:
    messages = Checker(ast.parse(code_of(path, content))).messages
    return {
        str(message.message_args[0])
        for message in messages
        if isinstance(message, UndefinedName)
    }


def table(trees: Sequence[Tree], old: dict[str, Tree]) -> Iterable[str]:
    """The figures as lines of a Markdown table; where an older figure differs, it stands before an arrow."""
    columns = (
        "files",
        "legacy",
        "migrated",
        "sites",
        "rewritten",
        "invalid",
        "missed",
        "second",
        "seconds",
    )
    yield f"| tree | {' | '.join(columns)} | unresolved by code |"
    yield f"|---|{'---:|' * len(columns)}---|"
    for tree in (*trees, _total("**total**", trees)):
        before = (
            _total(tree.name, old.values())
            if tree.name == "**total**" and old
            else old.get(tree.name)
        )
        cells = [
            _change(getattr(before, column, None), getattr(tree, column))
            for column in columns[:-1]
        ]
        known = before.codes if before else tree.codes
        shown = [
            f"{code} {_change(known.get(code, 0), tree.codes.get(code, 0))}"
            for code in sorted({*tree.codes, *known})
        ]
        yield f"| {tree.name} | {' | '.join(cells)} | {tree.seconds:.1f} | {', '.join(shown)} |"


def _total(name: str, trees: Iterable[Tree]) -> Tree:
    total = Tree(name)
    for tree in trees:
        for column in (
            "files",
            "legacy",
            "migrated",
            "sites",
            "rewritten",
            "invalid",
            "missed",
            "second",
            "seconds",
        ):
            setattr(total, column, getattr(total, column) + getattr(tree, column))
        total.codes = dict(Counter(total.codes) + Counter(tree.codes))
    return total


def _change(before: int | None, now: int) -> str:
    return str(now) if before in (None, now) else f"{before} → {now}"


def main() -> int:
    """Print the table and the problems. Exit with 1 if a result is invalid, missed or changes again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", type=Path)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="trees at once")
    parser.add_argument("--save", type=Path, help="keep the figures in this file")
    parser.add_argument(
        "--compare", type=Path, help="show what differs from the figures in this file"
    )
    parser.add_argument(
        "--left",
        action="store_true",
        help="name the legacy files that are not migrated whole",
    )
    parser.add_argument(
        "--modernize", action="store_true", help="also rename what else was removed"
    )
    options = parser.parse_args()
    lines = options.list.read_text(encoding="utf-8").splitlines()
    names = [
        line.split("\t")[0].strip()
        for line in lines
        if line.strip() and not line.startswith("#")
    ]
    present = [
        name for name in names if (options.trees / name.replace("/", "__")).is_dir()
    ]
    for name in sorted({*names} - {*present}):
        print(f"{name}: no such tree", file=sys.stderr)
    with ProcessPoolExecutor(options.jobs) as pool:
        trees = list(
            pool.map(
                measure,
                present,
                repeat(options.trees),
                repeat(Options(modernize=options.modernize)),
            )
        )
    old = (
        json.loads(options.compare.read_text(encoding="utf-8"))
        if options.compare
        else []
    )
    for line in table(trees, {tree["name"]: Tree(**tree) for tree in old}):
        print(line)
    for tree in trees:
        for problem in tree.problems:
            print(f"{tree.name}: {problem}")
        for path, codes in tree.left.items() if options.left else ():
            print(f"{tree.name}: {path}: {', '.join(codes)}")
    if options.save:
        options.save.write_text(
            json.dumps([asdict(tree) for tree in trees], indent=1), encoding="utf-8"
        )
    return int(any(tree.problems for tree in trees))


if __name__ == "__main__":
    sys.exit(main())
