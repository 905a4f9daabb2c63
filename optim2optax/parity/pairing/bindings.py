"""What the statements of a file bind names to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef


@dataclass(frozen=True)
class Imported:
    """A module that is imported, or a name in it. `level` is the number of dots in front."""

    module: str
    name: str = ""
    level: int = 0


Bound: TypeAlias = ast.expr | Definition | Imported | None
"""What a name is bound to: an expression, a definition or an import; None if that is not known."""

MUTATING = frozenset(
    {
        "add",
        "append",
        "clear",
        "extend",
        "insert",
        "pop",
        "remove",
        "setdefault",
        "sort",
        "update",
    }
)


def bound_by(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    """The names that a node itself binds, each with its value, or None if that is not known."""
    match node:
        # optimizer_def = optim.Adam(1e-3)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        # rate, decay = 1e-3, 0.9
        case ast.Assign(
            targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)
        ) if len(targets) == len(values):
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value
                    continue
                # (rate, decay), epsilon = rates, 1e-8
                for name in _stored_in(target):
                    yield name, None
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
        ):
            yield name, node
        case ast.Import() | ast.ImportFrom():
            yield from _imported_by(node)
        case _:
            for name in _bound_without_value(node):
                yield name, None


def _bound_without_value(node: ast.AST) -> Iterator[str]:
    """The names that a node binds to values that are not known."""
    match node:
        # a = b = 1; rate, decay = settings; del rate
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from _stored_in(target)
        # step += 1; for step in range(9): ...; with open(path) as file: ...
        case (
            ast.AugAssign(target=target)
            | ast.For(target=target)
            | ast.AsyncFor(target=target)
            | ast.comprehension(target=target)
            | ast.withitem(optional_vars=ast.expr() as target)
        ):
            yield from _stored_in(target)
        # except ValueError as name; case [*name]; def f(name)
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.arg(arg=name)
        ):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def _imported_by(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Bound]]:
    """The names that an import binds."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            # from optax import adam as make_adam
            bound = Imported(node.module or "", alias.name, node.level)
            yield alias.asname or alias.name, bound
        elif alias.asname:
            yield alias.asname, Imported(alias.name)
        else:
            # `import jax.numpy` binds `jax`.
            yield top_level(alias.name), Imported(top_level(alias.name))


def _stored_in(target: ast.expr) -> Iterator[str]:
    """The names in a target that are assigned to, or deleted."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and not is_load(node):
            yield node.id


def changed_by(node: ast.AST) -> Iterator[str]:
    """The names of what a statement changes in place, and of what a function binds elsewhere."""
    match node:
        # settings.update(rate=1e-3)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute))
        ):
            if attribute in MUTATING:
                yield name
        # settings["rate"] = 1e-3; del settings["rate"]
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        # settings.rate = 1e-3
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def top_level(module: str) -> str:
    return module.partition(".")[0]
