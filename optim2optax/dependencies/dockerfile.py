"""Dockerfiles: the `pip install` of `RUN`, and the Python of the image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from codemods.rules.dependencies import IMAGE
from optim2optax.dependencies.declared import Declarations, Finding, Section, not_read
from optim2optax.dependencies.requirement import ABOUT
from optim2optax.dependencies.shell import installs
from optim2optax.dependencies.versions import admits

# with the lines that a backslash joins, and comments between them
RUN = re.compile(
    r"(?im)^[ \t]*RUN[ \t]+"
    r"(?P<command>(?:[^\\\r\n]|\\[ \t]*(?:\r\n|\n)(?:[ \t]*#.*(?:\r\n|\n))*|\\.)*)"
)
# FROM --platform=linux/amd64 python:3.6-slim
FROM = re.compile(
    r"(?im)^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?(?P<image>(?:[\w.:-]+/)*python:(?P<version>3\.\d+)\S*)"
)


def read(text: str, path: str) -> Declarations:
    """What a Dockerfile installs."""
    del path
    sections: list[Section] = []
    problems: list[Finding] = []
    for found in RUN.finditer(text):
        start, end = found.span("command")
        command = found["command"]
        # RUN ["pip", "install", "flax"]
        if command.startswith(("[", "<<")):
            if "pip" in command and ABOUT.search(command):
                problems.append(not_read((start, end), "It is no line of a shell."))
            continue
        for section, unread in installs(text, start, end):
            sections.append(section)
            problems += unread
    return Declarations(
        tuple(sections), tuple(problems), too_old=partial(_images, text)
    )


def _images(text: str, needs: Mapping[str, str]) -> Iterator[Finding]:
    """The images of a Python that is too old: `FROM python:3.6`."""
    lowest = needs["python"]
    for found in FROM.finditer(text):
        if not admits(found["version"], lowest, "minor"):
            why = f"This image has Python {found['version']}; the new code needs {lowest} or later."
            remedy = "Begin with an image of a later Python."
            yield Finding(IMAGE, found.span("image"), why, remedy=remedy)
