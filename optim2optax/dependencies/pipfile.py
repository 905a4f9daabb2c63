"""`Pipfile`, as Pipenv has it."""

from __future__ import annotations

from optim2optax.dependencies.declared import Declarations, DeclaredRequirement, Section
from optim2optax.dependencies.tables import of_tables
from optim2optax.dependencies.toml import Path, strings

PYTHON = ("requires", "python_version")
PACKAGES = ("packages", "dev-packages")


def read(text: str, path: str) -> Declarations:
    """What a Pipfile declares. Raises UnreadableError."""
    del path
    values = strings(text, _is_wanted)
    packages = [value for value in values if value.path != PYTHON]
    sections, problems = of_tables(text, packages, _table, "pep440", base=("packages",))
    for value in values:
        if value.path == PYTHON:
            # [requires] python_version = "3.9"
            start, end = value.span
            inner = (start + 1, end - 1)
            python = DeclaredRequirement(
                "python", value.span, inner, value.text, syntax="minor"
            )
            sections.append(Section((python,)))
    return Declarations(tuple(sections), tuple(problems))


def _is_wanted(keys: Path) -> bool:
    return keys == PYTHON or _table(keys) is not None


def _table(keys: Path) -> Path | None:
    """The table that a string is in: `[packages] flax = "*"`."""
    # flax = "*", and flax = {version = "*"}
    if len(keys) > 1 and keys[0] in PACKAGES:
        return keys[:1]
    return None
