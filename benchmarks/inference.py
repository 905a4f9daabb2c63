"""What receivers are, asked one by one: how many of a tree are known, how precisely, and at which cost.

`python -m benchmarks.inference /trees/scenic` asks `codemods.inference` about each `.target`, `.apply_gradient` and the like of a
tree, as no other object has them. `known` are those with an answer, `one` those whose optimizer can only have been made in one
place. The cost is in units of `ast.parse` of the files that are read, in the same process. With `--solved`, the analysis that
solves the whole program first answers as well, and the places at which the two give other creation sites are counted.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.scale import texts_of
from codemods.analysis.flax_optim import FlaxOptim
from codemods.analysis.queries import Queries
from codemods.inference.engine import Inference
from codemods.inference.objects import LegacyObject
from codemods.sources.modules import Project, Unit
from codemods.sources.relevance import Relevance, reachable
from codemods.sources.text import Codes, Text

ASKED = frozenset(("target", "apply_gradient", "optimizer_def", "param_states"))

Question = tuple[str, int, int]
"""The file, the line and the column of an attribute."""

Sites = frozenset[tuple[str, int]]
"""The files and lines in which what may be there was made."""

Answers = dict[Question, tuple[bool, Sites]]
"""Whether anything is known, and the creation sites."""


def units_of(tree: Path) -> tuple[list[Unit], dict[str, str]]:
    """The files that speak of optimizers with those around them, and the texts of all others."""
    _, texts = texts_of(tree)
    coded = {path: Text(code.encode(), "utf-8", b"") for path, code in texts.items()}
    relevance = Relevance(Codes(coded))
    start = {*relevance.speaking, *relevance.beside}
    wanted = reachable(reachable(start, relevance.importers), relevance.imports)
    units: list[Unit] = []
    for path in sorted(wanted):
        try:
            units.append(Unit(path, texts[path], ast.parse(texts[path])))
        except (SyntaxError, ValueError):
            continue
    known = {unit.path for unit in units}
    return units, {path: code for path, code in texts.items() if path not in known}


def questions(units: list[Unit]) -> Iterator[tuple[Question, ast.Attribute]]:
    for unit in units:
        for node in unit.nodes:
            if isinstance(node, ast.Attribute) and node.attr in ASKED:
                yield (unit.path, node.lineno, node.col_offset), node


def asked(units: list[Unit], others: dict[str, str]) -> Answers:
    """The answers on demand."""
    engine = Inference(Project(units, others), FlaxOptim())
    found: Answers = {}
    for question, node in questions(units):
        items = engine.solver.at(("expression", node.value, None))
        found[question] = bool(items), sites_among(items)
    return found


def solved(units: list[Unit], others: dict[str, str]) -> Answers:
    """The answers of the analysis that solves the whole program first."""
    queries = Queries(units, (), others)
    found: Answers = {}
    for question, node in questions(units):
        items = tuple(queries.objects(node.value))
        found[question] = bool(items), sites_among(items)
    return found


def sites_among(items: tuple[object, ...]) -> Sites:
    made = [item for item in items if isinstance(item, LegacyObject)]
    lines = ((obj.unit.path, getattr(obj.node, "lineno", 0)) for obj in made)
    return frozenset(lines)


@click.command()
@click.argument("trees", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--solved",
    "compares",
    is_flag=True,
    help="Compare with the analysis that solves all.",
)
def main(trees: tuple[Path, ...], compares: bool) -> None:
    """Ask about the receivers of each of some TREES."""
    for tree in trees:
        units, others = units_of(tree)
        began = time.process_time()
        for unit in units:
            ast.parse(unit.code)
        parsing = time.process_time() - began
        began = time.process_time()
        answers = asked(units, others)
        seconds = time.process_time() - began
        known = sum(is_known for is_known, _ in answers.values())
        sites = [found for _, found in answers.values() if found]
        single = sum(len(found) == 1 for found in sites)
        line = (
            f"{tree.name}: {len(units)} files, {len(answers)} questions, {known} known, {len(sites)} legacy, "
            f"{single} one, at most {max(map(len, sites), default=0)}; {seconds:.1f} s, "
            f"{seconds / max(parsing, 1e-9):.1f} x ast.parse"
        )
        if compares:
            began = time.process_time()
            theirs = solved(units, others)
            other = sum(theirs[one][1] != answers[one][1] for one in answers)
            line += f"; solved in {time.process_time() - began:.1f} s, other sites at {other}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
