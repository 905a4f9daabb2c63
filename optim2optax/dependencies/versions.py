"""Whether what is declared admits a version that is needed, or any later one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from optim2optax.dependencies.declared import Syntax

FAR = Version("99999")
"""Later than any version: admitted if there is no upper bound."""

CLAUSE = re.compile(
    r"(?P<operator>===|[=<>!~]=|[<>=^~])?\s*v?(?P<version>[^\s<>=!~^|,]+)"
)
LOWER = ("", "^", "~", "~=", ">=", ">")
UPPER = ("<", "<=", "!=")


class NotUnderstoodError(ValueError):
    """The versions are written in an unknown way."""


def admits(spec: str, lowest: str, syntax: Syntax) -> bool:
    """Whether a version of at least `lowest` may be admitted. Raises NotUnderstoodError."""
    try:
        alternatives = _alternatives(spec, syntax)
        return any(_reaches(one, Version(lowest)) for one in alternatives)
    except (InvalidSpecifier, InvalidVersion) as error:
        raise NotUnderstoodError(
            f"`{spec.strip()}` is no version that is understood"
        ) from error


def at_least(lowest: str, like: str, syntax: Syntax) -> str:
    """`>=` with a version, with the blanks of the specification that stands there."""
    if syntax == "minor":
        return lowest
    found = re.match(r"[=<>!~^]+(\s*)", like)
    gap = found[1] if found else ""
    return f">={gap}{lowest}"


def with_floor(spec: str, lowest: str, syntax: Syntax) -> str | None:
    """The specification with its lower bound raised to `lowest`.

    None if it has no lower bound, or one that is high enough.
    """
    floors = [
        found for found in CLAUSE.finditer(spec) if (found["operator"] or "") in LOWER
    ]
    # of several bounds none is raised: >=0.2,>=0.3, or ^0.2 || ^0.3
    if len(floors) != 1 or "|" in spec:
        return None
    [floor] = floors
    # `1.2` is a lower bound for Poetry, and one exact version for all others
    if not floor["operator"] and syntax != "poetry":
        return None
    if floor["version"] == "*":
        return None
    if Version(floor["version"].removesuffix(".*")) >= Version(lowest):
        return None
    start, end = floor.span("version")
    raised = f"{spec[:start]}{lowest}{spec[end:]}"
    if floor["operator"] == ">":
        # the lowest version itself is good enough
        return raised.replace(">", ">=", 1)
    return raised


def floored(spec: str, lowest: str, syntax: Syntax) -> str | None:
    """The specification with a lower bound of `lowest`, be it raised or new.

    None if it has one that is high enough, or is exact.
    """
    operators = [found["operator"] or "" for found in CLAUSE.finditer(spec)]
    if spec.strip() in ("", "*"):
        return at_least(lowest, spec, syntax)
    if "|" not in spec and all(operator in UPPER for operator in operators):
        # `<0.5` has only an upper bound
        return f"{at_least(lowest, spec, syntax)},{spec}"
    return with_floor(spec, lowest, syntax)


def _reaches(spec: SpecifierSet, lowest: Version) -> bool:
    """Whether a version is admitted from `lowest` on.

    If so, one of the bounds is, or one of the versions that come next after them.
    """
    tried = {FAR, *_from(lowest)}
    for clause in spec:
        tried.update(_from(Version(clause.version.removesuffix(".*"))))
    return any(
        version >= lowest and spec.contains(version, prereleases=True)
        for version in tried
    )


def _from(bound: Version) -> Iterator[Version]:
    """A version, and those that may come next: of 1.2, these are 1.2.0.0.1, 2 and 1.3."""
    yield bound
    yield Version(f"{bound.base_version}.0.0.1")
    for length in range(1, len(bound.release) + 1):
        *head, last = bound.release[:length]
        yield Version(".".join(map(str, (*head, last + 1))))


def _alternatives(spec: str, syntax: Syntax) -> list[SpecifierSet]:
    if spec.strip() in ("", "*"):
        return [SpecifierSet()]
    if syntax == "pep440":
        return [SpecifierSet(spec)]
    if syntax == "minor":
        # python_version = "3.9" of a Pipfile, or python:3.9 of an image
        return [SpecifierSet(f"=={Version(spec)}.*")]
    # ^1.2 || ^2.0 of Poetry, 1.2|1.3 of conda
    alternatives = re.split(r"\s*\|\|?\s*", spec.strip())
    clauses = [_clauses(alternative, syntax) for alternative in alternatives]
    return [SpecifierSet(",".join(one)) for one in clauses]


def _clauses(alternative: str, syntax: Syntax) -> Iterator[str]:
    """The clauses of Poetry and conda in the terms of PEP 440."""
    rest = CLAUSE.sub("", alternative)
    if rest.strip(" ,"):
        raise NotUnderstoodError(f"`{alternative}` is no version that is understood")
    for found in CLAUSE.finditer(alternative):
        operator = found["operator"] or ""
        version = found["version"]
        if version == "*":
            continue
        if operator == "^":
            # ^1.2 is >=1.2,<2
            yield f">={version}"
            yield f"<{_next_breaking(Version(version))}"
        elif operator == "~":
            # ~1.2.3 is >=1.2.3,==1.2.*
            yield f">={version}"
            minor = ".".join(map(str, Version(version).release[:2]))
            yield f"=={minor}.*"
        elif operator == "=" and syntax == "conda":
            # =1.2 is any 1.2 for conda
            yield f"=={version.removesuffix('.*').removesuffix('*')}.*"
        elif operator in ("", "="):
            yield f"=={version}"
        elif operator in ("==", "!="):
            yield f"{operator}{version}"
        else:
            # >=1.2.* is no specification of PEP 440
            yield f"{operator}{version.removesuffix('.*')}"


def _next_breaking(version: Version) -> str:
    """The first version that `^` excludes.

    The first number that is not 0 counts one up, and the last if all are 0.
    """
    release = version.release
    last = len(release) - 1
    # of ^0.2.3 it is 0.3, of ^1.2 it is 2
    index = next((index for index, number in enumerate(release) if number), last)
    numbers = (*release[:index], release[index] + 1)
    return ".".join(map(str, numbers))
