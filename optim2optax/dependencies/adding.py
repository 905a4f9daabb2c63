"""optax, where Flax is declared and it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codemods.rules.dependencies import ADDED

from optim2optax.dependencies.declared import Declared, Finding, Section, not_read
from optim2optax.dependencies.versions import at_least

OPTAX, FLAX, PYTHON = "optax", "flax", "python"


def additions(
    sections: Sequence[Section], needs: Mapping[str, str], is_included: bool
) -> Iterator[Finding]:
    """What adds optax to the sections of a file. `is_included` says that an included file has it."""
    is_in_base = is_included or any(section.base and _has(section, OPTAX) for section in sections)
    for section in sorted(sections, key=lambda section: not section.base):
        flax = next(
            (declared for declared in reversed(section.declared) if declared.name == FLAX), None
        )
        if (
            flax is None
            or flax.is_hashed
            or section.insert is None
            or _has(section, OPTAX)
            or is_in_base
        ):
            continue
        is_in_base = section.base
        version = (
            f"{flax.gap}{at_least(needs[OPTAX], flax.spec, 'pep440')}"
            if flax.spec.strip(" *")
            else ""
        )
        edit = next(
            (
                edit
                for anchor in _anchors(section, flax)
                if (edit := section.insert(anchor, OPTAX, version))
            ),
            None,
        )
        if edit is None:
            yield not_read(
                flax.span,
                "optax is missing here, and there is no simple way to add it.",
                "Add it by hand.",
            )
        else:
            message = "The new code needs optax, which is not declared."
            yield Finding(ADDED, flax.span, message, (edit,), f"{OPTAX}{version}")


def _has(section: Section, name: str) -> bool:
    return any(declared.name == name for declared in section.declared)


def _anchors(section: Section, flax: Declared) -> Iterator[Declared]:
    """Behind which requirements it may stand, the best first: where the order of names has it, or else behind Flax."""
    named = [declared for declared in section.declared if declared.name != PYTHON]
    names = [declared.name for declared in named]
    if len(named) > 2 and names == sorted(names):
        yield [declared for declared in named if declared.name < OPTAX][-1]
    yield flax
    yield from reversed(section.declared)
