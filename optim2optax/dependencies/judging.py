"""What happens to a requirement: its version is raised, its extras are checked, or it stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name

from codemods.rules.dependencies import EXTRA, NO_EXTRA, PYTHON, RAISED
from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Finding,
    Span,
    TextEdit,
    hashed,
    not_read,
)
from optim2optax.dependencies.needs import EXTRAS, RENAMED_EXTRAS, Needs
from optim2optax.dependencies.versions import (
    NotUnderstoodError,
    admits,
    at_least,
    floored,
    with_floor,
)

GPU = "For a GPU, today's JAX is installed as `jax[cuda12]` or `jax[cuda13]`."
TITLES = {
    "python": "Python",
    "flax": "Flax",
    "jax": "JAX",
    "numpy": "NumPy",
    "scipy": "SciPy",
}
"""How messages call distributions, where that is not their normalized name."""


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
        yield hashed(declared.span, declared.name)
        return
    what = f"What replaces `{replaced}`" if replaced else "The new code"
    message = f"{what} needs {_shown(declared.name)} {lowest} or later."
    yield _raising(declared, text, new, message)


def _raising(
    declared: DeclaredRequirement, text: str, version: str, message: str
) -> Finding:
    """The finding that raises the version of a requirement."""
    before = text[slice(*declared.span)]
    # jaxlib==0.1.71+cuda111
    _, separator, local = declared.spec.partition("+")
    return Finding(
        code=PYTHON if declared.name == "python" else RAISED,
        span=declared.span,
        message=message,
        edits=_edits(declared, version),
        new=_replaced(before, declared.span, declared.version, version),
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
    before = text[slice(*declared.span)]
    for old, new in RENAMED_EXTRAS.items():
        for extra in extras:
            # jax[cuda12_pip] is jax[cuda12-pip]
            if normalized[extra] == old:
                word = rf"(?<![\w.-]){re.escape(extra)}(?![\w.-])"
                renamed = re.sub(word, new, written)
                after = _replaced(before, declared.span, span, renamed)
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
    offset = span[0]
    return text[: part[0] - offset] + new + text[part[1] - offset :]


def _shown(name: str) -> str:
    return TITLES.get(name, name)
