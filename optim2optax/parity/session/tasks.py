"""The cases of a session that are still to run: optimizers, scenarios, and a training command."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

import click
import jax

from optim2optax.parity.cases import command_case, optimizer_case, scenario_case
from optim2optax.parity.reports.result import Case
from optim2optax.parity.running.trees import commit_of
from optim2optax.parity.scenario.driving import module_of
from optim2optax.parity.scenario.scenario import baseline_of
from optim2optax.parity.scenario.tape import Tape
from optim2optax.parity.session.project import SCENARIO, Project, Request

Selects: TypeAlias = Callable[[str], bool]
"""Whether a case is to run, by its name and its level."""

BEFORE, AFTER = "before.py", "after.py"
VARIANTS = "after_*.py"
NOTEBOOK = ".ipynb"
RUN = re.compile(r"^def run\(", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """A case to run; `words` ask for it alone on the command line.

    `compare` gives its result, and `baseline` what the old side of a scenario yields, in a further
    run.
    """

    name: str
    path: Path
    words: Sequence[str]
    request: Request
    compare: Callable[[], Case]
    baseline: Callable[[], Tape] | None = None

    def run(self) -> Case:
        """Run it. What the user's code prints is not shown, and what it raises is the result."""
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            case = self.compare()
        return replace(case, reproduction=self.repeated)

    @property
    def repeated(self) -> str:
        """The command that runs it again, with the old side as it is now."""
        asked = self.request
        before = asked.before
        # A branch may move on, a commit does not.
        if before is not None and not Path(before).is_dir():
            before = commit_of(before, asked.folder) or before
        is_virtual = jax.default_backend() == "cpu" and jax.device_count() > 1
        options: dict[str, Any] = {
            "platform": jax.default_backend(),
            "devices": jax.device_count() if is_virtual else None,
            "steps": asked.steps,
            "seed": asked.seed,
            "before": before,
            "legacy-python": asked.options.legacy_python,
            "against": asked.against,
        }
        given = [
            f"--{name}={value}" for name, value in options.items() if value is not None
        ]
        return shlex.join(["optim2optax", "parity", *given, *self.words])


def tasks(project: Project, selects: Selects) -> Iterator[Task]:
    """The cases of a project, the training command last."""
    asked = project.request
    # A baseline has what the old side of scenarios yielded, and no optimizers.
    emitted = {} if asked.against else project.emitted
    for path, optimizers in emitted.items():
        shown = project.shown(path)
        for one in optimizers:
            place = f"{shown}:{one.line}"
            words = " and ".join([*WORD.findall(place), one.name])
            chosen = ("-k", words, shown)
            name = f"{place} {one.name}"
            if selects(f"{name} optimizer"):
                compare = partial(optimizer_case, name, one, asked.steps, asked.seed)
                yield Task(name, path, chosen, asked, compare)
    for path in project.files:
        if is_scenario(path):
            yield from _of_scenario(path, project, selects)
    if asked.command:
        name = " ".join(asked.command)
        if selects(f"{name} command"):
            assert asked.before is not None
            sides = asked.command, asked.before, asked.folder
            compare = partial(command_case, name, *sides, asked.options)
            yield Task(name, asked.folder, _words_of_command(asked), asked, compare)


def selecting(expression: str | None) -> Selects:
    """Which cases an expression selects: words with `and`, `or`, `not` and parentheses.

    Raises:
        click.UsageError: if it is no such expression.
    """
    if not expression:
        return lambda _: True

    def test(word: re.Match[str]) -> str:
        is_operator = word[0] in ("and", "or", "not")
        return word[0] if is_operator else f"{word[0].lower()!r} in text"

    # Only texts, operators and parentheses are left.
    pattern = WORD.sub(test, expression)
    try:
        nodes = ast.walk(ast.parse(pattern, mode="eval"))
        # Adam (Momentum)
        if any(isinstance(node, ast.Call) for node in nodes):
            raise SyntaxError("invalid syntax")
    except SyntaxError as error:
        raise click.UsageError(f"-k {shlex.quote(expression)}: {error.msg}") from error
    return lambda text: bool(eval(pattern, {"text": text.lower()}))


WORD = re.compile(r"[^\s()]+")


def is_scenario(path: Path) -> bool:
    """Whether a file drives old code and new, and is no module of the program itself."""
    if path.name != SCENARIO:
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return RUN.search(text) is not None or any(path.parent.glob("before.*"))


def _of_scenario(path: Path, project: Project, selects: Selects) -> Iterator[Task]:
    """A scenario with `after.py`, and with each `after_*.py` beside it."""
    shown = project.shown(path)
    folder = str(Path(shown).parent)
    if selects(f"{folder} scenario"):
        yield _scenario(folder, path, (shown,), project, None)
    for after in sorted(path.parent.glob(VARIANTS)):
        variant = after.stem.removeprefix("after_")
        name = f"{folder} ({variant})"
        if selects(f"{name} scenario"):
            words = ("-k", variant, shown)
            yield _scenario(name, path, words, project, after)


def _scenario(
    name: str, path: Path, words: Sequence[str], project: Project, after: Path | None
) -> Task:
    """A scenario with the files of its old code and its new.

    They are `before.py` and `after.py` beside the scenario, or the module that it names, old and
    new. Notebooks may take the place of these two. Where no new code is given, it is what `rewrite`
    makes of the old.
    """
    asked = project.request
    legacy_python = asked.options.legacy_python
    old, new = path.parent / BEFORE, path.parent / AFTER
    try:
        module = module_of(path)
        if after is not None:
            new = after
        # module = "../train.py"
        elif module is not None:
            place = path.parent / module
            old, new = project.before(place), project.after(place)
        else:
            if old.with_suffix(NOTEBOOK).exists() and not old.exists():
                old, new = old.with_suffix(NOTEBOOK), new.with_suffix(NOTEBOOK)
            new = new if new.exists() else project.after(old)
    except (SyntaxError, ValueError) as raised:
        reason = f"{type(raised).__name__}: {raised}"
        compare = partial(Case, name, "scenario", None, reason=reason)
        return Task(name, path, words, asked, compare)
    compare = partial(scenario_case, name, path, old, new, legacy_python, asked.against)
    baseline = partial(baseline_of, path, old, legacy_python)
    return Task(name, path, words, asked, compare, baseline)


def _words_of_command(asked: Request) -> list[str]:
    """The words that ask for the training command, with its own options."""
    options = asked.options
    words = [f"--timeout={options.timeout}"] if options.timeout is not None else []
    words += [f"--link={link}" for link in options.links]
    words += [f"--compare={file}" for file in options.files]
    words += [f"--compare-lines={line}" for line in options.lines]
    return [*words, "--", *asked.command]
