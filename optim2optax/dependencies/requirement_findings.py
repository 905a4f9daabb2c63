"""What happens to requirements: versions are raised, extras checked, optax added, or it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name

from codemods.rules.dependencies import (
    ADDED,
    EXTRA,
    HASHED,
    LOCKED,
    NO_EXTRA,
    PYTHON,
    RAISED,
    TOLD,
)
from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    Section,
    Span,
    TextEdit,
    not_read,
)
from optim2optax.dependencies.needs import EXTRAS, OPTAX, RENAMED_EXTRAS, Needs
from optim2optax.dependencies.versions import (
    NotUnderstoodError,
    admits,
    at_least,
    floored,
    with_floor,
)
from optim2optax.wording import titled

WATCHED = ("flax", "jax", "jaxlib", OPTAX)
GPU = "For a GPU, today's JAX is installed as `jax[cuda12]` or `jax[cuda13]`."


def judged(declared: DeclaredRequirement, text: str, needs: Needs) -> Iterator[Finding]:
    """The findings on one requirement of a file."""
    if declared.name == "jax":
        yield from _of_extras(declared, text)
    lowest = needs.lowest.get(declared.name)
    replaced = needs.replacing.get(declared.name)
    if lowest is None:
        return
    try:
        new = _raised(declared, lowest, replaced is not None)
    except NotUnderstoodError as error:
        yield not_read(declared.span, f"{error}.")
        return
    if new is None:
        return
    if declared.is_hashed:  # flax==0.3.4 --hash=sha256:…
        message = f"`{declared.name}` has hashes of a version."
        remedy = "Raise the version and renew the hashes."
        yield Finding(HASHED, declared.span, message, remedy=remedy)
        return
    what = f"What replaces `{replaced}`" if replaced else "The new code"
    message = f"{what} needs {titled(declared.name)} {lowest} or later."
    yield _raising(declared, text, new, message)


def _raising(
    declared: DeclaredRequirement, text: str, version: str, message: str
) -> Finding:
    """The finding that raises the version of a requirement."""
    # jaxlib==0.1.71+cuda111
    _, separator, local = declared.spec.partition("+")
    return Finding(
        code=PYTHON if declared.name == "python" else RAISED,
        span=declared.span,
        message=message,
        edits=_edits(declared, version),
        new=_replaced(text, declared.span, declared.version, version),
        note=f"`+{local}` is dropped. {GPU}" if separator else "",
    )


def _raised(declared: DeclaredRequirement, lowest: str, is_floor: bool) -> str | None:
    """The version to declare; None if the declared one may stay.

    With `is_floor`, no version below `lowest` may be admitted.
    """
    if not admits(declared.spec, lowest, declared.syntax):
        return at_least(lowest, declared.spec, declared.syntax)
    if is_floor:
        return floored(declared.spec, lowest, declared.syntax)
    if declared.whole_range:
        return with_floor(declared.spec, lowest, declared.syntax)
    return None


def _of_extras(declared: DeclaredRequirement, text: str) -> Iterator[Finding]:
    """The extras of JAX that are removed or renamed: `jax[cuda111]`."""
    if declared.extras is None:
        return
    written, span = declared.extras
    words = written.strip("[]").split(",")
    extras = [word.strip() for word in words if word.strip()]
    normalized = {extra: canonicalize_name(extra) for extra in extras}
    known = {*EXTRAS, *RENAMED_EXTRAS}
    unknown = [extra for extra in extras if normalized[extra] not in known]
    if unknown:
        yield _no_extra(declared, unknown)
    for extra in extras:
        # jax[cuda12_pip] is jax[cuda12-pip]
        new = RENAMED_EXTRAS.get(normalized[extra])
        if new is not None:
            word = rf"(?<![\w.-]){re.escape(extra)}(?![\w.-])"
            renamed = re.sub(word, new, written)
            after = _replaced(text, declared.span, span, renamed)
            message = f"`{extra}` is called `{new}`."
            edit = TextEdit(*span, renamed)
            yield Finding(EXTRA, declared.span, message, (edit,), after)


def _no_extra(declared: DeclaredRequirement, unknown: Sequence[str]) -> Finding:
    message = f"JAX has no extra `{unknown[0]}` any more."
    remedy = "Take one that it has today, or none."
    if any("cuda" in name for name in unknown):
        remedy = f"{GPU} `tpu` is for TPUs, and none for the CPU."
    return Finding(NO_EXTRA, declared.span, message, remedy=remedy)


def _edits(declared: DeclaredRequirement, version: str) -> tuple[TextEdit, ...]:
    """The edits for a new version.

    A word of a shell gets quotes: without them, `>` is a redirection.
    """
    if not declared.bare:
        return (TextEdit(*declared.version, version),)
    start, _ = declared.span
    return TextEdit(start, start, '"'), TextEdit(*declared.version, f'{version}"')


def _replaced(text: str, span: Span, part: Span, new: str) -> str:
    """The text of a span with a part of it replaced."""
    return text[span[0] : part[0]] + new + text[part[1] : span[1]]


def additions(
    sections: Sequence[Section], name: str, lowest: str, is_included: bool
) -> Iterator[Finding]:
    """The findings that add a package to sections; `is_included`: an included file has it."""
    is_in_base = is_included
    if any(section.base and section.has(name) for section in sections):
        is_in_base = True
    # the base first, as the other sections need not have what it has
    for section in sorted(sections, key=lambda section: not section.base):
        named = [one for one in section.declared if one.name == "flax"]
        # nothing is added beside a requirement with hashes, or to constraints
        if not named or named[-1].is_hashed or section.are_constraints:
            continue
        if is_in_base or section.has(name):
            continue
        is_in_base = section.base
        yield _addition(section, named[-1], name, lowest)


def _addition(
    section: Section, flax: DeclaredRequirement, name: str, lowest: str
) -> Finding:
    """The finding that adds a package behind the first requirement where that is possible."""
    version = ""
    # beside a Flax of any version, it may be of any, too
    if flax.spec.strip(" *"):
        version = f"{flax.gap}{at_least(lowest, flax.spec, 'pep440')}"
    for anchor in _anchors(section, flax, name):
        if anchor.behind is not None:
            edit = anchor.behind(name, version)
            message = f"The new code needs {name}, which is not declared."
            return Finding(ADDED, flax.span, message, (edit,), f"{name}{version}")
    why = f"{name} is missing here, and there is no simple way to add it."
    return not_read(flax.span, why, "Add it by hand.")


def _anchors(
    section: Section, flax: DeclaredRequirement, name: str
) -> Iterator[DeclaredRequirement]:
    """The requirements behind which a package may stand, the best first.

    In a sorted list, that is the one before it in the order; else it is Flax.
    """
    named = [declared for declared in section.declared if declared.name != "python"]
    names = [declared.name for declared in named]
    if len(named) > 2 and names == sorted(names):
        before = [declared for declared in named if declared.name < name]
        yield from before[-1:]
    yield flax
    yield from reversed(section.declared)


def told(declares: Declarations, text: str, needs: Needs) -> Iterator[Finding]:
    """The findings on a file that is not edited."""
    code, remedy, missing = TOLD, "Change it by hand.", "Add it by hand."
    declared = list(declares.told)
    if declares.command:
        code, remedy = LOCKED, f"Regenerate it with `{declares.command}`."
        missing = remedy
        # what was locked first comes first: flax, jax, jaxlib, optax
        declared = [one for one in declared if one.name in WATCHED and one.spec]
        declared.sort(key=lambda one: one.name)
    for one in declared:
        for finding in judged(one, text, needs):
            if finding.edits:
                # in a lock file, the version may be lines below the name
                span = one.version if declares.command else finding.span
                yield Finding(code, span, finding.message, remedy=remedy)
            elif not declares.command:
                yield finding
    if declares.is_whole:
        yield from _without_optax(declares.told, needs, code, missing)


def _without_optax(
    declared: Sequence[DeclaredRequirement], needs: Needs, code: str, remedy: str
) -> Iterator[Finding]:
    if OPTAX not in needs.imports:
        return
    flax = [one for one in declared if one.name == "flax"]
    if flax and not any(one.name == OPTAX for one in declared):
        message = "The new code needs optax, which is not in this file."
        yield Finding(code, flax[0].version, message, remedy=remedy)
