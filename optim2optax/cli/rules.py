"""`optim2optax rules`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from codemods.rules import Rule

EXAMPLES = """\b
Examples:
  optim2optax rules
  optim2optax rules --output-format json
"""


@click.command(name="rules", short_help="List all rules.", epilog=EXAMPLES)
@click.option(
    "--output-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
)
def command(output_format: str) -> None:
    """List all rules: what each rewrites or, for FO9, why a site stays."""
    from codemods.rules import catalogue

    rules = catalogue().values()
    if output_format == "json":
        click.echo(json.dumps([_fields(rule) for rule in rules], indent=2))
        return
    for rule in rules:
        click.echo(f"{click.style(rule.code, bold=True)}  {rule.summary}")


def _fields(rule: Rule) -> dict[str, object]:
    """The fields of a rule in JSON, in this order."""
    names = ("code", "summary", "explanation", "before", "after")
    return {name: getattr(rule, name) for name in names}
