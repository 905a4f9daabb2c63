"""The `!pip install` and `%pip install` of notebooks."""

from __future__ import annotations

import re

from codemods.sources.notebook import MARKER
from optim2optax.dependencies.declared import Declarations, Section
from optim2optax.dependencies.shell import installs

COMMAND = re.compile(
    r"^[ \t]*[!%](?!%)(?:[^\\\r\n]|\\[ \t]*(?:\r\n|\n)|\\.)*", re.MULTILINE
)
SCRIPT = re.compile(r"%%(?:bash|sh|shell|script (?:ba)?sh)\b")


def read(text: str, path: str) -> Declarations:
    """What the cells of a notebook install."""
    del path
    sections: list[Section] = []
    for opened in MARKER.finditer(text):
        start = opened.end()
        following = MARKER.search(text, start)
        end = following.start() if following else len(text)
        if SCRIPT.match(text, start):  # %%bash: the whole cell is one command
            sections += installs(text, start, end)
        else:
            for command in COMMAND.finditer(text, start, end):
                sections += installs(text, *command.span())
    return Declarations(tuple(sections))
