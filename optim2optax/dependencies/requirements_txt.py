"""`requirements.txt` and `constraints.txt`, as pip reads them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    Read,
    Section,
    direct,
    not_read,
)
from optim2optax.dependencies.lists import line_behind
from optim2optax.dependencies.requirement import ABOUT, PLACE, read_requirement

LOGICAL = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|[\s\S])?)*(?:\r\n|\n|\r|$)")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
OPTION = re.compile(r"\s--?[A-Za-z].*$", re.DOTALL)
INCLUDED = re.compile(r"(?:-r|--requirement)[ =]?\s*(?P<path>\S+)")
CONSTRAINTS = re.compile(r"(?:^|[_.-])constraints?(?=[_.-])")


def read(text: str, path: str) -> Declarations:
    """What a file of requirements declares. Nothing can be added to constraints."""
    includes: list[str] = []
    read: list[Read] = []
    for start, line in _lines(text):
        included = INCLUDED.match(line.strip())
        if included:  # -r base.txt
            beside = posixpath.join(posixpath.dirname(path), included["path"])
            includes.append(posixpath.normpath(beside))
            continue
        found = _requirement(line, start)
        if isinstance(found, DeclaredRequirement):
            behind = partial(line_behind, text, found.span[0], start + len(line))
            found = replace(found, behind=behind)
        if found is not None:
            read.append(found)
    are_constraints = CONSTRAINTS.search(posixpath.basename(path)) is not None
    section = Section(tuple(read), are_constraints=are_constraints)
    return Declarations((section,), includes=tuple(includes))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line, with those that a backslash joins to it, and spaces in place of comments."""
    for found in LOGICAL.finditer(text):
        line = found[0].rstrip("\r\n")
        if line.lstrip().startswith("#"):
            continue
        line = COMMENT.sub(lambda comment: " " * len(comment[0]), line)
        if line.strip():
            yield found.start(), line


def _requirement(line: str, start: int) -> Read | None:
    """The requirement in a line that begins at `start`."""
    # as long as before, so that all places stay right
    body = line.replace("\\\r\n", "   ").replace("\\\n", "  ")
    begin = start + len(body) - len(body.lstrip())
    span = (begin, start + len(body.rstrip()))
    named = ABOUT.search(body)
    if body.lstrip().startswith("-"):
        # -e git+https://github.com/google/flax
        if named and re.match(r"\s*(?:-e|--editable)\b", body):
            return direct(span, named["name"])
        return None
    # flax==0.3.4 --hash=sha256:…
    options = OPTION.search(body)
    requirement = body if options is None else body[: options.start()]
    found = read_requirement(requirement, start)
    has_hashes = options is not None and "--hash" in options[0]
    if isinstance(found, DeclaredRequirement) and has_hashes:
        return replace(found, is_hashed=True)
    # jax==${JAX_VERSION}, but not jax @ file://${WHEELS}/jax.whl
    is_computed = "$" in requirement and not PLACE.search(requirement)
    if isinstance(found, Finding) and is_computed:
        return not_read(span, "The version is taken from the environment.")
    return found
