"""`pyproject.toml`: the dependencies of PEP 621, the groups of PEP 735, and Poetry's tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    Section,
    direct,
)
from optim2optax.dependencies.placing import into_list
from optim2optax.dependencies.tables import of_tables
from optim2optax.dependencies.toml import Path, TomlString, requirements, strings

PYTHON = ("project", "requires-python")
DEPENDENCIES = ("project", "dependencies")
SOURCES = ("tool", "uv", "sources")
POETRY = ("tool", "poetry")
KEPT_APART = ("flax", "jax", "jaxlib", "optax")


def read(text: str, path: str) -> Declarations:
    """What a project declares. Raises UnreadableError."""
    del path
    values = strings(text, _is_wanted)
    sections: list[Section] = []
    problems: list[Finding] = []
    in_arrays = [value for value in values if _array(value.path)]
    for name, elements in groupby(in_arrays, lambda value: _array(value.path)):
        declared, unread, spans = requirements(text, [*elements])
        insert = into_list(text, spans)
        sections.append(Section(tuple(declared), insert, base=name == DEPENDENCIES))
        problems += unread
    python = [_python(value) for value in values if value.path == PYTHON]
    sections.append(Section(tuple(python)))
    in_any_table = [value for value in values if _table(value.path)]
    # the sources of uv add nothing: they say where a requirement comes from
    poetry = [value for value in in_any_table if value.path[:3] != SOURCES]
    base = (*POETRY, "dependencies")
    in_tables, unread = of_tables(text, poetry, _table, "poetry", base)
    sections += in_tables
    problems += unread
    problems += _from_sources(values)
    return Declarations(tuple(sections), tuple(problems))


def _is_wanted(keys: Path) -> bool:
    return keys == PYTHON or _array(keys) is not None or _table(keys) is not None


def _from_sources(values: Sequence[TomlString]) -> Iterator[Finding]:
    """What uv takes from another place than an index: `[tool.uv.sources]`."""
    places: dict[str, TomlString] = {}
    for value in values:
        match value.path:
            # jax = { git = "…", tag = "…" } has several strings
            case ("tool", "uv", "sources", str(name), *_) if name in KEPT_APART:
                places[name] = value
    for name, value in places.items():
        yield direct(value.span, name)


def _array(keys: Path) -> Path | None:
    """The array of requirements that a string is an element of."""
    match keys:
        # [project] dependencies = ["flax"]
        case ("project", "dependencies", int()):
            return keys[:-1]
        # [project.optional-dependencies] train = ["flax"]
        case ("project", "optional-dependencies", str(), int()):
            return keys[:-1]
        # [dependency-groups] dev = ["flax"]
        case ("dependency-groups", str(), int()):
            return keys[:-1]
    return None


def _table(keys: Path) -> Path | None:
    """The table of requirements that a string is a value in, or in a value of."""
    match keys:
        # [tool.poetry.dependencies] flax = "^0.3.4"
        case ("tool", "poetry", "dependencies" | "dev-dependencies", str(), *_):
            return keys[:3]
        # [tool.uv.sources] flax = { git = "…" }
        case ("tool", "uv", "sources", str(), *_):
            return keys[:3]
        # [tool.poetry.group.dev.dependencies] flax = "^0.3.4"
        case ("tool", "poetry", "group", str(), "dependencies", str(), *_):
            return keys[:5]
    return None


def _python(value: TomlString) -> DeclaredRequirement:
    """The Python of a project: `requires-python = ">=3.6"`."""
    start, end = value.span
    return DeclaredRequirement(
        "python", value.span, (start + 1, end - 1), value.text, whole_range=True
    )
