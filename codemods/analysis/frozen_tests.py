"""Where code tests for a `FrozenDict`: the variables of a model are plain dicts today."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from codemods.sources.modules import Unit
from codemods.vocabulary import FREEZE, FROZEN_DICTS, full_names

Naming = Callable[[ast.expr], Collection[str]]
"""The full names that an expression may stand for; `function()` for what a call of one gives."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Choice = ast.If | ast.IfExp

FOR_LOOKING = "flax.core.FrozenDict: isinstance"
OF_ALL_LEVELS = f"{FOR_LOOKING}, for each level"
"""The rows of a test that is to be looked at, and of one that a dict has to pass, too."""

MAPPINGS = full_names(
    "collections.abc collections typing", "Mapping MutableMapping"
) | {"dict"}
CONVERTING = FREEZE | FROZEN_DICTS | {"dict"}
"""What makes one kind of dict of the other."""


def frozen_test(unit: Unit, call: ast.Call, naming: Naming) -> str | None:
    """The row for a test for a `FrozenDict`; None if it is none, or takes dicts into account.

    Args:
      unit: the file.
      call: any call.
      naming: the full names that an expression may stand for.
    """
    tested = _tested(call, FROZEN_DICTS, naming)
    if tested is None:
        return None
    within = [one for one in unit.ancestors(call) if isinstance(one, Function)]
    scope = within[0] if within else unit.tree
    # isinstance(tree, dict) or isinstance(tree, FrozenDict)
    others = (one for one in ast.walk(scope) if isinstance(one, ast.Call))
    beside = (_tested(one, MAPPINGS, naming) for one in others)
    if any(one is not None and ast.dump(one) == ast.dump(tested) for one in beside):
        return None
    choices = [*_choices(unit, call, scope)]
    if choices and all(_converts(one, naming) for one in choices):
        return None
    names = {one.name for one in within}
    descends = any(_descends(one, scope, names) for one in choices)
    is_for_all = descends or _refuses(unit, call)
    # isinstance(tree, (FrozenDict, State)) is not written anew
    return (
        OF_ALL_LEVELS
        if is_for_all and not isinstance(call.args[1], ast.Tuple)
        else FOR_LOOKING
    )


def _tested(call: ast.Call, kinds: Collection[str], naming: Naming) -> ast.expr | None:
    """What `isinstance` tests for one of some kinds."""
    match call:
        case ast.Call(func=ast.Name(id="isinstance"), args=[tested, given]):
            named = given.elts if isinstance(given, ast.Tuple) else [given]
            if any(not _names(one, naming).isdisjoint(kinds) for one in named):
                return tested
    return None


def _names(node: ast.expr, naming: Naming) -> set[str]:
    """The full names of an expression; a name that is not imported is one of Python's."""
    names = {*naming(node)}
    return names or ({node.id} if isinstance(node, ast.Name) else set())


def _choices(unit: Unit, call: ast.Call, scope: ast.AST) -> Iterator[Choice | ast.expr]:
    """What a test decides on; of a use that is no choice, that use."""
    node: ast.AST = call
    around = unit.parents[call]
    while isinstance(around, ast.UnaryOp | ast.BoolOp):
        node, around = around, unit.parents[around]
    match around:
        case ast.If(test=test) | ast.IfExp(test=test) if test is node:
            yield around
        # is_frozen = isinstance(params, FrozenDict)
        case ast.Assign(targets=[ast.Name(id=name)]):
            for one in ast.walk(scope):
                if isinstance(one, ast.Name) and one.id == name:
                    parent = unit.parents[one]
                    if isinstance(one.ctx, ast.Load):
                        yield parent if isinstance(parent, Choice) else one
        case _:
            yield call


def _converts(choice: Choice | ast.expr, naming: Naming) -> bool:
    """Whether one way of a choice does no more than to freeze or unfreeze something."""
    ways: Sequence[Sequence[ast.AST]] = ()
    match choice:
        case ast.IfExp():
            ways = [choice.body], [choice.orelse]
        case ast.If():
            ways = choice.body, choice.orelse
    return any(len(way) == 1 and _is_conversion(way[0], naming) for way in ways)


def _is_conversion(node: ast.AST, naming: Naming) -> bool:
    match node:
        case (
            ast.Assign(value=value)
            | ast.AnnAssign(value=value)
            | ast.Return(value=value)
        ) if value is not None:
            return _is_conversion(value, naming)
        case ast.Call(func=ast.Attribute(attr="unfreeze")):
            return True
        case ast.Call(func=function):
            return not _names(function, naming).isdisjoint(CONVERTING)
    return False


def _descends(
    choice: Choice | ast.expr, scope: ast.AST, functions: Collection[str]
) -> bool:
    """Whether a choice, or what comes after one that ends, names a function around it.

    That is called for what is within.
    """
    ending = ast.Return | ast.Raise | ast.Continue
    ends = isinstance(choice, ast.If) and isinstance(choice.body[-1], ending)
    for node in ast.walk(scope if ends else choice):
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)
            ) if name in functions:
                return True
    return False


def _refuses(unit: Unit, call: ast.Call) -> bool:
    """Whether what is no `FrozenDict` is refused."""
    parent = unit.parents[call]
    match parent, unit.parents[parent]:
        # assert isinstance(params, FrozenDict)
        # if not isinstance(params, FrozenDict): raise TypeError
        case (ast.Assert(), _) | (
            ast.UnaryOp(op=ast.Not()),
            ast.If(body=[ast.Raise()]),
        ):
            return True
    return False
