"""Scripts that run a scenario or a command again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TEMPLATE = """\
{comments}import subprocess
import sys

arguments = [
{words}]
sys.exit(subprocess.call([sys.executable, "-m", "optim2optax", "parity", *arguments]))
"""


def repetition(arguments: Sequence[str], remarks: Sequence[str]) -> str:
    """A script that runs a scenario or a command again.

    Args:
        arguments: of `optim2optax parity`, in the folder where it was run.
        remarks: lines on the two sides, which become comments of the script.
    """
    comments = "".join(f"# {' '.join(line.split())}\n" for line in remarks)
    words = "".join(f"    {word!r},\n" for word in arguments)
    return TEMPLATE.format(comments=comments, words=words)


def as_words(options: Mapping[str, Sequence[Any]]) -> list[str]:
    """Options as words of a command line: each is given once for each value that is not None."""
    words: list[str] = []
    for name, values in options.items():
        for value in values:
            if value is not None:
                words += [name, str(value)]
    return words
