"""How long a tree takes and how much memory, beside what must be done at least: to parse the files that matter.

`python -m benchmarks.scale /trees/sympy /trees/django` measures each tree as it is, and once more with legacy programs planted in
five of its packages, imported from the most-imported module of each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

FIXTURES = Path(__file__).parents[1] / "fixtures"
PLANTED = ("mnist_momentum", "trainer_class", "gan", "traversal_two_rates", "custom_rules")
LIMIT = 600
"""Seconds after which a tree is given up."""

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


def texts_of(tree: Path) -> dict[str, str]:
    """The texts of a tree's Python files."""
    found = {}
    for path in sorted(tree.rglob("*.py")):
        try:
            found[path.relative_to(tree).as_posix()] = path.read_text("utf-8")
        except (UnicodeDecodeError, OSError):
            continue
    return found


def plant(tree: Path) -> None:
    """Put legacy programs into five packages, and let the most-imported module of each import and call one."""
    from codemods.relevance import import_graph

    texts = texts_of(tree)
    _, importers = import_graph(texts)
    modules = sorted(
        (path for path in texts if not path.endswith("__init__.py")), key=lambda path: -len(importers[path])
    )
    packages: set[str] = set()
    for module in modules:
        folder = module.rpartition("/")[0]
        if folder in packages or "from __future__" in texts[module]:
            continue
        name = PLANTED[len(packages)]
        packages.add(folder)
        (tree / folder / f"planted_{name}.py").write_text((FIXTURES / name / "before.py").read_text())
        dotted = folder.replace("/", ".")
        with (tree / module).open("a") as file:
            file.write(
                f"\n\ndef planted_here(*args):\n    from {dotted} import planted_{name} as planted\n    return planted\n"
            )
        if len(packages) == len(PLANTED):
            break


def parsing(tree: Path, paths: list[str]) -> float:
    """The seconds that `ast.parse` takes for some files, in a process of its own."""
    names = "".join(f"{tree / path}\n" for path in paths)
    return float(
        subprocess.run([sys.executable, "-c", PARSING], input=names, capture_output=True, text=True, check=True).stdout
    )


def measured(command: list[str]) -> tuple[float, float, int, str]:
    """Seconds, MB at the peak, exit status and output of a command."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd="/")
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.kill()
            raise
        out.seek(0)
        return (
            time.perf_counter() - began,
            usage.ru_maxrss / 1024,
            os.waitstatus_to_exitcode(status),
            out.read().decode(),
        )


def look(name: str, tree: Path) -> None:
    """Print a line on a tree."""
    from codemods.relevance import relevant

    texts = texts_of(tree)
    paths = relevant(texts)
    least = parsing(tree, paths)
    command = [
        "timeout",
        str(LIMIT),
        sys.executable,
        "-P",
        "-m",
        "optim2optax",
        "rewrite",
        "--check",
        "--output-format",
        "json",
        str(tree),
    ]
    seconds, memory, status, output = measured(command)
    try:
        summary = json.loads(output)["summary"]
        said = f"{summary['sites']:4} sites, {summary['rewritten']:4} rewritten, {summary['errors']} errors"
    except (ValueError, KeyError):
        said = f"exit {status}"
    bound = 6 * least + 1
    click.echo(
        f"{name:40} {len(texts):5} files {len(paths):5} relevant  ast.parse {least:6.2f} s  rewrite {seconds:7.2f} s"
        f" ({seconds / bound:5.2f} of the bound)  {memory:5.0f} MB  {said}"
    )


@click.command()
@click.argument("trees", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--planted/--as-they-are", default=None)
def main(trees: tuple[Path, ...], planted: bool | None) -> None:
    """Measure trees, with legacy programs planted in them and without."""
    for tree in trees:
        if planted is not True:
            look(tree.name, tree)
        if planted is not False:
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / tree.name
                shutil.copytree(tree, copy)
                plant(copy)
                look(f"{tree.name}, planted", copy)


if __name__ == "__main__":
    main()
