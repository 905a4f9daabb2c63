"""Whether what is declared admits a version that is needed, or any later one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from optim2optax.dependencies.declared import Syntax

FAR = Version("99999")
CLAUSE = re.compile(r"(?P<operator>===|[=<>!~]=|[<>=^~])?\s*v?(?P<version>[^\s<>=!~^|,]+)")
LOWER = ("", "^", "~", "~=", ">=", ">")
UPPER = ("<", "<=", "!=")


class NotUnderstoodError(ValueError):
    """The versions are written in a way that is not known here."""


def admits(spec: str, lowest: str, syntax: Syntax) -> bool:
    """Whether there may be a version of at least `lowest` that is admitted. Raises NotUnderstoodError."""
    try:
        return any(
            _reaches(alternative, Version(lowest)) for alternative in _alternatives(spec, syntax)
        )
    except (InvalidSpecifier, InvalidVersion) as error:
        raise NotUnderstoodError(f"`{spec.strip()}` is no version that is understood") from error


def at_least(lowest: str, like: str, syntax: Syntax) -> str:
    """`>=` with a version, in the manner of what stands there."""
    if syntax == "minor":
        return lowest
    found = re.match(r"[=<>!~^]+(\s*)", like)
    return f">={found[1] if found else ''}{lowest}"


def with_floor(spec: str, lowest: str, syntax: Syntax) -> str | None:
    """What is declared, with the lowest version raised to one that is needed; None if it is not below that, or has none."""
    floors = [found for found in CLAUSE.finditer(spec) if (found["operator"] or "") in LOWER]
    if len(floors) != 1 or "|" in spec or (not floors[0]["operator"] and syntax != "poetry"):
        return None
    [floor] = floors
    if floor["version"] == "*" or Version(floor["version"].removesuffix(".*")) >= Version(lowest):
        return None
    start, end = floor.span("version")
    raised = f"{spec[:start]}{lowest}{spec[end:]}"
    return raised if floor["operator"] != ">" else raised.replace(">", ">=", 1)


def floored(spec: str, lowest: str, syntax: Syntax) -> str | None:
    """What is declared, with a lowest version, be it raised or new; None if it has one that is high enough, or is exact."""
    operators = [found["operator"] or "" for found in CLAUSE.finditer(spec)]
    if spec.strip() in ("", "*"):
        return at_least(lowest, spec, syntax)
    if "|" not in spec and all(operator in UPPER for operator in operators):
        return f"{at_least(lowest, spec, syntax)},{spec}"
    return with_floor(spec, lowest, syntax)


def _reaches(spec: SpecifierSet, lowest: Version) -> bool:
    """Each bound is tried, and what comes next after it: if any version is admitted from `lowest` on, one of these is."""
    bounds = [lowest, *(Version(clause.version.removesuffix(".*")) for clause in spec)]
    tried = {FAR, *(version for bound in bounds for version in _from(bound))}
    return any(version >= lowest and spec.contains(version, prereleases=True) for version in tried)


def _from(bound: Version) -> Iterator[Version]:
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
        return [SpecifierSet(f"=={Version(spec)}.*")]
    alternatives = re.split(r"\s*\|\|?\s*", spec.strip())
    return [SpecifierSet(",".join(_clauses(alternative, syntax))) for alternative in alternatives]


def _clauses(alternative: str, syntax: Syntax) -> Iterator[str]:
    """The clauses of Poetry and conda in the terms of PEP 440."""
    rest = CLAUSE.sub("", alternative)
    if rest.strip(" ,"):
        raise NotUnderstoodError(f"`{alternative}` is no version that is understood")
    for found in CLAUSE.finditer(alternative):
        operator, version = found["operator"] or "", found["version"]
        if version == "*":
            continue
        if operator == "^":
            yield from (f">={version}", f"<{_next_breaking(Version(version))}")
        elif operator == "~":
            yield f">={version}"
            yield f"=={'.'.join(map(str, Version(version).release[:2]))}.*"
        elif operator == "=" and syntax == "conda":
            yield f"=={version.removesuffix('.*').removesuffix('*')}.*"
        elif operator in ("", "="):
            yield f"=={version}"
        else:
            yield f"{operator}{version if operator in ('==', '!=') else version.removesuffix('.*')}"


def _next_breaking(version: Version) -> str:
    """The first version that `^` excludes: the first number that is not 0, and the last if all are, counts one up."""
    release = version.release
    index = next((index for index, number in enumerate(release) if number), len(release) - 1)
    return ".".join(map(str, (*release[:index], release[index] + 1)))
