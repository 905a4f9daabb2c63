"""Whether versions are admitted, in the terms of each tool."""

from collections.abc import Iterable, Mapping

import pytest

from optim2optax.dependencies.declared import Syntax
from optim2optax.dependencies.versions import (
    NotUnderstoodError,
    admits,
    at_least,
    with_floor,
)

ADMITTED: dict[Syntax, tuple[str, ...]] = {
    "pep440": (
        "", ">=0.3", "==0.8.0", "==0.10.2", "<0.8.0.1", "<=0.8", "~=0.3", "==0.*", "!=0.8.0",
        ">0.8.0,<0.8.1", ">=0.3,!=0.8.*,!=0.9.*",
    ),
    "poetry": ("^0.8", "^0", "~0", "^0.3 || ^0.9", "*", "^1.2"),
    "conda": ("=0.8", "==0.8", "0.8.*", "=0.8*", "<0.4|>=0.9", "1.2"),
}  # fmt: skip
LEFT_OUT: dict[Syntax, tuple[str, ...]] = {
    "pep440": ("<0.8", "~=0.3.4", "==0.8.0rc1", ">0.7,<0.8"),
    "poetry": ("^0.3.4", "^0.0.3", "~0.7", "0.3.4", "0.3.*", ">=0.3 <0.5"),
    "conda": ("=0.3", ">=0.3,<0.8.0"),
}


NOT_UNDERSTOOD: dict[Syntax, tuple[str, ...]] = {
    "pep440": (">=0.2.*", "=="),
    "poetry": ("new", "^1 and"),
    "conda": ("=0.3=py_0",),
    "minor": ("x",),
}
FLOORS: dict[Syntax, dict[str, str | None]] = {
    "pep440": {
        ">=3.7,<4": ">=3.9,<4", ">= 3.6.1": ">= 3.9", ">3.7": ">=3.9", ">=3.9": None, "<4": None,
        "~=3.7": "~=3.9", ">=3.6,>3.7": None,
    },
    "poetry": {"^3.7": "^3.9", "^3.10": None, "*": None, "^3.7 || ^3.9": None},
}  # fmt: skip


def rows(table: Mapping[Syntax, Iterable[str]]) -> list[tuple[Syntax, str]]:
    return [(syntax, spec) for syntax, specs in table.items() for spec in specs]


@pytest.mark.parametrize(("syntax", "spec"), [*rows(ADMITTED), *rows(LEFT_OUT)])
def test_admits(syntax: Syntax, spec: str) -> None:
    assert admits(spec, "0.8.0", syntax) is (spec in ADMITTED[syntax])


@pytest.mark.parametrize(("syntax", "spec"), rows(NOT_UNDERSTOOD))
def test_not_understood(syntax: Syntax, spec: str) -> None:
    with pytest.raises(NotUnderstoodError):
        admits(spec, "0.8.0", syntax)


@pytest.mark.parametrize(("syntax", "spec"), rows(FLOORS))
def test_floors(syntax: Syntax, spec: str) -> None:
    assert with_floor(spec, "3.9", syntax) == FLOORS[syntax][spec]


def test_manners() -> None:
    assert at_least("0.8.0", "==0.3", "pep440") == ">=0.8.0"
    assert at_least("0.8.0", "== 0.3", "pep440") == ">= 0.8.0"
    assert at_least("3.9", "3.7", "minor") == "3.9"
