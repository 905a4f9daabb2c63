"""Whether versions are admitted, in the terms of each tool."""

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


@pytest.mark.parametrize(
    ("spec", "syntax", "expected"),
    [
        (spec, syntax, table is ADMITTED)
        for table in (ADMITTED, LEFT_OUT)
        for syntax, specs in table.items()
        for spec in specs
    ],
)
def test_admits(spec: str, syntax: Syntax, expected: bool) -> None:
    assert admits(spec, "0.8.0", syntax) is expected


@pytest.mark.parametrize(
    ("spec", "syntax"),
    [
        ("new", "poetry"),
        (">=0.2.*", "pep440"),
        ("=0.3=py_0", "conda"),
        ("x", "minor"),
        ("==", "pep440"),
        ("^1 and", "poetry"),
    ],
)
def test_not_understood(spec: str, syntax: Syntax) -> None:
    with pytest.raises(NotUnderstoodError):
        admits(spec, "0.8.0", syntax)


@pytest.mark.parametrize(
    ("spec", "syntax", "expected"),
    [
        *(
            (">=3.7,<4", "pep440", ">=3.9,<4"),
            (">= 3.6.1", "pep440", ">= 3.9"),
            (">3.7", "pep440", ">=3.9"),
        ),
        *(
            ("^3.7", "poetry", "^3.9"),
            (">=3.9", "pep440", None),
            ("^3.10", "poetry", None),
            ("<4", "pep440", None),
        ),
        *(
            ("*", "poetry", None),
            ("^3.7 || ^3.9", "poetry", None),
            ("~=3.7", "pep440", "~=3.9"),
            (">=3.6,>3.7", "pep440", None),
        ),
    ],
)
def test_floors(spec: str, syntax: Syntax, expected: str | None) -> None:
    assert with_floor(spec, "3.9", syntax) == expected


def test_manners() -> None:
    assert at_least("0.8.0", "==0.3", "pep440") == ">=0.8.0"
    assert at_least("0.8.0", "== 0.3", "pep440") == ">= 0.8.0"
    assert at_least("3.9", "3.7", "minor") == "3.9"
