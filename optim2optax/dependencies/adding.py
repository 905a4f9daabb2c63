"""optax is added where Flax is declared without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codemods.rules.dependencies import ADDED
from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Finding,
    Insert,
    Section,
    not_read,
)
from optim2optax.dependencies.versions import at_least

OPTAX, FLAX, PYTHON = "optax", "flax", "python"


def additions(
    sections: Sequence[Section], needs: Mapping[str, str], is_included: bool
) -> Iterator[Finding]:
    """The findings that add optax to sections. `is_included` says that an included file has it."""
    is_in_base = is_included
    if any(section.base and has_requirement(section, OPTAX) for section in sections):
        is_in_base = True
    # the base first, as the other sections need not have what it has
    for section in sorted(sections, key=lambda section: not section.base):
        flax = _last(section, FLAX)
        # nothing is added beside a requirement with hashes, or to constraints
        if flax is None or flax.is_hashed or section.insert is None:
            continue
        if is_in_base or has_requirement(section, OPTAX):
            continue
        is_in_base = section.base
        version = ""
        # beside a Flax of any version, optax may be of any, too
        if flax.spec.strip(" *"):
            version = f"{flax.gap}{at_least(needs[OPTAX], flax.spec, 'pep440')}"
        yield _addition(section, flax, version, section.insert)


def _last(section: Section, name: str) -> DeclaredRequirement | None:
    """The last requirement of a name in a section."""
    for declared in reversed(section.declared):
        if declared.name == name:
            return declared
    return None


def _addition(
    section: Section, flax: DeclaredRequirement, version: str, insert: Insert
) -> Finding:
    """The finding that adds optax behind the first requirement where that is possible."""
    for anchor in _anchors(section, flax):
        edit = insert(anchor, OPTAX, version)
        if edit:
            message = "The new code needs optax, which is not declared."
            return Finding(ADDED, flax.span, message, (edit,), f"{OPTAX}{version}")
    why = "optax is missing here, and there is no simple way to add it."
    return not_read(flax.span, why, "Add it by hand.")


def has_requirement(section: Section, name: str) -> bool:
    """Whether a section has a requirement of a name."""
    return any(declared.name == name for declared in section.declared)


def _anchors(
    section: Section, flax: DeclaredRequirement
) -> Iterator[DeclaredRequirement]:
    """The requirements behind which optax may stand, the best first.

    In a sorted list, that is the one before it in the order; else it is Flax.
    """
    named = [declared for declared in section.declared if declared.name != PYTHON]
    names = [declared.name for declared in named]
    if len(named) > 2 and names == sorted(names):
        before = [declared for declared in named if declared.name < OPTAX]
        yield before[-1]
    yield flax
    yield from reversed(section.declared)
