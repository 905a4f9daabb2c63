"""What breaks a promise of a result."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Collection, Iterable

from codemods.inference.scopes import Scopes
from codemods.sources.modules import Unit
from codemods.sources.text import TEXT_OR_COMMENT

OF_MODULES = ("__file__", "__name__", "__doc__")


def _comments(code: str, without: Iterable[range] = ()) -> Counter[str]:
    """The comments of a file, apart from those on some lines (from 1)."""
    if "#" not in code:
        return Counter()
    lines = code.split("\n")
    for skipped in without:
        lines[skipped.start - 1 : skipped.stop - 1] = [""] * len(skipped)
    found = TEXT_OR_COMMENT.finditer("\n".join(lines))
    return Counter(one[0] for one in found if one[0].startswith("#"))


def problem_of(before: Unit, after: Unit, dropped: Collection[int]) -> str:
    """What breaks a promise of the result: empty if it holds all.

    No name is undefined that was not before, and no comment is lost but with the imports on the
    lines that are dropped.
    """
    # a name that was undefined before may stay so
    undefined = undefined_names(after)
    if undefined:
        undefined -= undefined_names(before)
    if undefined:
        return f"undefined: {', '.join(sorted(undefined))}"
    # from flax import optim  # the legacy API
    whole = (
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in before.tree.body
        if node.lineno in dropped
    )
    lost = _comments(before.code, whole) - _comments(after.code)
    return f"the comment `{min(lost)}` would be lost" if lost else ""


def undefined_names(unit: Unit) -> set[str]:
    """The names that nothing defines; none if there is a star import, which may define any."""
    imports = (node for node in unit.nodes if isinstance(node, ast.ImportFrom))
    if any(node.names[0].name == "*" for node in imports):
        return set()
    scopes = Scopes(unit)
    known = {*dir(builtins), *OF_MODULES, *scopes.outermost.names}
    undefined: set[str] = set()
    for node in unit.nodes:
        if not isinstance(node, ast.Name) or node.id in known:
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        scope = scopes.around(node)
        # neither a local variable nor a parameter
        if scope.binding(node.id) is None:
            undefined.add(node.id)
    return undefined
