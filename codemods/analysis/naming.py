"""What names suggest: never a proof, but a doubt or a likelihood."""

from __future__ import annotations

import ast
import re

OPTIMIZER_LIKE = re.compile(
    r"(^|_)(opt|optim|optimizer|optimiser)s?\d*(_|$)", re.IGNORECASE
)
CONFIG_LIKE = re.compile(
    r"(^|_)(config|cfg|conf|args|flags|hparams|options|settings)(_|$)", re.IGNORECASE
)


def last_word(node: ast.expr) -> str:
    """The name that an expression ends with: of a variable, an attribute or a key."""
    match node:
        case (
            ast.Name(id=name)
            | ast.Attribute(attr=name)
            | ast.Subscript(slice=ast.Constant(value=str(name)))
        ):
            return name
        case _:
            return ""
