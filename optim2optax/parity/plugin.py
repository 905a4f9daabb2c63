"""The runner of all parity cases: a pytest plugin. `optim2optax parity` is a front to it.

With `--parity`, each Python file that is collected gives an item for every optimizer that
`rewrite` would emit in it, and each `scenario.py` beside a `before.py` one for the scenario.
The cases of a session become one report.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optim2optax.parity import what_is_missing

if TYPE_CHECKING:
    from codemods.model import EmittedOptimizer, FileResult
    from optim2optax.parity.baseline import Baseline
    from optim2optax.parity.judge import Comparison
    from optim2optax.parity.result import Case, Report

REPORTS = ("json", "markdown", "html")
SCENARIO, BEFORE, AFTER = "scenario.py", "before.py", "after.py"
VARIANTS = "after_*.py"
NOTEBOOK = ".ipynb"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("parity", "parity of flax.optim and optax")
    group.addoption("--parity", action="store_true", help="collect optimizers and scenarios")
    group.addoption(
        "--parity-steps",
        type=int,
        default=120,
        metavar="N",
        help="steps of each optimizer (default 120)",
    )
    group.addoption(
        "--parity-seed", type=int, default=0, metavar="N", help="seed of parameters and gradients"
    )
    group.addoption(
        "--parity-before",
        metavar="REF",
        help="compare with this revision or folder, not with what rewrite emits",
    )
    group.addoption(
        "--parity-legacy-python",
        metavar="PATH",
        help="an interpreter that runs the old side of scenarios",
    )
    group.addoption(
        "--parity-save", metavar="FILE", help="keep what the old side of scenarios yields"
    )
    group.addoption(
        "--parity-against",
        metavar="FILE",
        help="compare scenarios with what was kept, not with old code",
    )
    group.addoption(
        "--parity-command", metavar="JSON", help="a training command as a list of words"
    )
    group.addoption(
        "--parity-timeout",
        type=float,
        metavar="SECONDS",
        help="how long a side of the command may take",
    )
    group.addoption(
        "--parity-link",
        action="append",
        default=[],
        metavar="PATH",
        help="what is linked, not copied",
    )
    group.addoption(
        "--parity-compare",
        action="append",
        default=[],
        metavar="FILE",
        help="what the command writes",
    )
    group.addoption(
        "--parity-lines",
        action="append",
        default=[],
        metavar="REGEX",
        help="what the command prints",
    )
    for name in REPORTS:
        group.addoption(f"--parity-{name}", metavar="PATH", help=f"write a report as {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Collect parity cases if that was asked for.

    Raises:
        pytest.UsageError: if something is missing that they need.
    """
    if config.getoption("--parity"):
        if reason := what_is_missing():
            raise pytest.UsageError(reason)
        config.pluginmanager.register(ParitySession(config), "parity-session")
        _share_executables(config)


def _share_executables(config: pytest.Config) -> None:
    """Let workers of `--jobs` share what they compile, in a folder that is removed with the run."""
    from optim2optax.parity.processes import TEMPORARY

    folder = Path(tempfile.gettempdir())
    # Only a worker process of pytest-xdist has a `workerinput`.
    if hasattr(config, "workerinput") and folder.name.startswith(TEMPORARY):
        from optim2optax.parity.compiling import share_executables

        share_executables(folder / "executables")


class ParityError(Exception):
    """A case that does not pass; its text is the whole failure."""


class ParitySession:
    """The state of one session: the collected optimizers, and the cases that ran."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.cases: list[Case] = []
        self.baselines: dict[str, Baseline] = {}

    @cached_property
    def emitted(self) -> dict[Path, tuple[EmittedOptimizer, ...]]:
        """The optimizers that `rewrite` would emit, by file.

        All files that are collected are one project. With `--parity-before`, the old tree is
        rewritten, and what it would become is replaced by what the new tree has.
        """
        by_file = self.rewritten
        if self.old_tree is None:
            return {path: result.optimizers for path, result in by_file.items()}
        from optim2optax.project import Patterns, find_files

        patterns = Patterns(str(self.config.rootpath), ())
        files = find_files([str(path) for path in self.paths], patterns)
        now = [Path(file.location) for file in files]
        # A command alone has no files, and then the imports below would be a waste of time.
        if not by_file and not now:
            return {}
        from optim2optax.parity.counterpart import in_new_tree, of_new_file, trees

        among = trees(by_file, self.old_tree, self.root)
        emitted: dict[Path, tuple[EmittedOptimizer, ...]] = {}
        for old, result in by_file.items():
            path = self.after(old)
            emitted[path] = in_new_tree(result, old, path, among)
        for path in now:
            if path not in emitted and path.suffix == ".py":
                emitted[path] = of_new_file(path, among)
        return emitted

    @property
    def paths(self) -> list[Path]:
        """The files and folders that are collected."""
        # An argument may be `train.py::12-adam`, which names one item of a file.
        return [Path(argument.partition("::")[0]).resolve() for argument in self.config.args]

    @cached_property
    def rewritten(self) -> dict[Path, FileResult]:
        """What `rewrite` would make of each collected file, or of its form in the old tree."""
        from optim2optax.project import Patterns, find_files

        before = map(self.before, self.paths)
        old = [str(path) for path in before if path.exists()]
        found = find_files(old, Patterns(str(self.config.rootpath), ()))
        if not found:
            return {}
        from codemods.model import Options
        from optim2optax.rewriting import rewrite_files

        results = rewrite_files(found, Options(), write=False)
        return {Path(file.location): result for file, result in zip(found, results, strict=True)}

    @cached_property
    def _rewritten_tree(self) -> Path:
        """A copy of the tree as `rewrite` would leave it."""
        from optim2optax.parity.trees import copy_tree

        folder = self._temporary_folder()
        copy_tree(self.root, folder)
        for path, result in self.rewritten.items():
            # A file outside of the repository is not in the copy.
            if result.changed and path.is_relative_to(self.root):
                (folder / path.relative_to(self.root)).write_bytes(result.after)
        return folder

    def _temporary_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="optim2optax-"))
        self.config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        return folder.resolve()

    @cached_property
    def root(self) -> Path:
        """The root of the repository, or the folder where the session was started."""
        from optim2optax.parity.trees import repository_root

        folder = Path(self.config.invocation_params.dir)
        return (repository_root(folder) or folder).resolve()

    @cached_property
    def old_tree(self) -> Path | None:
        """A copy of the old tree, if `--parity-before` names one.

        Raises:
            pytest.Collector.CollectError: if there is no such tree.
        """
        from optim2optax.parity.trees import TreeError, copy_before

        before = self.config.getoption("--parity-before")
        if before is None:
            return None
        folder = self._temporary_folder()
        try:
            copy_before(before, self.root, folder)
        except TreeError as error:
            raise pytest.Collector.CollectError(str(error)) from error
        return folder

    def before(self, path: Path) -> Path:
        """Where a path of the new tree was in the old one.

        It is the path itself where there is no old tree, or where the path is outside of it.
        """
        inside = path.resolve().is_relative_to(self.root)
        if self.old_tree is None or not inside:
            return path
        return self.old_tree / path.resolve().relative_to(self.root)

    def new(self, path: Path) -> Path:
        """The new form of a file.

        With an old tree it is the file as it is now, else that in a rewritten copy of the tree.
        """
        inside = path.resolve().is_relative_to(self.root)
        if self.old_tree is not None or not inside:
            return path
        return self._rewritten_tree / path.resolve().relative_to(self.root)

    def after(self, path: Path) -> Path:
        """Where a path of the old tree is in the new one."""
        return path if self.old_tree is None else self.root / path.relative_to(self.old_tree)

    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add optimizers of files that the new tree does not have, and the training command."""
        for path, emitted in self.emitted.items():
            # Such as a file that was removed, whose optimizers have no counterpart.
            if emitted and not path.exists():
                items.extend(optimizer_items(session, path, emitted))
        given = self.config.getoption("--parity-command")
        if given:
            words = json.loads(given)
            items.append(CommandItem.from_parent(session, name=" ".join(words), command=words))

    def pytest_report_collectionfinish(self) -> str:
        """The numbers of optimizers with and without a counterpart in the new tree."""
        if self.old_tree is None:
            return ""
        from optim2optax.parity.counterpart import paired_count

        return paired_count(list(chain.from_iterable(self.emitted.values())))

    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect a folder of legacy code without importing its package."""
        folder = path.resolve()
        for file, emitted in self.emitted.items():
            if emitted and folder in file.parents:
                # pytest itself would take a `pytest.Package`, which imports `__init__.py`.
                folder_alone: pytest.Collector = pytest.Dir.from_parent(parent, path=path)
                return folder_alone
        return None

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect a Python file if there is anything to compare in it."""
        if file_path.name == SCENARIO:
            return ScenarioFile.from_parent(parent, path=file_path)
        if self.emitted.get(file_path.resolve()) and not self.config.getoption("--parity-against"):
            return OptimizerFile.from_parent(parent, path=file_path)
        return None

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Keep pytest from importing a legacy file or scenario that is given by name as a test."""
        if module_path.name == SCENARIO or self.emitted.get(module_path.resolve()):
            return NoTests.from_parent(parent, path=module_path)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the case to the report, on which it travels from worker processes."""
        report = yield
        if isinstance(item, ParityItem) and call.when == "call" and item.case is not None:
            # pytest-xdist sends only plain values to the first process.
            vars(report)["parity_case"] = _packed(item.case)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the case of a report."""
        # Reports of setup and teardown have no case.
        packed = getattr(report, "parity_case", None)
        if packed is not None:
            self.cases.append(_unpacked(packed))

    def pytest_sessionfinish(self) -> None:
        """Write the reports and baselines.

        Workers do not, and of several processes only the first does.
        """
        if hasattr(self.config, "workerinput") or not self.cases or not is_first_process():
            return
        self._save_baselines()
        report = self.report()
        for name in REPORTS:
            path = self.config.getoption(f"--parity-{name}")
            if path:
                _write_report(report, name, path)

    def _save_baselines(self) -> None:
        path = self.config.getoption("--parity-save")
        if path and self.baselines:
            from optim2optax.parity.baseline import save_baselines

            try:
                save_baselines(Path(path), self.baselines)
            except OSError as error:
                pytest.exit(f"{path} cannot be written: {error.strerror}", returncode=2)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report as text."""
        if self.cases and is_first_process():
            from optim2optax.parity.reports import render_text

            terminalreporter.ensure_newline()
            terminalreporter.write(render_text(self.report(), color=terminalreporter.hasmarkup))

    def report(self) -> Report:
        """All cases that ran, by their levels, and then by their names."""
        from optim2optax.parity.environment import environment
        from optim2optax.parity.result import Report

        cases = sorted(self.cases, key=lambda case: (case.level, case.name))
        return Report(tuple(cases), environment(self.config.getoption("--parity-seed")))


class NoTests(pytest.File):
    """A file that is no test module."""

    def collect(self) -> list[pytest.Item]:
        """Collect nothing."""
        return []


class OptimizerFile(pytest.File):
    """A file of legacy code."""

    def collect(self) -> Iterator[OptimizerItem]:
        """An item for each optimizer."""
        session: Any = self.config.pluginmanager.get_plugin("parity-session")
        yield from optimizer_items(self, self.path, session.emitted[self.path.resolve()])


def optimizer_items(
    parent: pytest.Collector, path: Path, optimizers: Sequence[EmittedOptimizer]
) -> Iterator[OptimizerItem]:
    """An item for each optimizer of a file."""
    for emitted in optimizers:
        yield OptimizerItem.from_parent(
            parent, name=f"{emitted.line}-{emitted.name}", path=path, emitted=emitted
        )


class ScenarioFile(pytest.File):
    """A scenario beside its old and new code."""

    def collect(self) -> Iterator[ScenarioItem]:
        """An item for `after.py`, and one for each `after_*.py` beside it."""
        yield ScenarioItem.from_parent(self, name="scenario")
        for path in sorted(self.path.parent.glob(VARIANTS)):
            yield ScenarioItem.from_parent(self, name=path.stem, after=path)


class ParityItem(pytest.Item):
    """A case to run."""

    case: Case | None = None

    def runtest(self) -> None:
        """Run the case; only identical and equivalent ones pass."""
        case = self.run()
        self.case = case if case.reproduction else replace(case, reproduction=self.repetition())
        if not self.case.passes:
            raise ParityError(str(self.case.comparison or self.case.reason))

    def run(self) -> Case:
        """Run it, and give its result."""
        raise NotImplementedError

    def repetition(self) -> str:
        """A script that runs the case again, if its own run gives none."""
        return ""

    def repeated(self, *words: str) -> str:
        """A script that runs parity again, with options of this run and words of the case."""
        from optim2optax.parity.reproduction import repetition
        from optim2optax.parity.trees import commit_of

        options = _as_words(self._common_options())
        now = commit_of("HEAD", self._session.root)
        remarks = [f"{self.name}, in the folder {self.config.invocation_params.dir}"]
        if now:
            remarks.append(
                f"The new side was the tree around commit {now}, with what was not committed."
            )
        return repetition([*options, *words], remarks)

    def _common_options(self) -> dict[str, list[Any]]:
        """The options of this run that matter to every case, each with its value, or with None."""
        import jax

        from optim2optax.parity.trees import commit_of

        option = self.config.getoption
        before = option("--parity-before")
        # A branch may move on until the script is run, a commit does not.
        if before is not None and not Path(before).is_dir():
            before = commit_of(before, self._session.root) or before
        has_virtual_devices = jax.default_backend() == "cpu" and jax.device_count() > 1
        return {
            "--platform": [jax.default_backend()],
            "--devices": [jax.device_count() if has_virtual_devices else None],
            "--before": [before],
            "--legacy-python": [option("--parity-legacy-python")],
            "--against": [option("--parity-against")],
        }

    @property
    def _session(self) -> ParitySession:
        session: Any = self.config.pluginmanager.get_plugin("parity-session")
        found: ParitySession = session
        return found

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A difference needs no traceback."""
        if isinstance(excinfo.value, ParityError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case stands."""
        return self.path, None, self.name

    @property
    def shown(self) -> str:
        """The path of the file, from the folder where the session was started."""
        try:
            return str(self.path.relative_to(self.config.invocation_params.dir))
        except ValueError:
            return str(self.path)


class OptimizerItem(ParityItem):
    """An optimizer that is emitted."""

    def __init__(self, *, emitted: EmittedOptimizer, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.emitted = emitted

    def run(self) -> Case:
        """Replay the same gradients into both."""
        from optim2optax.parity.cases import optimizer_case

        steps = self.config.getoption("--parity-steps")
        seed = self.config.getoption("--parity-seed")
        name = f"{self.shown}:{self.emitted.line} {self.emitted.name}"
        return optimizer_case(name, self.emitted, steps, seed)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The line of the definition."""
        return self.path, self.emitted.line - 1, self.name


class ScenarioItem(ParityItem):
    """A scenario, and the new code that it drives if that is another than usual."""

    def __init__(self, *, after: Path | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.after = after

    def run(self) -> Case:
        """Drive both sides.

        They are `before.py` and `after.py` beside the scenario, or the module that it names, old
        and new. Notebooks may take the place of these two.
        """
        from optim2optax.parity.cases import as_modules, baseline_case, scenario_case
        from optim2optax.parity.result import Case
        from optim2optax.parity.scenario import baseline_of, module_of

        session: Any = self.config.pluginmanager.get_plugin("parity-session")
        name = str(Path(self.shown).parent)
        try:
            module = module_of(self.path)
        except (SyntaxError, ValueError) as error:
            return Case(name, "scenario", None, reason=f"{type(error).__name__}: {error}")
        if self.after is not None:
            name = f"{name} ({self.after.stem.removeprefix('after_')})"
        given = self.config.getoption("--parity-legacy-python")
        python = Path(given) if given else None
        before, after = self._sides(module, session)
        if against := self.config.getoption("--parity-against"):
            return baseline_case(name, Path(against), self.path, after)
        case = scenario_case(name, self.path, before, after, python)
        # The old side runs once more, as the comparison does not have its values.
        if self.config.getoption("--parity-save") and case.comparison is not None:
            with as_modules(before, before) as (old, _):
                session.baselines[name] = baseline_of(self.path, old, python)
        return case

    def repetition(self) -> str:
        """The scenario again; where it has several new sides, with this one."""
        chosen = [] if self.after is None else ["-k", self.name]
        return self.repeated(*chosen, self.shown)

    def _sides(self, module: str | None, session: Any) -> tuple[Path, Path]:
        """The files with the old code and the new.

        Where no new code is given, it is what `rewrite` makes of the old.
        """
        folder = self.path.parent
        if self.after is not None:
            return folder / BEFORE, self.after
        if module is not None:
            return session.before(folder / module), session.new(folder / module)
        before = folder / BEFORE
        after = folder / AFTER
        if before.with_suffix(NOTEBOOK).exists() and not before.exists():
            before, after = before.with_suffix(NOTEBOOK), after.with_suffix(NOTEBOOK)
        return before, after if after.exists() else session.new(before)


class CommandItem(ParityItem):
    """A training command."""

    def __init__(self, *, command: list[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.command = command

    def repetition(self) -> str:
        """The command again, with its own options."""
        option = self.config.getoption
        given = {
            "--timeout": [option("--parity-timeout")],
            "--link": option("--parity-link"),
            "--compare": option("--parity-compare"),
            "--compare-lines": option("--parity-lines"),
        }
        return self.repeated(*_as_words(given), "--", *self.command)

    def run(self) -> Case:
        """Run it on both trees."""
        from optim2optax.parity.cases import command_case
        from optim2optax.parity.left_behind import Wanted

        option = self.config.getoption
        folder = Path(self.config.invocation_params.dir)
        links = [Path(link) for link in option("--parity-link")]
        python = option("--parity-legacy-python")
        return command_case(
            self.name,
            self.command,
            option("--parity-before"),
            folder,
            option("--parity-timeout"),
            links,
            Path(python) if python else None,
            Wanted(option("--parity-compare"), option("--parity-lines")),
        )


def is_first_process() -> bool:
    """Whether this is process 0 among those of `jax.distributed`, or the only one."""
    import jax

    return jax.process_index() == 0


def _as_words(options: Mapping[str, Sequence[Any]]) -> list[str]:
    """Options as words of a command line: each is given once for each value that is not None."""
    words: list[str] = []
    for name, values in options.items():
        for value in values:
            if value is not None:
                words += [name, str(value)]
    return words


def _write_report(report: Report, name: str, path: str) -> None:
    """Write a report to a file, or end the run with exit code 2."""
    from optim2optax.project.replacing import replacing

    try:
        with replacing(Path(path)) as file:
            file.write(_rendered(report, name).encode())
    except OSError as error:
        pytest.exit(f"{path} cannot be written: {error.strerror}", returncode=2)


def _rendered(report: Report, name: str) -> str:
    from optim2optax.parity import reports

    render: Any = getattr(reports, f"render_{name}")
    text: str = render(report)
    return text


def _packed(case: Case) -> str:
    return json.dumps(asdict(case))


def _unpacked(text: str) -> Case:
    """The case that `_packed` made text of. JSON has lists where the records have tuples."""
    from optim2optax.parity.result import Case

    values = json.loads(text)
    comparison = values.pop("comparison")
    if comparison is not None:
        comparison = _unpacked_comparison(comparison)
    return Case(**values, comparison=comparison)


def _unpacked_comparison(values: dict[str, Any]) -> Comparison:
    from optim2optax.parity.judge import Comparison, Difference, LeafError, Verdict

    values["verdict"] = Verdict(values["verdict"])
    for leaf in values["leaves"]:
        leaf["shape"] = tuple(leaf["shape"])
    values["leaves"] = tuple(LeafError(**leaf) for leaf in values["leaves"])
    for name in ("error_by_step", "drift_by_step", "remarks"):
        values[name] = tuple(values[name])
    first = values.pop("first_difference")
    if first is not None:
        first["index"] = tuple(first["index"])
        first = Difference(**first)
    return Comparison(**values, first_difference=first)
