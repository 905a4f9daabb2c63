"""What a program does with the leaves of a tree.

The order of the leaves may change, and there may be one more: the result has to be the same.
"""

from __future__ import annotations

import ast

from codemods.analysis.naming import last_word
from codemods.analysis.origins import function_of
from codemods.analysis.queries import Queries
from codemods.sources.modules import Unit

COMMUTATIVE = frozenset(
    f"builtins.{name}"
    for name in ("all", "any", "len", "max", "min", "set", "sorted", "sum")
)
"""Functions with the same result for any order of the elements."""

ADDING = frozenset(("builtins.len", "builtins.sorted", "builtins.sum"))
"""Those of them with another result if there is one element more."""


def in_any_order(call: ast.Call, facts: Queries, counts: bool) -> bool:
    """Whether the order of the leaves that a call returns makes no difference.

    Args:
        call: what returns them, as a list or beside the tree's structure.
        facts: what is known of the project.
        counts: whether there may be more of them than there were.
    """
    unit = facts.scope(call).unit
    around = function_of(unit, call) or unit.tree
    uses: list[ast.expr] = [call]
    is_whole = False
    match unit.parents.get(call):
        # leaves = jax.tree_util.tree_leaves(tree)
        case ast.Assign(targets=[ast.Name(id=leaves)]):
            uses = _reads(leaves, around)
        # leaves, structure = jax.tree_util.tree_flatten(tree)
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=leaves), ast.Name(id=structure)])]
        ):
            uses = _reads(leaves, around)
            is_whole = _are_put_together(around, structure)
    return all(
        _is_harmless(one, unit, facts, counts)
        or (is_whole and _goes_with_its_structure(one, unit))
        for one in uses
    )


def _reads(name: str, around: ast.AST) -> list[ast.expr]:
    return [
        node
        for node in ast.walk(around)
        if isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
    ]


def _is_harmless(leaves: ast.expr, unit: Unit, facts: Queries, counts: bool) -> bool:
    """Whether the order of leaves, and perhaps one more, makes no difference at an expression."""
    node: ast.AST = leaves
    parent = unit.parents.get(node)
    # sum(leaf.size for leaf in leaves)
    if isinstance(parent, ast.comprehension) and parent.iter is leaves:
        node = unit.parents[parent]
        parent = unit.parents.get(node)
        if not isinstance(node, ast.GeneratorExp | ast.ListComp):
            return False
    match parent:
        case ast.Call(func=function, args=[first], keywords=[]) if first is node:
            names = {*facts.externals(function)}
            functions = COMMUTATIVE - ADDING if counts else COMMUTATIVE
            return bool(names) and names <= functions
        # for leaf in leaves: total += leaf.size
        case ast.For(iter=iterated) if iterated is node:
            return not any(_keeps_order(inner, counts) for inner in ast.walk(parent))
    return isinstance(parent, ast.Expr)


def _keeps_order(node: ast.AST, counts: bool) -> bool:
    """Whether something in a loop may depend on the iterations before."""
    match node:
        case ast.AugAssign():
            return counts
        case ast.Break() | ast.Return() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            return True
        # sizes.append(leaf.size)
        case ast.Attribute(attr=name):
            return name in ("append", "extend", "insert", "write")
    return False


def _are_put_together(around: ast.AST, structure: str) -> bool:
    """Whether the structure that comes with the leaves puts a tree together again."""
    for node in ast.walk(around):
        match node:
            # structure.unflatten(leaves), jax.tree_util.tree_unflatten(structure, leaves)
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="unflatten"))
                | ast.Call(
                    func=ast.Name(id="tree_unflatten")
                    | ast.Attribute(attr="tree_unflatten" | "unflatten"),
                    args=[ast.Name(id=name), *_],
                )
            ) if name == structure:
                return True
    return False


def _goes_with_its_structure(node: ast.expr, unit: Unit) -> bool:
    """Whether a list of leaves stays beside the structure of its tree: no leaf is picked out."""
    parent = unit.parents.get(node)
    match parent:
        # range(len(leaves)), assert len(names) == len(leaves)
        case ast.Call(func=ast.Name(id="len")):
            around = unit.parents.get(parent)
            is_range = (
                isinstance(around, ast.Call) and last_word(around.func) == "range"
            )
            return is_range or isinstance(around, ast.Compare)
        # zip(names, leaves), structure.unflatten(leaves)
        case ast.Call(func=function):
            return last_word(function) in ("zip", "map", "unflatten", "tree_unflatten")
    return isinstance(parent, ast.comprehension)
