"""`pyproject.toml`: what the project itself declares (PEP 621), its groups (PEP 735), and Poetry's tables."""

from __future__ import annotations

from itertools import groupby

from optim2optax.dependencies.declared import Declared, Finding, Reading, Section, direct
from optim2optax.dependencies.placing import into_list
from optim2optax.dependencies.tables import of_tables
from optim2optax.dependencies.toml import Path, Value, requirements, strings

PYTHON = ("project", "requires-python")
DEPENDENCIES = ("project", "dependencies")
SOURCES = ("tool", "uv", "sources")
POETRY = ("tool", "poetry")
KEPT_APART = ("flax", "jax", "jaxlib", "optax")


def read(text: str, path: str) -> Reading:
    """What a project declares. Raises UnreadableError."""
    del path
    values = strings(
        text, lambda keys: _array(keys) is not None or _table(keys) is not None or keys == PYTHON
    )
    sections: list[Section] = []
    problems: list[Finding] = []
    for name, elements in groupby(
        (value for value in values if _array(value.path)), lambda value: _array(value.path)
    ):
        declared, unread, spans = requirements(text, [*elements])
        sections.append(Section(tuple(declared), into_list(text, spans), base=name == DEPENDENCIES))
        problems += unread
    python = [_python(value) for value in values if value.path == PYTHON]
    sections.append(Section(tuple(python)))
    poetry = [value for value in values if _table(value.path) and value.path[:3] != SOURCES]
    in_tables, unread = of_tables(text, poetry, _table, "poetry", base=(*POETRY, "dependencies"))
    sources = [value for value in values if value.path[:3] == SOURCES and len(value.path) > 3]
    places = {str(value.path[3]): value for value in sources if value.path[3] in KEPT_APART}
    elsewhere = [direct(value.span, name) for name, value in places.items()]
    return Reading((*sections, *in_tables), (*problems, *unread, *elsewhere))


def _array(keys: Path) -> Path | None:
    """The array of requirements that a string is an element of."""
    match keys:
        case ("project", "dependencies", int()):
            return keys[:-1]
        case ("project", "optional-dependencies", str(), int()) | (
            "dependency-groups",
            str(),
            int(),
        ):
            return keys[:-1]
    return None


def _table(keys: Path) -> Path | None:
    """The table of requirements that a string is a value in, or in a value of."""
    match keys:
        case ("tool", "poetry", "dependencies" | "dev-dependencies", str(), *_) | (
            "tool",
            "uv",
            "sources",
            str(),
            *_,
        ):
            return keys[:3]
        case ("tool", "poetry", "group", str(), "dependencies", str(), *_):
            return keys[:5]
    return None


def _python(value: Value) -> Declared:
    start, end = value.span
    return Declared("python", value.span, (start + 1, end - 1), value.text, whole_range=True)
