"""A way to write legacy programs in tests, and to migrate them."""

import re
from collections.abc import Iterable
from textwrap import dedent

import pytest
from _pytest.mark import ParameterSet

from codemods import FileResult, Options, Source, migrate

OPTAX_ALONE = Options(ignore=("FO706",))
"""What cannot become optax's own is left, and keeps no interface: so the reasons show, and what stays for the sake of others."""


def program(text: str) -> str:
    """An indented block of a test as a program, behind an import of `optim` if it uses that and says not what it is."""
    code = dedent(text).lstrip("\n")
    used = re.search(r"(?<![\w.])optim\.", code)
    unsaid = used and not re.search("import .*(flax|optim)|from flax", code)
    return f"from flax import optim\n\n{code}" if unsaid else code


def sections(text: str, mark: str = "==") -> dict[str, str]:
    """The parts of a text by their names: each begins with a mark and its name."""
    _, *parts = re.split(rf"^{mark} (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def table(text: str, between: str = "\n", values: int = 0) -> list[ParameterSet]:
    """The rows of a table in a text, each a section by what it is about.

    A row has something between its values. If it is said how many these are, the last of them is
    all the rest, such as a program.
    """
    return [
        pytest.param(*row.strip("\n").split(between, values - 1), id=name)
        for name, row in sections(text).items()
    ]


def changes(text: str) -> list[ParameterSet]:
    """The rows of a table of programs before and after, with marks as in a diff."""
    return [
        pytest.param(*before_and_after(str(row.values[0])), id=row.id)
        for row in table(text, values=1)
    ]


def before_and_after(text: str) -> tuple[str, str]:
    """Both sides of a change: lines of only one of them begin with `-` or `+`, others with two spaces."""
    lines = text.strip("\n").splitlines()
    before, after = (
        "".join(f"{line[2:]}\n" for line in lines if not line.startswith(other))
        for other in "+-"
    )
    return before, after


def files(text: str) -> dict[str, str]:
    """The files of a project in a text, by path: each begins with `-- ` and its path."""
    return sections(text, "--")


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


def assert_left(text: str, code: str) -> None:
    """Nothing of a program changes, for that reason among others."""
    result = result_of(text, OPTAX_ALONE)
    assert result.after.decode() == program(text)
    assert {site.status for site in result.sites} == {"unresolved"}
    assert code in {site.code for site in result.sites}


def statuses(results: Iterable[FileResult]) -> set[str]:
    """What became of all sites of some files."""
    return {site.status for result in results for site in result.sites}


def left(result: FileResult) -> list[str]:
    """Line and code of what is left of a file, but for what is left for the sake of others."""
    sites = [site for site in result.sites if site.status == "unresolved"]
    others = ("FO901", "FO911")
    return [f"{site.line} {site.code}" for site in sites if site.code not in others]


def project(
    texts: dict[str, str], options: Options | None = None
) -> dict[str, FileResult]:
    """What becomes of the files of a project, by their path without ending."""
    code = {f"{name}.py": program(text).encode() for name, text in texts.items()}
    results = migrate([Source(*one) for one in code.items()], options)
    # behind those of the files, there may be new modules
    return dict(zip(texts, results[: len(code)], strict=True))
