"""Ways to use an object by which it shows itself a legacy one."""

from __future__ import annotations

import ast

from codemods.sources.modules import Unit

PURPOSES = {
    "apply_gradient": "optimizer",
    "optimize": "optimizer",
    "create": "definition",
}
"""The methods for which objects of a kind are made."""


def replaces_target(unit: Unit, node: ast.Attribute) -> bool:
    """Whether this is the method in `x.replace(target=…)`."""
    call = unit.parents.get(node)
    return (
        node.attr == "replace"
        and isinstance(call, ast.Call)
        and call.func is node
        and any(word.arg == "target" for word in call.keywords)
    )
