"""What breaks a promise of a result."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections import Counter
from collections.abc import Iterable

from codemods.inference.scopes import Scopes
from codemods.rewriting.imports import ImportedName
from codemods.rewriting.legacy_shapes import shapes_in, too_many
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse

OF_MODULES = ("__file__", "__name__", "__doc__")


def _comments(code: str, without: set[int]) -> Counter[str]:
    """The comments of a file, apart from those of some statements, by their first lines."""
    if "#" not in code:
        return Counter()
    # all lines of `from flax import (`
    skipped = set(without)
    for node in parse(code).body:
        if node.lineno in without:
            last = node.end_lineno or node.lineno
            skipped.update(range(node.lineno, last + 1))
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    found: Counter[str] = Counter()
    for token in tokens:
        line, _ = token.start
        if token.type == tokenize.COMMENT and line not in skipped:
            found[token.string] += 1
    return found


def problem_of(
    before: str, after: str, allowed: Counter[str], drop: Iterable[ImportedName]
) -> str:
    """What breaks a promise of the result: empty if it holds all.

    It parses, no name is undefined that was not before, no comment is lost but with the imports
    that are dropped, and nothing is used as only a legacy object can be but what is `allowed`:
    what was left for a reason, and what helpers do.
    """
    try:
        tree = parse(after)
    except SyntaxError as error:
        return f"does not parse: {error}"
    # a name that was undefined before may stay so
    undefined = undefined_names(Unit("", after, tree))
    if undefined:
        undefined -= undefined_names(Unit("", before, parse(before)))
    if undefined:
        return f"undefined: {', '.join(sorted(undefined))}"
    if shape := too_many(allowed, shapes_in(ast.walk(tree))):
        return f"something is still used as a legacy object is: `{shape}`"
    # from flax import optim  # the legacy API
    dropped = {name.line for name in drop}
    lost = _comments(before, dropped) - _comments(after, set())
    return f"the comment `{min(lost)}` would be lost" if lost else ""


def undefined_names(unit: Unit) -> set[str]:
    """The names that a module reads and that neither it nor `builtins` defines.

    There are none if it has a star import, which may define any name.
    """
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
