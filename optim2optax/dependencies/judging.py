"""What becomes of a requirement that is there: its version is raised, its extras are looked after, or it stays."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.rules.dependencies import EXTRA, NO_EXTRA, PYTHON, RAISED
from packaging.utils import canonicalize_name

from optim2optax.dependencies.declared import Declared, Edit, Finding, Span, hashed, not_read
from optim2optax.dependencies.needs import EXTRAS, RENAMED_EXTRAS, Needs
from optim2optax.dependencies.versions import (
    NotUnderstoodError,
    admits,
    at_least,
    floored,
    with_floor,
)

GPU = "For a GPU, today's JAX is installed as `jax[cuda12]` or `jax[cuda13]`."


def judged(declared: Declared, text: str, needs: Needs) -> Iterator[Finding]:
    """What is to be said of one requirement of a file."""
    if declared.name == "jax":
        yield from _of_extras(declared, text)
    lowest, replaced = needs.lowest.get(declared.name), needs.replacing.get(declared.name)
    if lowest is None:
        return
    try:
        new = _raised(declared, lowest, replaced is not None)
    except NotUnderstoodError as error:
        yield not_read(declared.span, f"{error}.")
        return
    if new is None:
        return
    if declared.is_hashed:
        yield hashed(declared.span, declared.name)
        return
    code = PYTHON if declared.name == "python" else RAISED
    what = f"What replaces `{replaced}`" if replaced else "The new code"
    before = text[slice(*declared.span)]
    note = f"`+{declared.spec.partition('+')[2]}` is dropped. {GPU}" if "+" in declared.spec else ""
    yield Finding(
        code,
        declared.span,
        f"{what} needs {_shown(declared.name)} {lowest} or later.",
        _edits(declared, new),
        _replaced(before, declared.span, declared.version, new),
        note=note,
    )


def _raised(declared: Declared, lowest: str, is_floor: bool) -> str | None:
    """The version to be declared; None if that which is declared may stay. With `is_floor`, it may admit none that is lower."""
    if not admits(declared.spec, lowest, declared.syntax):
        return at_least(lowest, declared.spec, declared.syntax)
    if is_floor:
        return floored(declared.spec, lowest, declared.syntax)
    return with_floor(declared.spec, lowest, declared.syntax) if declared.whole_range else None


def _of_extras(declared: Declared, text: str) -> Iterator[Finding]:
    if declared.extras is None:
        return
    written, span = declared.extras
    extras = [extra.strip() for extra in written.strip("[]").split(",") if extra.strip()]
    normalized = {extra: canonicalize_name(extra) for extra in extras}
    unknown = [extra for extra in extras if normalized[extra] not in {*EXTRAS, *RENAMED_EXTRAS}]
    if unknown:
        remedy = (
            f"{GPU} `tpu` is for TPUs, and none for the CPU."
            if any("cuda" in name for name in unknown)
            else None
        )
        message = f"JAX has no extra `{unknown[0]}` any more."
        yield Finding(
            NO_EXTRA,
            declared.span,
            message,
            remedy=remedy or "Take one that it has today, or none.",
        )
    for old, new in RENAMED_EXTRAS.items():
        for extra in extras:
            if normalized[extra] == old:
                renamed = re.sub(rf"(?<![\w.-]){re.escape(extra)}(?![\w.-])", new, written)
                after = _replaced(text[slice(*declared.span)], declared.span, span, renamed)
                yield Finding(
                    EXTRA,
                    declared.span,
                    f"`{extra}` is called `{new}`.",
                    (Edit(*span, renamed),),
                    after,
                )


def _edits(declared: Declared, version: str) -> tuple[Edit, ...]:
    """The new version; a shell that is given it without quotes would take `>` for something else."""
    if not declared.bare:
        return (Edit(*declared.version, version),)
    start, _ = declared.span
    return Edit(start, start, '"'), Edit(*declared.version, f'{version}"')


def _replaced(text: str, span: Span, part: Span, new: str) -> str:
    return text[: part[0] - span[0]] + new + text[part[1] - span[0] :]


def _shown(name: str) -> str:
    return {
        "python": "Python",
        "flax": "Flax",
        "jax": "JAX",
        "numpy": "NumPy",
        "scipy": "SciPy",
    }.get(name, name)
