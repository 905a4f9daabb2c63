"""The codes of rules, as a shell completes them."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


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
