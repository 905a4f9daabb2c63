"""The table `[tool.optim2optax]` of a pyproject.toml."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from optim2optax.project import UnreadableError, read_file, upwards

FILE_NAME = "pyproject.toml"


class ConfigurationError(Exception):
    """The file and the key that are wrong, and why."""


def find_configuration(directory: str) -> tuple[str, Mapping[str, Any]]:
    """The path and the table of the nearest pyproject.toml, upwards, that has it; else of none.

    Raises:
      ConfigurationError: if it cannot be read.
    """
    for folder in upwards(directory):
        path = os.path.join(folder, FILE_NAME)
        table = _read_table(path)
        if table is not None:
            return path, table
    return "", {}


def _read_table(path: str) -> Mapping[str, Any] | None:
    if not os.path.exists(path):
        return None
    try:
        content = read_file(path)
    except UnreadableError as error:
        raise ConfigurationError(f"{path}: {error}") from error
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
