"""`optim2optax rules`."""

from __future__ import annotations

import json

import click

EXAMPLES = """\b
Examples:
  optim2optax rules
  optim2optax rules --output-format json
"""


@click.command(name="rules", short_help="List all rules.", epilog=EXAMPLES)
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True
)
def command(output_format: str) -> None:
    """List all rules: what each rewrites or, for FO9, why a site is left."""
    from codemods.rules import catalogue

    rules = catalogue().values()
    if output_format == "json":
        fields = ("code", "summary", "explanation", "before", "after")
        click.echo(
            json.dumps([{name: getattr(rule, name) for name in fields} for rule in rules], indent=2)
        )
        return
    for rule in rules:
        click.echo(f"{click.style(rule.code, bold=True)}  {rule.summary}")
