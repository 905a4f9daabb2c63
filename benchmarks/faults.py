"""Faults planted in migrated programs, and programs as they are: does parity notice the ones, and accept the others?

`python -m benchmarks.faults --level update --results FILE` plants each fault of a level in a copy of its program, runs the
command `optim2optax parity` on it, and writes a line for each; what is in FILE already is not run again. `--right` runs the
programs as they are. `--table` shows what FILE holds.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import click

from benchmarks.planted import commands, right, scenarios, updates
from codemods import Options, Source, migrate
from optim2optax.parity.cases import command_case
from optim2optax.parity.command.runs import RunOptions

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
PROGRAMS = Path(__file__).with_name("programs")
RIGHT = "right"
OUTCOMES = {
    "different": "noticed",
    "could_not_run": "could not run",
    "nothing_proven": "nothing proven",
    "equivalent": "accepted",
    "identical": "accepted",
}
"""What a verdict says of a program, the most telling one of its cases first."""

NO_CASE = "no case"
"""A program in which there is nothing to be compared at this level."""

BATCH = 10


@dataclass(frozen=True)
class Trial:
    """A program to be judged: as it is, if `edits` is empty, or with a fault, an exchange of texts in its new form.

    A command has variables of the environment as well, and what is linked into both copies.
    """

    name: str
    level: str
    kind: str
    program: str
    edits: tuple[tuple[str, str], ...] = ()
    command: str = ""
    links: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Result:
    """What parity said of a trial."""

    name: str
    level: str
    kind: str
    program: str
    outcome: str
    reason: str


def trials(level: str, as_they_are: bool) -> list[Trial]:
    """All faults of a level, or all right programs."""
    if as_they_are:
        return list(_right(level))
    planted = {
        "update": updates.FAULTS,
        "scenario": scenarios.FAULTS,
        "command": commands.FAULTS,
    }[level]
    return [
        Trial(
            f"{level} {kind}: {program}: {put}",
            level,
            kind,
            program,
            ((find, put),),
            commands.COMMANDS.get(program, "") if level == "command" else "",
            variables=(("XLA_FLAGS", "--xla_force_host_platform_device_count=4"),)
            if level == "command"
            else (),
        )
        for kind, faults in planted.items()
        for program, find, put in faults
    ]


def _right(level: str) -> Iterator[Trial]:
    if level == "command":
        for name, given in right.COMMANDS.items():
            yield Trial(f"right {name}", level, RIGHT, *given)
        return
    for folder in sorted(FIXTURES.iterdir()):
        if (folder / "after.py").exists():
            yield Trial(f"right {level} {folder.name}", level, RIGHT, folder.name)


def changed(text: str, trial: Trial) -> str:
    """A program with the fault of a trial. Raises ValueError if there is no one place for it."""
    for find, put in trial.edits:
        if text.count(find) != 1:
            raise ValueError(
                f"{trial.name}: {find!r} is {text.count(find)} times in {trial.program}"
            )
        text = text.replace(find, put)
    return text


def run_fixtures(batch: Sequence[Trial], folder: Path) -> list[Result]:
    """Run trials on fixtures, each a repository of its own: what the code becomes, or by their scenarios."""
    is_scenario = batch[0].level == "scenario"
    for number, trial in enumerate(batch):
        case = FIXTURES / trial.program
        new = changed((case / "after.py").read_text(encoding="utf-8"), trial)
        old = (case / "before.py").read_text(encoding="utf-8")
        if is_scenario:
            script = (case / "scenario.py").read_text(encoding="utf-8")
            _write(
                folder / f"{number:03}",
                {"before.py": old, "after.py": new, "scenario.py": script},
            )
        else:
            for side, text in (("old", old), ("new", new)):
                _write(folder / side / f"{number:03}", {"train.py": text})
                (folder / side / f"{number:03}" / ".git").mkdir()
    start = folder if is_scenario else folder / "new"
    words = [
        "--devices",
        "8",
        *(["-k", "scenario"] if is_scenario else ["--before", "../old"]),
        ".",
    ]
    cases = _parity(words, start)
    return [
        _result(trial, [case for name, case in cases if f"{number:03}" in name])
        for number, trial in enumerate(batch)
    ]


def run_command(trial: Trial, folder: Path) -> Result:
    """Run a trial's command on its program, in a repository whose last commit is legacy code."""
    tree = folder / "project"
    given = _files(PROGRAMS / trial.program)
    by_hand = _files(PROGRAMS / trial.program / "after")
    for name, path in given.items():
        _write(tree, {name: path.read_text(encoding="utf-8")})
        (tree / name).chmod(path.stat().st_mode)
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for git in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "old"]):
        subprocess.run(["git", *identity, *git], cwd=tree, check=True)
    sources = [
        Source(name, path.read_bytes())
        for name, path in given.items()
        if name.endswith(".py")
    ]
    new = {result.path: result.after.decode() for result in migrate(sources, Options())}
    new |= {name: path.read_text(encoding="utf-8") for name, path in by_hand.items()}
    for name, text in new.items():
        _write(
            tree,
            {
                name: changed(text, trial)
                if name == commands.EDITED.get(trial.program, "train.py")
                else text
            },
        )
    with patch.dict(os.environ, trial.variables):
        case = command_case(
            trial.name,
            shlex.split(trial.command),
            "HEAD",
            tree,
            RunOptions(links=[tree / link for link in trial.links]),
        )
    first = case.comparison.first_difference if case.comparison else None
    told = {
        "verdict": case.outcome.value,
        "first_difference": str(first or ""),
        "reason": " ".join(case.remarks),
    }
    return _result(trial, [told])


def _files(folder: Path) -> dict[str, Path]:
    """The files of a program by their names; in its folder `after` is what is migrated by hand."""
    found = {
        path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()
    }
    return {
        str(name): path
        for name, path in found.items()
        if not {"after", "__pycache__"} & {*name.parts}
    }


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _parity(words: Sequence[str], folder: Path) -> list[tuple[str, dict[str, str]]]:
    """Run `optim2optax parity`, and give what its report says, by the names of the cases."""
    with tempfile.TemporaryDirectory() as reports:
        report = Path(reports, "report.json")
        start = [
            sys.executable,
            "-m",
            "optim2optax",
            "parity",
            "--platform",
            "cpu",
            "--json",
            str(report),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*start, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            return [
                (
                    "",
                    {
                        "verdict": "could_not_run",
                        "reason": done.stdout[-500:] + done.stderr[-500:],
                    },
                )
            ]
        return [
            (case["name"], case)
            for case in json.loads(report.read_text(encoding="utf-8"))["cases"]
        ]


def _result(trial: Trial, cases: Sequence[dict[str, str]]) -> Result:
    for verdict, outcome in OUTCOMES.items():
        for case in cases:
            if case["verdict"] == verdict:
                reason = case.get("reason") or ""
                told = (
                    ""
                    if outcome == "accepted"
                    else f"{case.get('first_difference') or ''} {reason}".strip()
                )
                return Result(
                    trial.name,
                    trial.level,
                    trial.kind,
                    trial.program,
                    outcome,
                    told or reason,
                )
    return Result(trial.name, trial.level, trial.kind, trial.program, NO_CASE, "")


def table(results: Sequence[Result]) -> str:
    """How often which outcome came of each level and kind."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for result in results:
        for kind in (result.kind, "all faults"):
            if kind == result.kind or result.kind != RIGHT:
                counts[result.level, kind][result.outcome] += 1
    names = [*dict.fromkeys(OUTCOMES.values()), NO_CASE]
    lines = [f"{'level':10}{'kind':36}" + "".join(f"{name:>16}" for name in names)]
    for (level, kind), found in sorted(counts.items()):
        lines.append(
            f"{level:10}{kind:36}"
            + "".join(f"{found[name] or '':>16}" for name in names)
        )
    return "\n".join(lines)


def _batches(wanted: Sequence[Trial]) -> Iterator[Sequence[Trial]]:
    size = 1 if wanted and wanted[0].level == "command" else BATCH
    for _, batch in groupby(enumerate(wanted), key=lambda pair: pair[0] // size):
        yield [trial for _, trial in batch]


@click.command()
@click.option(
    "--level",
    type=click.Choice(["update", "scenario", "command"]),
    default="update",
    show_default=True,
)
@click.option(
    "--right", "as_they_are", is_flag=True, help="Run the programs as they are."
)
@click.option(
    "--table",
    "table_alone",
    is_flag=True,
    help="Show what the results file holds, and run nothing.",
)
@click.option("-k", "part", default="", help="Only trials whose names hold this.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("faults.jsonl"),
    show_default=True,
)
def main(
    level: str, as_they_are: bool, table_alone: bool, part: str, results: Path
) -> None:
    """Run what is not in the results file yet, and say what parity makes of it."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known = [Result(**json.loads(line)) for line in lines]
    if table_alone:
        click.echo(table(known))
        return
    seen = {result.name for result in known}
    wanted = [
        trial
        for trial in trials(level, as_they_are)
        if trial.name not in seen and part in trial.name
    ]
    with results.open("a", encoding="utf-8") as file:
        for batch in _batches(wanted):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                found = (
                    [run_command(batch[0], place)]
                    if level == "command"
                    else run_fixtures(batch, place)
                )
            for result in found:
                file.write(json.dumps(asdict(result)) + "\n")
                click.echo(
                    f"{result.name} ({result.program}): {result.outcome} {result.reason[:300]}"
                )
            file.flush()


if __name__ == "__main__":
    main()
