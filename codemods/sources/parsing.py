"""Syntax trees, without warnings of the compiler and without a search for garbage."""

from __future__ import annotations

import ast
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

DEEPEST = 1_000


def parse(code: str) -> ast.Module:
    """The syntax tree, without the warnings of the compiler about escapes in strings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def nests_deeply(tree: ast.Module) -> bool:
    """Whether the parser of LibCST, which is native and recursive, might overflow the stack.

    What is flat for `ast` may be deep for it: `a and b and c`, a dotted name.
    """
    level: list[ast.AST] = [tree]
    depth = 0
    # Level by level, as a recursion would be too deep itself.
    while level and depth <= DEEPEST:
        depth += 1
        level = [*chain.from_iterable(map(ast.iter_child_nodes, level))]
        if any(map(_is_long, level)):
            return True
    return depth > DEEPEST


def _is_long(node: ast.AST) -> bool:
    match node:
        # a or b or c, …
        case ast.BoolOp(values=values):
            return len(values) > DEEPEST
        # import a.b.c…
        case ast.alias(name=str(name)) | ast.ImportFrom(module=str(name)):
            return name.count(".") > DEEPEST
    return False


@contextmanager
def uncollected() -> Iterator[None]:
    """Do without the search for cycles of garbage.

    It takes a third of a run and finds next to none.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
