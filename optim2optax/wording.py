"""Words of messages for people."""

from __future__ import annotations

import html
import re

TITLES = {
    "collections": "Python",
    "dataclasses": "Python",
    "flax": "Flax",
    "jax": "JAX",
    "numpy": "NumPy",
    "python": "Python",
    "scipy": "SciPy",
}
"""How people call packages, where that is not their name."""


def titled(package: str) -> str:
    """How people call a package."""
    return TITLES.get(package, package)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun, such as `1 site` or `1,234 sites`."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def printable(text: str) -> str:
    """Text in one line, with escapes in place of control characters.

    A terminal or a log would act on those.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text
    )


def last_line(errors: str) -> str:
    """The last line of what a program wrote to standard error, such as an exception."""
    return (errors.strip().splitlines() or ["it said nothing"])[-1]


def markdown_cell(text: str) -> str:
    """Text that means nothing to Markdown or HTML, in one line."""
    return re.sub(r"[\\`*_{}\[\]|#~]", r"\\\g<0>", escaped(text))


def escaped(text: str) -> str:
    """Text that means nothing to HTML, in one line; in a summary, Markdown means nothing either."""
    return html.escape(" ".join(text.split()), quote=False)


def command_to_install(extra: str) -> str:
    """What to type to have an extra, from the package index or from a clone."""
    return (
        f"pip install 'optim2optax[{extra}]', or '.[{extra}]' in a clone of optim2optax"
    )
