"""The settings of a run: the command line, over pyproject.toml, over the defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from codemods.model import Options
from codemods.vocabulary import words
from optim2optax.configuration import ConfigurationError, find_configuration
from optim2optax.nearest import did_you_mean
from optim2optax.project import PatternError, Patterns, shown


@dataclass(frozen=True)
class Settings:
    """Everything that determines a run of `rewrite`, except its paths."""

    options: Options
    exclude: Patterns
    output_format: str
    jobs: int
    check: bool
    diff: bool
    allow_dirty: bool
    with_related: bool
    vendor: bool

    @property
    def preview(self) -> bool:
        """Whether no file is written."""
        return self.check or self.diff


CONFIGURABLE = words(
    "select ignore exclude form style partial unsafe rename modernize vendor jobs output-format"
)
"""The options that a pyproject.toml may set."""

ASKED = ("form", "style", "partial", "unsafe", "rename", "modernize")
"""The options that say how a site is rewritten, under the same name in `Options`."""

RUN = ("output_format", "check", "diff", "allow_dirty", "with_related", "vendor")
"""The other options of a run, under the same name in `Settings`."""


def resolve_settings(context: click.Context, paths: Sequence[str]) -> Settings:
    """Settings for some paths, with the nearest configuration. Raises click.UsageError."""
    folders = [_folder(os.path.abspath(path)) for path in paths]
    try:
        path, table = find_configuration(os.path.commonpath(folders))
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from error
    values = dict(context.params)
    origins = {name: f"--{name}" for name in values}
    base = os.getcwd()
    for key, value in table.items():
        origin = f"{shown(path)}: tool.optim2optax.{key}"
        name = key.replace("-", "_")
        configured = _converted(context, key, value, origin)
        # an option on the command line overrides the configuration
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            values[name], origins[name] = configured, origin
            if name == "exclude":
                # patterns in pyproject.toml are relative to its folder
                base = os.path.dirname(path)
    try:
        exclude = Patterns(base, values["exclude"])
    except PatternError as error:
        raise click.UsageError(f"{origins['exclude']}: {error}") from error
    asked = {name: values[name] for name in ASKED}
    for name in ("select", "ignore"):
        asked[name] = _codes(values[name], origins[name])
    run = {name: values[name] for name in RUN}
    run["jobs"] = values["jobs"] or os.cpu_count() or 1
    return Settings(Options(**asked), exclude, **run)


def _converted(context: click.Context, key: str, value: object, origin: str) -> Any:
    """The value of an option in a configuration, checked as on the command line."""
    if key not in CONFIGURABLE:
        nearest = did_you_mean(key.replace("_", "-"), CONFIGURABLE, 0.6)
        hint = nearest or f"; there are {', '.join(CONFIGURABLE)}"
        raise click.UsageError(f"{origin}: unknown key{hint}")
    name = key.replace("-", "_")
    option = next(one for one in context.command.params if one.name == name)
    assert isinstance(option, click.Option)
    kind = isinstance(value, list), isinstance(value, bool)
    if kind != (option.multiple, option.is_flag):
        expected = "a text or a number"
        if option.multiple or option.is_flag:
            expected = "a list" if option.multiple else "true or false"
        raise click.UsageError(f"{origin}: must be {expected}, not {value!r}")
    try:
        return option.type_cast_value(context, value)
    except click.BadParameter as error:
        raise click.UsageError(f"{origin}: {error.message}") from error


def _codes(values: Sequence[str], origin: str) -> tuple[str, ...]:
    """Codes of rules as people give them: `FO1,FO202`, in any case, prefixes allowed."""
    words = ",".join(values).split(",")
    codes = tuple(word.strip().upper() for word in words if word.strip())
    for code in codes:
        # most runs name no codes, and need not import all rules
        from codemods.rules import catalogue

        if not any(known.startswith(code) for known in catalogue()):
            hint = did_you_mean(code, catalogue())
            raise click.UsageError(f"{origin}: no rule has the code {code}{hint}")
    return codes


def _folder(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)
