"""What a program does with the leaves of a tree: whether it does the same with them in another order, or with one more."""

from __future__ import annotations

import ast

from codemods.analysis.origins import function_of
from codemods.analysis.queries import Queries
from codemods.flow.objects import LEAVES, Container
from codemods.sources.modules import Unit
from codemods.vocabulary import EITHER, HAND_THROUGH, MAP_TREES, REDUCE_TREES

COMMUTATIVE = frozenset(
    f"builtins.{name}" for name in ("all", "any", "len", "max", "min", "set", "sorted", "sum")
)
"""What gives the same for any order of what it goes through."""

ADDING = frozenset(("builtins.len", "builtins.sorted", "builtins.sum"))
"""What of these gives something else if there is one more."""

SAME = HAND_THROUGH | {"builtins.list", "builtins.tuple", "builtins.iter"}
"""What gives the elements that it is given, in their order: these are followed."""

REDUCING = REDUCE_TREES | {"functools.reduce"}


def in_any_order(call: ast.Call, facts: Queries, counts: bool) -> bool:
    """Whether the leaves that a call gives are used alike in any order, wherever they go.

    Args:
        call: what gives them, as a list or beside the tree's structure.
        facts: what is known of the project.
        counts: whether there may be more of them than there were.
    """
    functions = COMMUTATIVE - ADDING if counts else COMMUTATIVE
    followed = {Container(call, LEAVES)}
    pending = True
    while pending:
        nodes = dict.fromkeys(
            node for container in followed for node in facts.holders.get(container, ())
        )
        uses = [(facts.scope(node).unit, node) for node in nodes if _holds(node, followed, facts)]
        if not all(_is_harmless(node, unit, followed, facts, functions) for unit, node in uses):
            return False
        mapped = {
            Container(made)
            for unit, node in uses
            if (made := _comprehension(node, unit)) is not None
        }
        pending = not mapped <= followed
        followed |= mapped
    return True


def _holds(node: ast.AST, followed: set[Container], facts: Queries) -> bool:
    """Whether an expression stands for one of the lists, and not for something else that only might be one."""
    at = facts.flow.solver.at
    found = (
        at(facts.flow.places[node])
        if isinstance(node, ast.expr) and node in facts.flow.places
        else ()
    )
    others = (
        item for item in found if item not in followed and getattr(item, "role", "") != LEAVES
    )
    return not followed.isdisjoint(found) and not any(at(("elements", item)) for item in others)


def _comprehension(node: ast.AST, unit: Unit) -> ast.AST | None:
    """The comprehension that goes through what an expression holds."""
    parent = unit.parents.get(node)
    return (
        unit.parents.get(parent)
        if isinstance(parent, ast.comprehension) and node is parent.iter
        else None
    )


def _is_harmless(
    node: ast.AST, unit: Unit, followed: set[Container], facts: Queries, functions: frozenset[str]
) -> bool:
    """Whether an expression hands on what it holds, or uses it in a way that gives the same for any order."""
    parent = unit.parents.get(node)
    match parent:
        case ast.Call(func=function, args=[_, first, *_]) if MAP_TREES & {
            *facts.externals(function)
        }:
            return node is first or _holds(first, followed, facts)
        case ast.Call():
            return node is not parent.func and _takes(parent, facts, functions)
        case ast.keyword():
            call = unit.parents.get(parent)
            return isinstance(call, ast.Call) and _takes(call, facts, frozenset())
        case ast.comprehension():
            return node is parent.iter and isinstance(
                unit.parents.get(parent), ast.GeneratorExp | ast.ListComp
            )
        case ast.For():
            adds = functions >= ADDING
            return node is parent.iter and not any(
                _keeps_order(inner, adds) for inner in ast.walk(parent)
            )
        case ast.Assign(targets=targets):
            return not any(isinstance(target, ast.Tuple | ast.List) for target in targets)
        case (
            ast.Tuple(ctx=ast.Load())
            | ast.List(ctx=ast.Load())
            | ast.Dict()
            | ast.IfExp()
            | ast.BoolOp()
        ):
            return True
        case ast.Return():  # to callers that are in view, or none is
            around = function_of(unit, parent)
            return around is not None and bool(facts.flow.entered[around])
        case (
            ast.Expr()
            | ast.AnnAssign()
            | ast.NamedExpr()
            | ast.arguments()
            | ast.Lambda()
            | ast.If()
            | ast.While()
        ):
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _takes(call: ast.Call, facts: Queries, functions: frozenset[str]) -> bool:
    """Whether a function does alike with what it is given in any order.

    What one in view does is seen there; to one of which nothing is known, such as a logger's, the order means nothing.
    """
    names = {*facts.externals(call.func)}
    if names & REDUCING:
        return reduces_in_any_order(call, facts)
    by_key = any(word.arg == "key" for word in call.keywords)  # among equals by their order
    return not by_key and names <= functions | SAME


def _keeps_order(node: ast.AST, adds: bool) -> bool:
    """Whether something in a loop may depend on what came before it."""
    if isinstance(node, ast.AugAssign):
        return not adds
    return isinstance(
        node,
        ast.Break
        | ast.Return
        | ast.Yield
        | ast.YieldFrom
        | ast.Assign
        | ast.AnnAssign
        | ast.NamedExpr,
    ) or (isinstance(node, ast.Attribute) and node.attr in ("append", "extend", "insert", "write"))


def reduces_in_any_order(call: ast.Call, facts: Queries) -> bool:
    """Whether a reduction over a tree or a list gives the same for any order of its leaves, and for one that is met twice."""
    function = call.args[0] if call.args else None
    match function:
        case ast.Lambda(args=ast.arguments(args=[left, right]), body=body):
            operands: list[ast.expr] = []
            match body:
                case ast.BoolOp():
                    operands = body.values
                case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                    operands = [body.left, body.right]
                case ast.Call(keywords=[]) if EITHER & {*facts.externals(body.func)}:
                    operands = body.args
            names = [operand.id for operand in operands if isinstance(operand, ast.Name)]
            return len(operands) == 2 and {*names} == {left.arg, right.arg}
        case ast.expr():
            return bool(EITHER & {*facts.externals(function)})
    return False
