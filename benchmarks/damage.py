"""Trees with damaged files: does a run end, and does damage stay where it is?

`python -m benchmarks.damage TREES --runs 500 --seed 0` damages one to three files of a tree in each run, and migrates it without
writing. Nothing may raise, no internal error may be reported, and the result of another file may differ from that of the whole tree
only if it imports a damaged one, is imported by it or by what imports it, or shares an optimizer with it or with such a file. What
breaks that is printed with its seed; `--runs 1 --seed N` with the same TREES tries it again.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

import click

from codemods import FileResult, Options
from codemods.model import Location
from codemods.sources.relevance import import_graph
from optim2optax.dependencies import declares
from optim2optax.project import Patterns, find_declaring, find_files
from optim2optax.rewriting import rewrite_files

LIMIT = 300
"""Seconds that a run may take."""

OPTIONS = {
    "default": Options(),
    "partial": Options(partial=True),
    "modernize": Options(modernize=True),
}
Results = Mapping[str, FileResult]
Damage = Callable[[Path, random.Random], object]


def _cut(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content) + 1)])


def _with_line(line: bytes) -> Damage:
    """What puts a line behind some other, at the outermost level or not."""

    def damage(path: Path, chance: random.Random) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        lines.insert(chance.randrange(len(lines) + 1), line + b"\n")
        path.write_bytes(b"".join(lines))

    return damage


def _with_end(end: bytes) -> Damage:
    def damage(path: Path, _: random.Random) -> None:
        path.write_bytes(path.read_bytes() + b"\n" + end + b"\n")

    return damage


def _binary(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(chance.randrange(5_000)))


def _encoded(path: Path, chance: random.Random) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    encoding = chance.choice(["utf-16", "utf-32", "cp500"])
    path.write_bytes(text.encode(encoding, "replace"))


def _dangling(path: Path, _: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere.py")


DAMAGES: Mapping[str, Damage] = {
    "cut off": _cut,
    "Python 2": _with_line(b'print "loss", loss'),
    "a merge conflict": _with_line(b"<<<<<<< HEAD"),
    "binary": _binary,
    "wrong encoding": _encoded,
    "wrong coding line": lambda path, _: path.write_bytes(
        b"# coding: ascii\n# \xe9\n" + path.read_bytes()
    ),
    "brackets in brackets": _with_end(b"x = " + b"[" * 5_000 + b"]" * 5_000),
    "a long sum": _with_end(b"x = " + b"+".join([b"y"] * 5_000)),
    "calls of calls": _with_end(b"x = f" + b"()" * 5_000),
    "empty": lambda path, _: path.write_bytes(b""),
    "deleted": lambda path, _: path.unlink(),
    "a link to nowhere": _dangling,
}


class Tree:
    """A copy of a tree that is damaged and made whole again. It is the current folder, so that paths are short."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source = source
        self.root = folder / source.name
        shutil.copytree(source, self.root, symlinks=True)
        (self.root / ".git").mkdir(exist_ok=True)
        self.whole = cache(self.migrated)
        results = [one for one in self.whole("default").values() if one.kind != "new"]
        code = [one.path for one in results if one.path.endswith(".py")]
        self.paths = [path for path in code if not (self.root / path).is_symlink()]
        self.legacy = [one.path for one in results if one.sites and one.path in code]
        self.declaring = [
            path for path in map(str, _below(self.root)) if declares(path)
        ]
        self.texts = {path: self._text(path) for path in self.paths}
        self.imports, _ = import_graph(self.texts)

    def _text(self, path: str) -> str:
        return (self.root / path).read_bytes().decode("utf-8", "replace")

    def migrated(self, option: str) -> Results:
        """The results for all files; nothing is written."""
        os.chdir(self.root)
        found = find_files(["."], Patterns(str(self.root), ()))
        declaring = partial(find_declaring, ["."], Patterns(str(self.root), ()))
        results = rewrite_files(
            found,
            OPTIONS[option],
            write=False,
            declaring=lambda: declaring(declares),
        )
        return {result.path: result for result in results}

    def chosen(self, chance: random.Random) -> list[str]:
        """Some files to damage: many have sites, some declare dependencies."""
        several = chance.choice([1, 1, 2, 3])
        kinds = [self.legacy, self.paths, self.legacy, self.paths, self.declaring]
        among = [chance.choice(kinds) for _ in range(several)]
        return [*dict.fromkeys(chance.choice(paths or self.paths) for paths in among)]

    def restore(self, paths: Iterable[str]) -> None:
        for path in paths:
            (self.root / path).unlink(missing_ok=True)
            shutil.copy2(self.source / path, self.root / path)

    def _imports(self, path: str, other: str) -> bool:
        """Whether a file imports another, by its name whatever the packages around are called."""
        if other in self.imports[path]:
            return True
        name = re.escape(Path(other.removesuffix("/__init__.py")).stem)
        statement = rf"^\s*(?:from|import)\b.*\b{name}\b"
        return re.search(statement, self.texts.get(path, ""), re.MULTILINE) is not None

    def related(self, damaged: Iterable[str], runs: Sequence[Results]) -> set[str]:
        """The files whose results may differ."""
        found = {*damaged}
        for path in damaged:
            importers = {one for one in self.paths if self._imports(one, path)}
            found |= importers
            # what a file gets of one that it imports, it may give to another
            for importer in (path, *importers):
                found |= {one for one in self.paths if self._imports(importer, one)}
        shared = set[Location]()
        for results in runs:
            shared |= _groups(results[path] for path in found if path in results)
        for results in runs:
            found |= {path for path, one in results.items() if shared & _groups([one])}
        # where a helper is written depends on all files that need it
        sharing = {path for results in runs for path in _with_helpers(results)}
        return found | sharing if found & sharing else found


def _below(root: Path) -> list[Path]:
    """The files of a folder, from there on."""
    found = (path for path in root.rglob("*") if path.is_file())
    return sorted(path.relative_to(root) for path in found if not path.is_symlink())


def _groups(results: Iterable[FileResult]) -> set[Location]:
    return {
        site.group
        for result in results
        for site in result.sites
        if site.group is not None
    }


def _with_helpers(results: Results) -> Iterator[str]:
    """The files that import a new module of the project."""
    new = [Path(path).stem for path, one in results.items() if one.kind == "new"]
    for path, one in results.items():
        if any(f"{name} import".encode() in one.after for name in new):
            yield path


def _same(one: FileResult, other: FileResult) -> bool:
    return (one.after, one.error, one.sites) == (other.after, other.error, other.sites)


@dataclass(frozen=True)
class Trial:
    """A run, from whose seed all else follows."""

    tree: Tree
    seed: int

    def findings(self, counts: Counter[str]) -> Iterator[str]:
        """What is wrong; `counts` gets what was done."""
        chance = random.Random(self.seed)
        option = chance.choice([*OPTIONS])
        whole = self.tree.whole(option)
        damages = {path: chance.choice([*DAMAGES]) for path in self.tree.chosen(chance)}
        for path, damage in damages.items():
            counts[damage] += 1
            DAMAGES[damage](self.tree.root / path, chance)
        about = ", ".join(f"{path} ({damage})" for path, damage in damages.items())
        begin = f"{self.tree.root.name}, seed {self.seed}, {option}: {about}"
        for finding in self._findings(option, damages, whole, counts):
            yield f"{begin}: {finding}"

    def _findings(
        self,
        option: str,
        damages: Mapping[str, str],
        whole: Results,
        counts: Counter[str],
    ) -> Iterator[str]:
        try:
            results = self.tree.migrated(option)
        except Exception as error:  # noqa: BLE001 - a crash is what is looked for
            yield f"raises {type(error).__name__}: {error}"
            return
        finally:
            self.tree.restore(damages)
        for path, result in results.items():
            for traceback in result.tracebacks:
                yield f"{path}: internal error: {traceback.splitlines()[-1]}"
        related = self.tree.related(damages, [whole, results])
        for path in self.tree.paths:
            # what is declared depends on all code
            is_apart = path in damages or path in self.tree.declaring
            if is_apart or path not in results:
                continue
            if _same(results[path], whole[path]):
                counts["other files the same"] += 1
            elif path in related:
                counts["related files that differ"] += 1
            else:
                yield f"{path} differs"


@click.command()
@click.argument("trees", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--runs", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(trees: Sequence[Path], runs: int, seed: int) -> None:
    """Damage files of TREES, which stay as they are, and see what becomes of the others."""
    signal.signal(signal.SIGALRM, _too_long)
    counts = Counter[str]()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        laid_out = [
            Tree(tree.resolve(), Path(folder, str(index)))
            for index, tree in enumerate(trees)
        ]
        try:
            for number in range(seed, seed + runs):
                tree = laid_out[number % len(trees)]
                signal.alarm(LIMIT)
                for finding in Trial(tree, number).findings(counts):
                    counts["FINDINGS"] += 1
                    click.echo(finding)
                signal.alarm(0)
                counts["RUNS"] += 1
        finally:
            for what, count in sorted(counts.items()):
                click.echo(f"{count:9,}  {what}")
            click.echo(f"{time.monotonic() - began:,.0f} s")


def _too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"takes longer than {LIMIT} s")


if __name__ == "__main__":
    main()
