"""`optim2optax doctor`."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from packaging.version import Version

from codemods.model import Source
from codemods.vocabulary import PACKAGE
from optim2optax import doctor
from optim2optax.cli.output import EXCLUDE, TEXT_OR_JSON
from optim2optax.dependencies import declares
from optim2optax.doctor.dependents import dependents
from optim2optax.doctor.obstacles import (
    NEWEST,
    Obstacle,
    installed,
    obstacles,
    pinned,
)
from optim2optax.project import (
    Found,
    Patterns,
    UnreadableError,
    find_declaring,
    find_files,
    read_file,
)
from optim2optax.requirements import with_included
from optim2optax.templates import rendered

TEMPLATE = Path(doctor.__file__).with_name("report.txt.j2")

EXAMPLES = """\b
Examples:
  optim2optax doctor .
  optim2optax doctor --jax 0.6 src/
"""


@click.command(
    name="doctor",
    short_help="List what keeps a project from running today.",
    epilog=EXAMPLES,
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH]...")
@click.option(
    "--jax",
    type=Version,
    metavar="VERSION",
    help="Check against this version of JAX instead of the installed one.",
)
@click.option("--flax", type=Version, metavar="VERSION", help="The same for Flax.")
@EXCLUDE
@TEXT_OR_JSON
@click.pass_context
def command(
    context: click.Context,
    paths: Sequence[str],
    jax: Version | None,
    flax: Version | None,
    exclude: Sequence[str],
    output_format: str,
) -> None:
    """List what keeps a project from running on the JAX and Flax that are installed here.

    PATH is a file or a folder, by default the current one. The command finds removed names by
    reading the code; it runs and writes nothing. If a package is not installed, its newest version
    counts. Exits with 0 if nothing was found, else with 1.
    """
    paths = paths or (os.curdir,)
    excluded = Patterns(os.curdir, exclude)
    found = find_files(paths, excluded)
    versions = installed()
    if jax:
        versions["jax"] = jax
    if flax:
        versions["flax"] = flax
    unread: list[Obstacle] = []
    sources = _sources(found, unread)
    obstructing = [*obstacles(sources, versions), *dependents(sources)]
    files = with_included(find_declaring(paths, excluded, declares))
    declaring = _sources(files, unread)
    needs_legacy = any(one.what == PACKAGE for one in obstructing)
    is_old = bool(obstructing)
    obstructing += pinned(declaring, versions, is_old=is_old, needs_legacy=needs_legacy)
    obstructing += unread
    shown = {
        name: None if version is NEWEST else str(version)
        for name, version in versions.items()
    }
    if output_format == "json":
        described = {
            "version": 1,
            "versions": shown,
            "obstacles": [*map(asdict, obstructing)],
        }
        click.echo(json.dumps(described, indent=2))
    else:
        text = rendered(
            TEMPLATE,
            obstacles=obstructing,
            files=len(found),
            versions={name: text or "(newest)" for name, text in shown.items()},
            commands=Counter(obstacle.command for obstacle in obstructing),
            paths=shlex.join(paths),
        )
        click.echo(text, nl=False)
    context.exit(1 if obstructing else 0)


def _sources(found: Sequence[Found], unread: list[Obstacle]) -> list[Source]:
    """The contents of files; those that cannot be read are added to the obstacles."""
    sources = []
    for file in found:
        try:
            sources.append(Source(file.path, read_file(file.location)))
        except UnreadableError as error:
            remedy = "Make it readable, or leave it out."
            unread.append(Obstacle(str(error), "", (file.path,), remedy))
    return sources
