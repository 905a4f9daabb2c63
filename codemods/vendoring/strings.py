"""The strings of a file that name a module, or have its name in an annotation."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from codemods.sources.modules import Unit
from codemods.vendoring.splicing import Splice, extent

IMPORTING = ("import_module", "__import__")


def quoted_annotations(unit: Unit) -> Iterator[ast.Constant]:
    """The strings that are annotations, or parts of them."""
    for node in unit.nodes:
        match node:
            # optimizer: "optim.Optimizer"
            case (
                ast.AnnAssign(annotation=annotation)
                | ast.arg(annotation=ast.expr() as annotation)
            ):
                yield from _strings(annotation)
            # def create() -> "optim.Optimizer"
            case (
                ast.FunctionDef(returns=ast.expr() as returns)
                | ast.AsyncFunctionDef(returns=ast.expr() as returns)
            ):
                yield from _strings(returns)


def names_in_strings(
    unit: Unit, old: Collection[str], new: str
) -> Iterator[tuple[int, Splice]]:
    """The new texts of other strings that are a name of a module, or of something in it.

    There may be a dot at the end, or a colon in the place of one. Each comes with its line.
    """
    names = "|".join(map(re.escape, old))
    whole = re.compile(rf"(?:{names})((?:[.:]\w+)*[.:]?)")
    others = {*quoted_annotations(unit), *_parts(unit)}
    for node in unit.nodes:
        if not isinstance(node, ast.Constant) or node in others:
            continue
        if not isinstance(node.value, str):
            continue
        match = whole.fullmatch(node.value)
        if match is None:
            continue
        start, end = extent(unit, node)
        # "flax" ".optim" has the name nowhere in its source
        if unit.code.count(node.value, start, end) == 1:
            first = unit.code.index(node.value, start)
            last = first + len(node.value)
            yield node.lineno, (first, last, new + match[1])


def _parts(unit: Unit) -> Iterator[ast.AST]:
    """The parts of formatted strings, and of calls that return the package around a module."""
    for node in unit.nodes:
        if isinstance(node, ast.JoinedStr) or _gives_package(node):
            yield from ast.walk(node)


def imported_by(call: ast.Call) -> str:
    """The module that a call imports by its name; empty for other calls."""
    match call:
        # importlib.import_module("flax.optim")
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(attr=function),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return name if function in IMPORTING and not _gives_package(call) else ""
    return ""


def _gives_package(node: ast.AST) -> bool:
    """Whether this is `__import__("a.b")`, which returns the outermost package, `a`."""
    match node:
        case ast.Call(func=ast.Name(id="__import__"), args=[_], keywords=[]):
            return True
    return False


def _strings(annotation: ast.expr) -> Iterator[ast.Constant]:
    return (
        node
        for node in ast.walk(annotation)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
