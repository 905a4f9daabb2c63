"""No page, help text or rule uses a phrase that readers stumbled over."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from codemods.optimizers import optimizers
from codemods.rules import catalogue
from optim2optax.cli import application

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    # the other folders are generated, from the rules and optimizers
    *sorted(ROOT.glob("docs/guide/*.md")),
    *sorted(ROOT.glob("docs/reference/*.md")),
    ROOT / "fixtures" / "README.md",
]
PHRASES = (
    "all else",
    "anew",
    "are left, with a reason",
    "are told",
    "as often as it takes",
    "as said above",
    "at random",
    "beside that",
    "by its own word",
    "finds its place",
    "for the sake of",
    "for want of",
    "for whoever",
    "goes by calls of",
    "holds back",
    "holds nobody back",
    "however it is got at",
    "is asked backwards",
    "is asked for here",
    "is left, with a reason",
    "is no pass",
    "is told",
    "it was asked for",
    "left to itself",
    "lets both go together",
    "none of its business",
    "of one's own",
    "others than",
    "say that this is your code",
    "speak to a",
    "speaks to a",
    "stands in the way",
    "stands ready",
    "taken apart",
    "tell of the",
    "thrown away",
    "told apart",
    "what takes its place is",
)


PATTERNS = {
    phrase: re.compile(rf"\b{phrase}\b".replace(" ", r"\s+"), re.IGNORECASE)
    for phrase in PHRASES
}


def found(name: str, text: str) -> list[str]:
    """Each phrase in a text, with its line. A phrase may continue on the next line."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase!r}"
        for phrase, pattern in PATTERNS.items()
        for match in pattern.finditer(text)
    ]


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it."""
    # a command keeps the names of its option for help from the first context that asks
    settings = application.context_settings
    context = click.Context(command, info_name=name, **settings)
    yield f"{name} --help", command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            assert child is not None
            yield from help_texts(child, f"{name} {below}")


def test_a_planted_phrase_is_found() -> None:
    """Over the end of a line, and no part of a longer word."""
    page = "The\nline is\ntold. The task is toldest.\n"
    assert found("page.md", page) == ["page.md:2: 'is told'"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages(page: Path) -> None:
    assert found(str(page.relative_to(ROOT)), page.read_text()) == []


def test_help() -> None:
    for name, text in help_texts(application, "optim2optax"):
        assert found(name, text) == []


def test_rules() -> None:
    for code, rule in catalogue().items():
        text = f"{rule.summary}\n{rule.explanation}"
        assert found(f"optim2optax explain {code}", text) == []


def test_optimizers() -> None:
    for name, optimizer in optimizers().items():
        assert found(f"optim2optax explain {name}", optimizer.documentation) == []
