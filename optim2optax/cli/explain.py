"""`optim2optax explain`."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from optim2optax.cli.codes import complete_codes
from optim2optax.nearest import did_you_mean

if TYPE_CHECKING:
    from codemods.rules import Rule

WIDTH = 100
EXAMPLES = """\b
Examples:
  optim2optax explain FO202
  optim2optax explain Adam
"""


def complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete a code or an optimizer in a shell."""
    from codemods.optimizers import optimizers

    names = [
        name
        for name in optimizers()
        if name.casefold().startswith(incomplete.casefold())
    ]
    return [
        *complete_codes(context, parameter, incomplete),
        *map(CompletionItem, names),
    ]


@click.command(
    name="explain",
    short_help="Explain a rule or an optimizer.",
    epilog=EXAMPLES,
)
@click.argument("name", metavar="CODE|OPTIMIZER", shell_complete=complete)
def command(name: str) -> None:
    """Explain a rule with code before and after, or an optimizer with both update rules."""
    from codemods.optimizers import optimizers
    from codemods.rules import catalogue

    # `explain fo202` and `explain adam` are right, too
    rules = {code.casefold(): rule for code, rule in catalogue().items()}
    legacy = {known.casefold(): optimizer for known, optimizer in optimizers().items()}
    folded = name.casefold()
    if folded in rules:
        _print_rule(rules[folded])
    elif folded in legacy:
        click.echo(wrapped(legacy[folded].documentation))
    else:
        hint = did_you_mean(name, [*catalogue(), *optimizers()])
        raise click.UsageError(f"there is no rule or optimizer called {name}{hint}")


def wrapped(text: str) -> str:
    """A text whose paragraphs fit the terminal."""
    width = min(WIDTH, shutil.get_terminal_size().columns)
    return click.wrap_text(text, width, preserve_paragraphs=True)


def _print_rule(rule: Rule) -> None:
    parts = [
        f"{click.style(rule.code, bold=True)}: {rule.summary}",
        wrapped(rule.explanation),
    ]
    for title, program in (("Before", rule.before), ("After", rule.after)):
        if program:
            parts.append(click.style(f"{title}:", bold=True))
            parts.append(textwrap.indent(program.strip("\n"), "    "))
    click.echo("\n\n".join(parts))
