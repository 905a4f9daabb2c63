"""The settings of a run: the command line, over pyproject.toml, over the defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from codemods.model import Options
from optim2optax.cli.codes import split_codes, unknown_code
from optim2optax.configuration import (
    Configuration,
    ConfigurationError,
    find_configuration,
)
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


def resolve_settings(context: click.Context, paths: Sequence[str]) -> Settings:
    """Settings for some paths, with the nearest configuration. Raises click.UsageError."""
    try:
        folders = [_folder(os.path.abspath(path)) for path in paths]
        configuration = find_configuration(os.path.commonpath(folders))
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from error
    values = _Values(context, configuration)
    options = Options(
        form=values["form"],
        style=values["style"],
        select=_codes(values, "select"),
        ignore=_codes(values, "ignore"),
        partial=values["partial"],
        unsafe=values["unsafe"],
        rename=values["rename"],
        modernize=values["modernize"],
    )
    return Settings(
        options=options,
        exclude=_exclude(values),
        output_format=values["output_format"],
        jobs=values["jobs"] or os.cpu_count() or 1,
        check=values["check"],
        diff=values["diff"],
        allow_dirty=values["allow_dirty"],
        with_related=values["with_related"],
        vendor=values["vendor"],
    )


class _Values:
    """The options by name, and the origin of each."""

    def __init__(self, context: click.Context, configuration: Configuration) -> None:
        self.configured = {
            name: value
            for name, value in configuration.values.items()
            # an option on the command line overrides the configuration
            if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        }
        self.configuration = configuration
        self._values = {**context.params, **self.configured}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def origin(self, name: str) -> str:
        """How to name an option in a complaint about its value."""
        path = self.configuration.path
        option = name.replace("_", "-")
        if path and name in self.configured:
            return f"{shown(path)}: tool.optim2optax.{option}"
        return f"--{option}"


def _codes(values: _Values, name: str) -> tuple[str, ...]:
    codes = split_codes(values[name])
    problem = unknown_code(codes)
    if problem is not None:
        raise click.UsageError(f"{values.origin(name)}: {problem}")
    return codes


def _exclude(values: _Values) -> Patterns:
    base = os.getcwd()
    if "exclude" in values.configured:
        # patterns in pyproject.toml are relative to its folder
        base = values.configuration.folder
    try:
        return Patterns(base, values["exclude"])
    except PatternError as error:
        raise click.UsageError(f"{values.origin('exclude')}: {error}") from error


def _folder(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)
