"""Faults planted in migrated programs: does parity notice each, and does it accept the programs as they are?

`python -m benchmarks.faults --count 150` takes the fixtures' `after.py` in turn, plants one fault of a random kind in a copy of
each, and lets the fixture's scenario, or a command, compare it with `before.py`. What is accepted is shown, to be looked at: a
fault may be none, such as a constant that a later line overwrites. `--as-they-are` compares the programs without any.
"""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

FIXTURES = Path(__file__).parents[1] / "fixtures"
FACTOR = 1.001
SIBLINGS = {
    "adam": "adamax",
    "adamw": "adam",
    "sgd": "noisy_sgd",
    "lamb": "adam",
    "adabelief": "adam",
    "rmsprop": "adagrad",
    "scale_by_adam": "scale_by_belief",
    "clip_by_global_norm": "clip",
    "clip": "clip_by_global_norm",
}
"""Transformations of optax, each with one that takes its place as a fault."""

OPERATORS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.Pow: ast.Mult(),
}
COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.GtE(),
    ast.Gt: ast.LtE(),
    ast.LtE: ast.Gt(),
    ast.GtE: ast.Lt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
COUNTERS = ("count", "step", "steps", "number", "i")

Change = Callable[[], None]
"""Plants a fault in the tree in which it was found."""


def number(node: ast.AST) -> Iterator[Change]:
    """A number that is a thousandth off."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value:
        value = node.value
        yield lambda: setattr(node, "value", value * FACTOR)


def operator(node: ast.AST) -> Iterator[Change]:
    """Another operator of arithmetic."""
    if (
        isinstance(node, ast.BinOp)
        and type(node.op) in OPERATORS
        and not isinstance(node.left, ast.Constant | ast.Tuple)
    ):
        yield lambda: setattr(node, "op", OPERATORS[type(node.op)])


def comparison(node: ast.AST) -> Iterator[Change]:
    """A condition or predicate that is turned around."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield lambda: node.ops.__setitem__(0, COMPARISONS[type(node.ops[0])])


def keyword(node: ast.AST) -> Iterator[Change]:
    """An argument of a transformation that is forgotten."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("optax."):
        for index, word in enumerate(node.keywords):
            if word.arg not in ("mask", "learning_rate", "static_args"):
                yield lambda index=index: node.keywords.__delitem__(index)  # type: ignore[misc]


def link(node: ast.AST) -> Iterator[Change]:
    """A link of a chain that is missing, or is behind the next."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "optax.chain" and len(node.args) > 1:
        yield lambda: node.args.__delitem__(0)
        yield lambda: node.args.insert(0, node.args.pop(1))


def sibling(node: ast.AST) -> Iterator[Change]:
    """Another transformation."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "optax":
        name = node.attr
        if name in SIBLINGS:
            yield lambda: setattr(node, "attr", SIBLINGS[name])


def reduction(node: ast.AST) -> Iterator[Change]:
    """A sum in the place of a mean, or a mean in the place of a sum."""
    if isinstance(node, ast.Attribute) and node.attr in ("mean", "sum", "pmean", "psum"):
        other = {"mean": "sum", "sum": "mean", "pmean": "psum", "psum": "pmean"}[node.attr]
        yield lambda: setattr(node, "attr", other)


def counter(node: ast.AST) -> Iterator[Change]:
    """A counter that is one too high."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.Name) and value.id in COUNTERS and isinstance(value.ctx, ast.Load):
            later = ast.BinOp(value, ast.Add(), ast.Constant(1))
            yield lambda field=field, later=later: setattr(node, field, later)  # type: ignore[misc]


def step(node: ast.AST) -> Iterator[Change]:
    """A step that is not taken, or an update that is not applied."""
    for field, value in ast.iter_fields(node):
        match value:
            case ast.Call(func=ast.Attribute(value=owner, attr="apply_gradients")):
                yield lambda field=field, owner=owner: setattr(node, field, owner)  # type: ignore[misc]
            case ast.Call(func=ast.Attribute(attr="apply_updates"), args=[params, _]):
                yield lambda field=field, params=params: setattr(node, field, params)  # type: ignore[misc]


KINDS = (number, operator, comparison, keyword, link, sibling, reduction, counter, step)


def faults(code: str) -> list[tuple[str, str]]:
    """Every fault that can be planted in a program: its kind, and the program with it."""
    found = []
    for kind in KINDS:
        count = sum(1 for node in _nodes(ast.parse(code)) for _ in kind(node))
        for index in range(count):
            tree = ast.parse(code)
            [change for node in _nodes(tree) for change in kind(node)][index]()
            found.append((kind.__name__, ast.unparse(ast.fix_missing_locations(tree)) + "\n"))
    return found


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of what is run, without what only makes data, such as `main`."""
    for node in tree.body:
        if not (isinstance(node, ast.FunctionDef) and node.name in ("main", "batches", "data")):
            yield from ast.walk(node)


def chosen(count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Faults of the fixtures in turn: the fixture, the kind of the fault, and the program with it."""
    rng = random.Random(seed)
    fixtures = sorted(path.parent for path in FIXTURES.glob("*/scenario.py") if (path.parent / "after.py").exists())
    remaining = {fixture.name: faults((fixture / "after.py").read_text(encoding="utf-8")) for fixture in fixtures}
    while count and any(remaining.values()):
        for name, left in remaining.items():
            if left and count:
                kind = rng.choice(sorted({kind for kind, _ in left}))
                fault = rng.choice([fault for fault in left if fault[0] == kind])
                left.remove(fault)
                count -= 1
                yield name, *fault


def verdict(fixture: str, code: str) -> tuple[str, str]:
    """What parity says of a fixture with another `after.py`: its outcome, and the reason or the first difference."""
    with tempfile.TemporaryDirectory() as folder:
        case, report = Path(folder, fixture), Path(folder, "report.json")
        case.mkdir()
        for name in ("before.py", "scenario.py"):
            (case / name).write_bytes((FIXTURES / fixture / name).read_bytes())
        (case / "after.py").write_text(code, encoding="utf-8")
        words = [sys.executable, "-m", "optim2optax", "parity", "--platform", "cpu", "--devices", "8"]
        subprocess.run([*words, "-k", "scenario", "--json", str(report), str(case)], capture_output=True, check=False)
        if not report.exists():
            return "no report", ""
        cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
        found = next((one for one in cases if one["level"] == "scenario"), None)
        return ("no case", "") if found is None else (found["verdict"], found["reason"])


@click.command()
@click.option("--count", default=150, show_default=True, help="How many faults.")
@click.option("--seed", default=0, show_default=True)
@click.option("--jobs", default=2, show_default=True)
@click.option("--as-they-are", is_flag=True, help="Compare the programs without a fault.")
def main(count: int, seed: int, jobs: int, as_they_are: bool) -> None:
    """Plant faults, and count by kind what parity says."""
    cases = list(chosen(count, seed))
    if as_they_are:
        names = dict.fromkeys(name for name, _, _ in cases)
        cases = [(name, "none", (FIXTURES / name / "after.py").read_text(encoding="utf-8")) for name in names]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda case: verdict(case[0], case[2]), cases)
        for (name, kind, code), (outcome, reason) in zip(cases, outcomes, strict=True):
            counts[kind][outcome] += 1
            if kind != "none" and outcome != "different":
                click.echo(f"{name}: {kind}: {outcome} {reason}\n{_changed(name, code)}")
            elif kind == "none" and outcome not in ("identical", "equivalent"):
                click.echo(f"{name}: {outcome} {reason}")
    for kind, found in sorted(counts.items()):
        click.echo(f"{kind:12} " + "  ".join(f"{outcome} {number}" for outcome, number in sorted(found.items())))


def _changed(fixture: str, code: str) -> str:
    """The lines of a program that are not those of the fixture."""
    before = ast.unparse(ast.parse((FIXTURES / fixture / "after.py").read_text(encoding="utf-8"))).split("\n")
    lines = [line for line in code.rstrip("\n").split("\n") if line not in before]
    return "\n".join(f"    {line.strip()}" for line in lines[:3])


if __name__ == "__main__":
    main()
