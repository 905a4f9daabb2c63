"""`optim2optax rules`."""

from __future__ import annotations

import json

import click

from optim2optax.cli.output import TEXT_OR_JSON

FIELDS = ("code", "summary", "explanation", "before", "after")
"""The fields of a rule in JSON, in this order."""

EXAMPLES = """\b
Examples:
  optim2optax rules
  optim2optax rules --output-format json
"""


@click.command(name="rules", short_help="List all rules.", epilog=EXAMPLES)
@TEXT_OR_JSON
def command(output_format: str) -> None:
    """List all rules: what each rewrites or, for FO9, why a site stays."""
    from codemods.rules import catalogue

    rules = catalogue().values()
    if output_format == "json":
        fields = [{name: getattr(rule, name) for name in FIELDS} for rule in rules]
        click.echo(json.dumps(fields, indent=2))
        return
    for rule in rules:
        click.echo(f"{click.style(rule.code, bold=True)}  {rule.summary}")
