"""What the names in a source text are: of Python, of packages, or of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

KNOWN_MODULES = (
    "collections",
    "dataclasses",
    "flax",
    "functools",
    "jax",
    "jnp",
    "math",
    "np",
    "numpy",
    "onp",
    "optax",
    "optim",
    "typing",
)


def names_in(text: str, mode: str = "eval") -> Iterator[str]:
    """The names in a source text."""
    for node in ast.walk(ast.parse(text, mode=mode)):
        if isinstance(node, ast.Name):
            yield node.id


def root_of(node: ast.expr) -> ast.expr:
    """The innermost expression that attributes, items and calls start at."""
    # `config` of `config.schedules["train"](step).value`
    while True:
        match node:
            case (
                ast.Attribute(value=inner)
                | ast.Subscript(value=inner)
                | ast.Call(func=inner)
            ):
                node = inner
            case _:
                return node


def constructor(node: ast.AST) -> str:
    """The last name of what a call calls, such as `Adam` of `optim.Adam(1e-3)`; else empty."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).rpartition(".")[2]
