"""The table `[tool.optim2optax]` of a pyproject.toml."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from codemods.model import Form, Style
from optim2optax.nearest import did_you_mean
from optim2optax.project import upwards
from optim2optax.reporting import FORMATS

FILE_NAME = "pyproject.toml"
FORMS: tuple[str, ...] = get_args(Form)
STYLES: tuple[str, ...] = get_args(Style)


class ConfigurationError(Exception):
    """The file and the key that are wrong, and why."""


@dataclass(frozen=True)
class Configuration:
    """What a pyproject.toml sets, by the name of the option's parameter (`output_format`)."""

    path: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """What patterns in the file are relative to."""
        return os.path.dirname(os.path.abspath(self.path)) if self.path else os.getcwd()


def find_configuration(directory: str) -> Configuration:
    """Read the nearest pyproject.toml, from a directory upwards, that has the table.

    Raises:
      ConfigurationError: if it cannot be read, or sets what there is not.
    """
    for folder in upwards(directory):
        path = os.path.join(folder, FILE_NAME)
        table = _read_table(path)
        if table is not None:
            # output-format = "json" is the parameter `output_format`
            values = {
                key.replace("-", "_"): _checked(path, key, value)
                for key, value in table.items()
            }
            return Configuration(path, values)
    return Configuration()


def _read_table(path: str) -> Mapping[str, Any] | None:
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigurationError(f"{path}: cannot be read: not a regular file")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from error
    # most files have no such table, and need not be parsed
    if b"optim2optax" not in content:
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(content.decode()).get("tool", {}).get("optim2optax")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(f"{path}: tool.optim2optax: must be a table")
    return table


def _checked(path: str, key: str, value: object) -> object:
    if key not in KEYS:
        nearest = did_you_mean(key.replace("_", "-"), KEYS, 0.6)
        hint = nearest or f"; there are {', '.join(KEYS)}"
        raise ConfigurationError(f"{path}: tool.optim2optax.{key}: unknown key{hint}")
    valid, expected = KEYS[key]
    if not valid(value):
        raise ConfigurationError(
            f"{path}: tool.optim2optax.{key}: must be {expected}, not {value!r}"
        )
    return value


Check = tuple[Callable[[object], bool], str]


def _one_of(choices: tuple[str, ...]) -> Check:
    quoted = ", ".join(f'"{choice}"' for choice in choices)
    return lambda value: value in choices, f"one of {quoted}"


STRINGS: Check = (
    lambda value: (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    ),
    "a list of strings",
)
BOOLEAN: Check = (lambda value: isinstance(value, bool), "true or false")
COUNT: Check = (
    # `true` of TOML is an int in Python
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1,
    "a whole number of at least 1",
)

KEYS: Mapping[str, Check] = {
    "select": STRINGS,
    "ignore": STRINGS,
    "exclude": STRINGS,
    "form": _one_of(FORMS),
    "style": _one_of(STYLES),
    "partial": BOOLEAN,
    "unsafe": BOOLEAN,
    "rename": BOOLEAN,
    "modernize": BOOLEAN,
    "vendor": BOOLEAN,
    "jobs": COUNT,
    "output-format": _one_of(FORMATS),
}
