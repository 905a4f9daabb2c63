"""How long a tree takes and how much memory, beside what must be done at least: to parse the files that matter.

`python -m benchmarks.scale /trees/sympy /trees/django` measures each tree as it is, and once more with legacy programs planted in
five of its packages, imported from the most-imported module of each. In the same run, `ast.parse` of the files that matter, and
ruff and django-upgrade, where they are installed, go over the same tree; LibCST alone parses and prints what changes.
The bound is six times `ast.parse`, and a second.

With `--doublings` a tree is measured once, twice, … sixteen times beside itself as one program, planted in the first copy.
`--bad-cases` measures what is hard to analyse, in two sizes each, and `--clean 100000` as many small files that do not use JAX.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import click

from benchmarks.bad_cases import CASES, write
from benchmarks.measuring import editing, linting, parsing, rewriting, upgrading
from codemods.sources.relevance import Relevance, import_graph
from optim2optax.project import Patterns, find_files, read_file, root_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
PLANTED = (
    "mnist_momentum",
    "trainer_class",
    "gan",
    "traversal_two_rates",
    "custom_rules",
)
COPIES = (1, 2, 4, 8, 16)
CLEAN = '"""Module {n}."""\n\nimport os\n\n\ndef function_{n}(value):\n    return os.path.join(str(value), "{n}")\n'
IN_FOLDER = 20
"""So many clean files, and at most as many folders, are in a folder."""


def texts_of(tree: Path) -> tuple[Path, dict[str, str]]:
    """The project's root, and the texts of a tree's Python files by their paths from there.

    The root is as the tool finds it: of a package, the folder around it.
    """
    files = find_files([str(tree)], Patterns(str(tree), ()))
    contents = {file: read_file(file.location) for file in files}
    root = Path(root_of(contents).folder)
    texts = {}
    for file, content in contents.items():
        path = Path(file.location).relative_to(root).as_posix()
        try:
            if path.endswith(".py"):
                texts[path] = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
    return root, texts


def most_imported(texts: Mapping[str, str]) -> list[str]:
    """The modules that are no packages, those before others that more files import."""
    _, importers = import_graph(texts)
    modules = (path for path in texts if not path.endswith("__init__.py"))
    return sorted(modules, key=lambda path: -len(importers[path]))


def plant(tree: Path) -> None:
    """Put legacy programs into five packages, and let the most-imported module of each import and call one."""
    root, texts = texts_of(tree)
    packages: set[str] = set()
    for module in most_imported(texts):
        folder = module.rpartition("/")[0]
        if folder in packages or "from __future__" in texts[module]:
            continue
        name = PLANTED[len(packages)]
        packages.add(folder)
        (root / folder / f"planted_{name}.py").write_text(
            (FIXTURES / name / "before.py").read_text()
        )
        dotted = folder.replace("/", ".")
        with (root / module).open("a") as file:
            file.write(
                f"\n\ndef planted_here(*args):\n    from {dotted} import planted_{name} as planted\n    return planted\n"
            )
        if len(packages) == len(PLANTED):
            break


def lay_out(tree: Path, folder: Path, copies: int) -> None:
    """Put copies of a tree beside each other, the first with legacy programs, as one program.

    The most-imported module of each imports that of the next, and that of the last that of the first. One module imports all.
    """
    root, texts = texts_of(tree)
    module = (root / most_imported(texts)[0]).relative_to(tree).as_posix()
    dotted = module.removesuffix(".py").replace("/", ".")
    for number in range(copies):
        copy = folder / f"copy_{number}"
        shutil.copytree(tree, copy)
        (copy / "__init__.py").touch()
        if number == 0:
            plant(copy)
        with (copy / module).open("a") as file:
            file.write(
                f"\n\ndef next_copy():\n    import copy_{(number + 1) % copies}.{dotted} as linked\n    return linked\n"
            )
    imports = (
        f"import copy_{number}.{dotted} as linked_{number}\n"
        for number in range(copies)
    )
    (folder / "all_copies.py").write_text("".join(imports))


def look(name: str, tree: Path, limit: int, before: float | None = None) -> float:
    """Print a line on a tree, with the growth if it is told what half of it took; returns the seconds."""
    root, texts = texts_of(tree)
    paths = Relevance(texts).paths
    least = parsing(root, paths)
    others = f"ruff {shown(linting(tree, limit))} s  django-upgrade {shown(upgrading(tree, limit))} s"
    taken = rewriting(tree, limit)
    edited = 0.0
    try:
        report = json.loads(taken.output)
        summary = report["summary"]
        # modules that the tool adds are not there under `--check`
        changed = [
            file["path"]
            for file in report["files"]
            if file["changed"]
            and file["path"].endswith(".py")
            and Path("/", file["path"]).exists()
        ]
        edited = editing(Path("/"), changed)
        said = f"{summary['sites']:4} sites, {summary['rewritten']:4} rewritten, {summary['errors']} errors"
    except (ValueError, KeyError):
        said = f"exit {taken.status}"
    share = taken.seconds / (6 * least + 1)
    growth = f"  x {taken.seconds / before:.2f}" if before else ""
    click.echo(
        f"{name:40} {len(texts):5} files {len(paths):5} relevant  ast.parse {least:6.2f} s  {others}"
        f"  LibCST {edited:5.2f} s  rewrite {taken.seconds:7.2f} s ({share:5.2f} of the bound)  {taken.memory:5.0f} MB"
        f"  {said}{growth}"
    )
    return taken.seconds


def shown(seconds: float | None) -> str:
    """Seconds in a column, if there are any."""
    return f"{'-':>6}" if seconds is None else f"{seconds:6.2f}"


def look_at_tree(tree: Path, limit: int, planted: bool | None) -> None:
    """Print a line on a tree as it is, one on it with legacy programs planted in it, or both."""
    if planted is not True:
        look(tree.name, tree, limit)
    if planted is not False:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, tree.name)
            shutil.copytree(tree, copy)
            plant(copy)
            look(f"{tree.name}, planted", copy, limit)


def look_at_copies(tree: Path, limit: int) -> None:
    """Print a line on each number of copies of a tree."""
    before = None
    for copies in COPIES:
        with tempfile.TemporaryDirectory() as folder:
            lay_out(tree, Path(folder), copies)
            before = look(f"{tree.name}, {copies} times", Path(folder), limit, before)


def look_at_bad_case(name: str, limit: int) -> None:
    """Print a line on a bad case in each of its sizes, with an optimizer that goes through it and one that is apart."""
    size = CASES[name][1]
    for apart in (True, False):
        before = None
        for number in (size, 2 * size, 4 * size):
            with tempfile.TemporaryDirectory() as folder:
                write(name, number, Path(folder), apart=apart)
                title = f"{name}, {number}{'' if apart else ', optimizer within'}"
                before = look(title, Path(folder), limit, before)


def look_at_clean(number: int, limit: int) -> None:
    """Print what clean files take beyond what it takes to walk their folders, the best of three of each."""
    with tempfile.TemporaryDirectory() as folder:
        write_clean(Path(folder), number)
        walk = min(walking(Path(folder)) for _ in range(3))
        taken = min(
            (rewriting(Path(folder), limit) for _ in range(3)),
            key=lambda taken: taken.seconds,
        )
    each = 1e6 * (taken.seconds - walk) / number
    click.echo(
        f"{number} clean files  os.walk {walk:.2f} s  rewrite {taken.seconds:.2f} s  {taken.memory:.0f} MB"
        f"  {each:.1f} µs for each file beyond the walk"
    )


def write_clean(folder: Path, number: int) -> None:
    """Write small files into folders within folders."""
    for start in range(0, number, IN_FOLDER):
        place, count = folder, start // IN_FOLDER
        while count:
            count, step = divmod(count, IN_FOLDER)
            place /= f"package_{step}"
        place.mkdir(parents=True, exist_ok=True)
        for n in range(start, min(start + IN_FOLDER, number)):
            (place / f"module_{n}.py").write_text(CLEAN.format(n=n))


def walking(folder: Path) -> float:
    """The seconds that it takes to walk a folder."""
    began = time.perf_counter()
    for _ in os.walk(folder):
        pass
    return time.perf_counter() - began


@click.command()
@click.argument(
    "trees", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--planted/--as-they-are",
    default=None,
    help="Measure trees in one of the two ways only.",
)
@click.option(
    "--doublings",
    is_flag=True,
    help="Measure 1, 2, 4, 8 and 16 copies of each tree as one program.",
)
@click.option(
    "--bad-cases", is_flag=True, help="Measure programs that are hard to analyse."
)
@click.option(
    "--bad-case",
    multiple=True,
    type=click.Choice(list(CASES)),
    help="Measure one of these programs.",
)
@click.option("--clean", type=int, help="Measure so many small files without JAX.")
@click.option(
    "--limit",
    default=600,
    show_default=True,
    help="Seconds after which a command is given up.",
)
def main(
    trees: tuple[Path, ...],
    planted: bool | None,
    doublings: bool,
    bad_cases: bool,
    bad_case: tuple[str, ...],
    clean: int | None,
    limit: int,
) -> None:
    """Measure trees, with legacy programs planted in them and without."""
    for tree in trees:
        if doublings:
            look_at_copies(tree, limit)
        else:
            look_at_tree(tree, limit, planted)
    for name in CASES if bad_cases else bad_case:
        look_at_bad_case(name, limit)
    if clean:
        look_at_clean(clean, limit)


if __name__ == "__main__":
    main()
