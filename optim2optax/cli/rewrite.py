"""`optim2optax rewrite`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from codemods.model import EmittedOptimizer, FileResult, Form, Style
from codemods.sources.parsing import uncollected
from optim2optax.cli import StoppedError
from optim2optax.cli.codes import complete_codes
from optim2optax.cli.output import EXCLUDE, print_report, progress_line
from optim2optax.cli.settings import Settings, resolve_settings
from optim2optax.cli.verbose import looked_at
from optim2optax.dependencies import declares
from optim2optax.legacy_wheel import LegacyWheelError
from optim2optax.project import (
    EXCLUDED,
    Found,
    UncommittedError,
    find_context,
    find_declaring,
    find_files,
    repository_finder,
    shown,
)
from optim2optax.reporting import FORMATS, Report
from optim2optax.rewriting import (
    Context,
    Prove,
    rewrite_files,
)
from optim2optax.wording import counted
from optim2optax.workers import WorkerError

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case

STDIN = "-"
EXAMPLES = """\b
Examples:
  optim2optax rewrite --diff src/ > optax.patch
  optim2optax rewrite --check --output-format github .
  optim2optax rewrite --ignore FO4 --exclude 'legacy/' src/
  optim2optax rewrite --stdin-filename train.py - < train.py
"""


@click.command(
    name="rewrite",
    short_help="Rewrite flax.optim code to optax, in place.",
    epilog=EXAMPLES,
)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="PATH...",
)
@click.option("--diff", is_flag=True, help="Print a unified diff and write nothing.")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit with 1 if something would change.",
)
@click.option(
    "--allow-dirty",
    is_flag=True,
    help="Also overwrite files with changes that are neither committed nor staged.",
)
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
    default="alias",
    show_default=True,
    help="Aliases, or explicit chains.",
)
@click.option(
    "--style",
    type=click.Choice(get_args(Style)),
    default="train-state",
    show_default=True,
    help="Replace an optimizer by a train state, or by separate variables where possible.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="CODES",
    shell_complete=complete_codes,
    help="Apply only these rules: codes or prefixes, separated by commas.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODES",
    shell_complete=complete_codes,
    help="Do not apply these rules.",
)
@click.option(
    "--partial/--no-partial",
    help="Rewrite what is possible, even within one optimizer, and mark the rest with a TODO.",
)
@click.option(
    "--with-related",
    is_flag=True,
    help="Also write other files of the project that use the same optimizers.",
)
@click.option(
    "--unsafe/--no-unsafe",
    help="Also rewrite what is only likely to be a legacy optimizer.",
)
@click.option(
    "--modernize/--no-modernize",
    help="Also replace other names that JAX, Flax and NumPy removed, such as jax.tree_map.",
)
@click.option(
    "--rename/--no-rename",
    help="Rename variables called optimizer that hold a train state to `state`.",
)
@click.option(
    "--vendor/--no-vendor",
    help="Copy flax.optim or flax.nn into the project for code that needs it, and import the copy.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Prove each optimizer first, and rewrite only those that are proven.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Write an HTML page to review the changes and what is left.",
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Write a text for a pull request: what changed, what stays, what is proven.",
)
@EXCLUDE
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the report.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Also print every line of what is left, and which files were read or skipped and why.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes; by default one per core.",
)
@click.option(
    "--stdin-filename",
    metavar="PATH",
    help="The file name of the code on standard input.",
)
@click.pass_context
@uncollected()
def command(
    context: click.Context,
    /,
    paths: Sequence[str],
    stdin_filename: str | None,
    verify: bool,
    verbose: bool,
    html: Path | None,
    markdown: Path | None,
    **_: object,
) -> None:
    """Rewrite flax.optim code to optax, in place.

    PATH is a file, a directory (searched for .py and .ipynb files, respecting .gitignore), or - for
    standard input to standard output. The rest of the project, up to the nearest .git or
    pyproject.toml, is read but not written, because an optimizer built in one file is often stepped
    in another, and is rewritten as a whole or not at all. If other files use an optimizer, the
    report says which. Each of several repositories is its own project.

    An object is rewritten only if the code shows that it is an optimizer: it comes from flax.optim
    through code that is read, is annotated, or is used as only an optimizer can be. If an optimizer
    goes to code out of view, the report names the line.

    What cannot be migrated stays, with a reason. With --vendor, it still runs on today's Flax: a
    copy of flax.optim is put into the project, and the remaining imports use the copy. So do models
    that are written for flax.nn. Later runs keep a copy as long as anything needs it.

    A comment "# optim2optax: ignore[FO202]" leaves its line alone. You can also set options in the
    table [tool.optim2optax] of pyproject.toml.
    """
    from_stdin = STDIN in paths
    # what is on standard input has the configuration of the file whose name it has
    named = [stdin_filename or os.curdir] if from_stdin else paths
    settings = resolve_settings(context, named)
    _check_usage(context.params)
    for name, path in (("html", html), ("markdown", markdown)):
        if path is not None and not path.absolute().parent.is_dir():
            raise click.UsageError(f"--{name}: there is no folder {path.parent}")
    if html is not None:
        # the page shows the ways of optimizers
        settings = replace(settings, options=replace(settings.options, trace=True))
    proofs: dict[EmittedOptimizer, Case] = {}
    prove = _prover(settings.jobs, proofs) if verify else None
    if from_stdin:
        results = [_rewrite_stdin(stdin_filename, settings)]
        for traceback in results[0].tracebacks if verbose else ():
            click.echo(traceback, err=True)
    else:
        results = _rewrite_paths(paths, settings, prove, verbose=verbose)
    report = Report(
        results,
        preview=settings.preview,
        diff=settings.diff,
        verbose=verbose,
        repositories={} if from_stdin else _repositories(results),
    )
    if html is not None:
        from optim2optax.reporting.html import render_html

        _write(html, render_html(report, proofs))
    if markdown is not None:
        from optim2optax.reporting.pull_request import render_pull_request

        _write(markdown, render_pull_request(report, proofs))
    print_report(
        report,
        settings.output_format,
        code_on_stdout=from_stdin and not settings.preview,
    )
    # as old as can be: else all of it would be searched for garbage now, which takes seconds
    gc.freeze()
    gc.unfreeze()
    context.exit(report.exit_code)


def _check_usage(given: Mapping[str, Any]) -> None:
    """Raise click.UsageError for options that do not go together."""
    from_stdin = STDIN in given["paths"]
    if from_stdin and len(given["paths"]) > 1:
        raise click.UsageError("standard input (-) cannot be combined with other paths")
    for option in ("verify", "vendor", "with_related"):
        if from_stdin and given[option]:
            name = option.replace("_", "-")
            raise click.UsageError(f"--{name} needs files, not standard input")


def _rewrite_paths(
    paths: Sequence[str], settings: Settings, prove: Prove | None, *, verbose: bool
) -> list[FileResult]:
    """Find files and rewrite them, and tell of that on standard error."""
    left_out: dict[str, str] = {}
    try:
        with progress_line() as progress:
            found = find_files(paths, settings.exclude, left_out)
            results = rewrite_files(
                found,
                settings.options,
                write=not settings.preview,
                allow_dirty=settings.allow_dirty,
                jobs=settings.jobs,
                progress=progress,
                prove=prove,
                vendor=settings.vendor,
                declaring=lambda: find_declaring(paths, settings.exclude, declares),
                context=_context(paths, left_out),
                with_related=settings.with_related,
                exclude=settings.exclude,
            )
    except WorkerError as error:
        raise StoppedError(f"{error}. Nothing was written.") from error
    except LegacyWheelError as error:
        raise click.UsageError(str(error)) from error
    except UncommittedError as error:
        raise StoppedError(
            "Nothing was written, as these files would change and have changes that are not in "
            "git:"
            + "".join(f"\n  {path}" for path in error.paths)
            + "\nCommit or stage them first, so that you can see and undo what this tool does, "
            "or give --allow-dirty."
        ) from error
    named = {file.path for file in found}
    for line in looked_at(results, named, left_out) if verbose else ():
        click.echo(line, err=True)
    return results


def _context(paths: Sequence[str], left_out: Mapping[str, str]) -> Context:
    """What finds the rest of the projects of files, of which some paths were named.

    What --exclude leaves out is a part of them: it is read, and not written.
    """
    has_excluded = EXCLUDED in left_out.values()
    walked = [path for path in paths if os.path.isdir(path) and not has_excluded]
    return lambda files: find_context(files, walked)


def _repositories(results: Sequence[FileResult]) -> dict[str, list[FileResult]]:
    """The results by the repository of each file, as people call it."""
    around = repository_finder()
    repository = cache(lambda folder: around(os.path.abspath(folder)))
    repositories: dict[str, list[FileResult]] = {}
    for result in results:
        found = repository(result.path.rpartition("/")[0])
        repositories.setdefault(found, []).append(result)
    return {
        shown(found) if found else "(no repository)": own
        for found, own in repositories.items()
    }


def _write(path: Path, text: str) -> None:
    from optim2optax.project.replacing import replacing

    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise StoppedError(f"{path} cannot be written: {error.strerror}") from error


def _prover(jobs: int, proofs: dict[EmittedOptimizer, Case]) -> Prove:
    """What proves optimizers, by the extra `parity`, and says that it does.

    `proofs` gets the case of each.
    """
    from optim2optax.cli.parity import require_extra

    require_extra()

    def prove(optimizers: Sequence[EmittedOptimizer]) -> Sequence[bool]:
        from optim2optax.parity import cases

        # several projects may have an equal one
        new = [optimizer for optimizer in optimizers if optimizer not in proofs]
        if new:
            click.echo(f"Proving {counted(len(new), 'optimizer')} …", err=True)
            proofs.update(zip(new, cases.prove(new, jobs), strict=True))
        return [proofs[optimizer].passes for optimizer in optimizers]

    return prove


def _rewrite_stdin(filename: str | None, settings: Settings) -> FileResult:
    content = sys.stdin.buffer.read()
    name = filename or "<stdin>"
    location = os.path.realpath(name)
    file = Found(name, location, os.path.dirname(location))
    if filename and settings.exclude.verdict(os.path.abspath(filename)):
        # an editor sends each file that it saves, those of --exclude as well
        result = FileResult(name, content, content)
    else:
        result, *_ = rewrite_files(
            [file],
            settings.options,
            write=False,
            context=_context((), {}) if filename else tuple,
            read={file: content},
        )
    if not settings.preview:
        click.echo(result.after, nl=False)
    return result
