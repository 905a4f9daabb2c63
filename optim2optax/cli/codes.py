"""Codes of rules as people give them: `FO1,FO202`, in any case, prefixes allowed."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from optim2optax.nearest import did_you_mean


def split_codes(values: Iterable[str]) -> tuple[str, ...]:
    """The codes in comma-separated values."""
    codes: list[str] = []
    for value in values:
        codes += [code.strip().upper() for code in value.split(",") if code.strip()]
    return tuple(codes)


def complete_codes(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the last of some codes in a shell."""
    from codemods.rules import catalogue

    # --select FO1,FO2<TAB>
    before, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{code}", help=rule.summary)
        for code, rule in catalogue().items()
        if code.startswith(last.upper())
    ]


def unknown_code(codes: Iterable[str]) -> str | None:
    """The error for the first code that no rule's code begins with; None if there is none."""
    for code in codes:
        # most runs name no codes, and need not import all rules
        from codemods.rules import catalogue

        if not any(known.startswith(code) for known in catalogue()):
            return f"no rule has the code {code}{did_you_mean(code, catalogue())}"
    return None
