"""What a program does with the leaves of a tree.

The order of the leaves may change, and there may be one more: the result has to be the same.
"""

from __future__ import annotations

import ast
from itertools import chain

from codemods.analysis.naming import last_word
from codemods.analysis.origins import function_of, names_within
from codemods.analysis.queries import Queries
from codemods.inference.jax_functions import LEAVES
from codemods.inference.objects import Container
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    EITHER,
    HAND_THROUGH,
    MAP_TREES,
    REDUCE_TREES,
    full_names,
)

COMMUTATIVE = full_names("builtins", "all any len max min set sorted sum")
"""Functions with the same result for any order of the elements."""

ADDING = full_names("builtins", "len sorted sum")
"""Those of them with another result if there is one element more."""

SAME = HAND_THROUGH | {"builtins.list", "builtins.tuple", "builtins.iter"}
"""Functions that return the given elements in their order: their results are followed."""

REDUCING = REDUCE_TREES | {"functools.reduce"}


def in_any_order(call: ast.Call, facts: Queries, counts: bool) -> bool:
    """Whether the order of the leaves that a call returns makes no difference anywhere.

    Args:
        call: what returns them, as a list or beside the tree's structure.
        facts: what is known of the project.
        counts: whether there may be more of them than there were.
    """
    functions = COMMUTATIVE - ADDING if counts else COMMUTATIVE
    is_rebuilt = _is_rebuilt(call, facts)
    followed = {Container(call, LEAVES)}
    handed: set[ast.expr] = set()
    before: tuple[set[Container], set[ast.expr]] | None = None
    while (followed, handed) != before:
        before = {*followed}, {*handed}
        holding = chain(*map(facts.holders, before[0]), before[1])
        for node in dict.fromkeys(holding):
            unit = facts.scope(node).unit
            if not _holds(node, followed, facts) or (
                is_rebuilt and _goes_with_its_structure(node, unit)
            ):
                continue
            if not _is_harmless(node, unit, followed, facts, functions):
                return False
            # [leaf.size for leaf in leaves] is followed, too.
            match unit.parents.get(node):
                case ast.comprehension(iter=iterated) as parent if iterated is node:
                    followed.add(Container(unit.parents[parent]))
                case ast.Call() as parent if _maps(parent, facts):
                    followed.add(Container(parent, "map"))
                # list(leaves)[1]
                case ast.Call() as parent if SAME & {*facts.externals(parent.func)}:
                    handed.add(parent)
    return True


def _is_rebuilt(call: ast.Call, facts: Queries) -> bool:
    """Whether the structure that comes with the leaves puts a tree together again.

    ```
    leaves, structure = jax.tree_util.tree_flatten(tree)
    named = name(structure.unflatten(range(len(leaves))))
    ```
    """
    unit = facts.scope(call).unit
    match unit.parents.get(call):
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=structure)])]):
            pass
        case _:
            return False
    # structure.unflatten(leaves), jax.tree_util.tree_unflatten(structure, leaves)
    return any(
        isinstance(node, ast.Call)
        and last_word(node.func).endswith("unflatten")
        and structure in names_within(node)
        for node in ast.walk(function_of(unit, call) or unit.tree)
    )


def _goes_with_its_structure(node: ast.AST, unit: Unit) -> bool:
    """Whether a list of leaves stays beside the structure of its tree: no leaf is picked out."""
    match unit.parents.get(node):
        # range(len(leaves)), assert len(names) == len(leaves)
        case ast.Call(func=ast.Name(id="len")) as parent:
            around = unit.parents.get(parent)
            is_range = (
                isinstance(around, ast.Call) and last_word(around.func) == "range"
            )
            return is_range or isinstance(around, ast.Compare)
        # zip(names, leaves), structure.unflatten(leaves)
        case ast.Call(func=function):
            return last_word(function) in ("zip", "map", "unflatten", "tree_unflatten")
        case ast.comprehension():
            return True
    return False


def _holds(node: ast.AST, followed: set[Container], facts: Queries) -> bool:
    """Whether an expression stands for one of the lists, and for no other list."""
    at = facts.flow.solver.at
    found = at(facts.flow.places.read(node))
    return not followed.isdisjoint(found) and not any(
        at(("elements", item))
        for item in found
        if item not in followed and getattr(item, "role", "") != LEAVES
    )


def _is_harmless(
    node: ast.AST,
    unit: Unit,
    followed: set[Container],
    facts: Queries,
    functions: frozenset[str],
) -> bool:
    """Whether the list at an expression flows on, or its order makes no difference here."""
    parent = unit.parents.get(node)
    match parent:
        # jax.tree_map(f, leaves, others)
        case ast.Call(func=function, args=[_, first, *_]) if not MAP_TREES.isdisjoint(
            facts.externals(function)
        ):
            return node is first or _holds(first, followed, facts)
        # map(is_finite, leaves)
        case ast.Call(args=[_, elements]) if _maps(parent, facts):
            return node is elements
        # sum(leaves)
        case ast.Call():
            return node is not parent.func and _takes(parent, facts, functions)
        # jax.device_put(x=leaves)
        case ast.keyword():
            call = unit.parents.get(parent)
            if not isinstance(call, ast.Call):
                return False
            return _takes(call, facts, functions=frozenset())
        # [leaf.size for leaf in leaves]
        case ast.comprehension(iter=iterated):
            around = unit.parents.get(parent)
            is_list = isinstance(around, ast.GeneratorExp | ast.ListComp)
            return node is iterated and is_list
        # for leaf in leaves: total += leaf.size
        case ast.For(iter=iterated):
            adds = functions >= ADDING
            keeps_order = any(_keeps_order(inner, adds) for inner in ast.walk(parent))
            return node is iterated and not keeps_order
        # To callers that are in view, or there is none.
        case ast.Return():
            around = function_of(unit, parent)
            return around is not None and bool(facts.flow.entered[around])
    return _only_moves(node, parent)


def _maps(call: ast.Call, facts: Queries) -> bool:
    """Whether this is `map(function, leaves)`, which is followed as a comprehension is."""
    return len(call.args) == 2 and facts.externals(call.func) == ["builtins.map"]


def _only_moves(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether a list is only moved to another variable or place, or is tested."""
    match parent:
        # first, second = leaves
        case ast.Assign(targets=targets):
            kinds = (ast.Tuple, ast.List)
            return not any(isinstance(target, kinds) for target in targets)
        # {"leaves": leaves}, [leaves, names], leaves or [], not leaves, if leaves:
        case (
            ast.Dict()
            | ast.Tuple(ctx=ast.Load())
            | ast.List(ctx=ast.Load())
            | ast.IfExp()
            | ast.BoolOp()
            | ast.UnaryOp(op=ast.Not())
            | ast.If()
            | ast.While()
            | ast.Expr()
            | ast.AnnAssign()
            | ast.NamedExpr()
            | ast.arguments()
            | ast.Lambda()
        ):
            return True
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _takes(call: ast.Call, facts: Queries, functions: frozenset[str]) -> bool:
    """Whether a function has the same effect and result for any order of its arguments.

    The uses in a function in view are looked at there. To a function of which nothing is known,
    such as a logger's, the order means nothing.
    """
    names = {*facts.externals(call.func)}
    if names & REDUCING:
        return reduces_in_any_order(call, facts)
    # sorted(leaves, key=jnp.size): equal keys keep their order
    if any(word.arg == "key" for word in call.keywords):
        return False
    return names <= functions | SAME


def _keeps_order(node: ast.AST, adds: bool) -> bool:
    """Whether something in a loop may depend on the iterations before."""
    match node:
        case ast.AugAssign():
            return not adds
        case (
            ast.Break()
            | ast.Return()
            | ast.Yield()
            | ast.YieldFrom()
            | ast.Assign()
            | ast.AnnAssign()
            | ast.NamedExpr()
        ):
            return True
        # sizes.append(leaf.size)
        case ast.Attribute(attr=name):
            return name in ("append", "extend", "insert", "write")
    return False


def reduces_in_any_order(call: ast.Call, facts: Queries) -> bool:
    """Whether a reduction over leaves has the same result for any order, also with duplicates."""
    match call.args:
        # lambda x, y: x or y
        case [ast.Lambda(args=ast.arguments(args=[left, right]), body=body), *_]:
            operands = _operands(body, facts)
            names = {one.id for one in operands if isinstance(one, ast.Name)}
            return len(operands) == 2 and names == {left.arg, right.arg}
        # jnp.maximum
        case [function, *_]:
            return not EITHER.isdisjoint(facts.externals(function))
    return False


def _operands(body: ast.expr, facts: Queries) -> list[ast.expr]:
    """The operands of `x or y`, `x & y` or `jnp.maximum(x, y)`; empty for other expressions."""
    match body:
        case ast.BoolOp():
            return body.values
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return [body.left, body.right]
        case ast.Call(keywords=[]) if EITHER & {*facts.externals(body.func)}:
            return body.args
    return []
