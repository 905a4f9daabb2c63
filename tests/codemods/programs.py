"""A way to write legacy programs in tests, and to migrate them."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from _pytest.mark import ParameterSet

from codemods import FileResult, Options, Source, migrate

OPTAX_ALONE = Options(ignore=("FO706",))
"""What cannot become optax's own is left, and keeps no interface: so the reasons show, and what stays for the sake of others."""


def program(text: str) -> str:
    """An indented block of a test as a program."""
    return dedent(text).lstrip("\n")


def table(text: str, between: str = "\n") -> list[ParameterSet]:
    """The rows of a table in a text: each begins with `== ` and what it is about, and has something between its values."""
    _, *parts = re.split(r"^== (.+)\n", text, flags=re.MULTILINE)
    return [
        pytest.param(*values.strip("\n").split(between), id=name)
        for name, values in zip(parts[::2], parts[1::2], strict=True)
    ]


def result_of(text: str, options: Options | None = None) -> FileResult:
    """What becomes of a program that is a project of its own."""
    [result] = migrate([Source("train.py", program(text).encode())], options)
    assert result.error is None
    return result


def migrated(text: str, options: Options | None = None) -> str:
    """The new code of a program of which every site is rewritten."""
    result = result_of(text, options)
    assert {site.status for site in result.sites} <= {"rewritten"}, result.sites
    return result.after.decode()


def project(
    texts: dict[str, str], options: Options | None = None
) -> dict[str, FileResult]:
    """What becomes of the files of a project, by their path without ending."""
    sources = [
        Source(f"{name}.py", program(text).encode()) for name, text in texts.items()
    ]
    results = migrate(sources, options)
    # behind those of the files, there may be new modules
    return dict(zip(texts, results[: len(sources)], strict=True))
