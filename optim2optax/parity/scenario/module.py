"""The file that a scenario drives."""

from __future__ import annotations

import ast
from pathlib import Path


def module_of(scenario: Path) -> str | None:
    """The path of the file that a scenario drives, from the scenario's folder on.

    The scenario says `module = "train.py"` at its top level. It is None if it does not: then it
    drives the `before.py` and `after.py` beside it.

    Raises:
        SyntaxError: if the scenario is not Python.
        ValueError: if it says that by anything but a string literal.
    """
    tree = ast.parse(scenario.read_bytes(), str(scenario))
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        # module = "../train.py"
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "module" not in names:
            continue
        # The scenario is run later, and here only read.
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        if not isinstance(value, str):
            said = ast.unparse(node)
            raise ValueError(f"`{said}` is not the path of a file as a plain text")
        return value
    return None
