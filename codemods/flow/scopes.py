"""The binding behind a name, by Python's rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from codemods.sources.modules import Unit

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = (
    ast.Module
    | ast.ClassDef
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | Comprehension
)
SCOPES = (
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension and the names it binds."""

    unit: Unit
    node: ScopeNode
    parent: Scope | None
    names: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Scope:
        return self if self.parent is None else self.parent.module

    @property
    def function(self) -> Scope:
        """The function, class or module that a comprehension or lambda is in; else the scope."""
        inner = isinstance(self.node, ast.Lambda | Comprehension)
        return self.parent.function if inner and self.parent is not None else self

    def binding(self, name: str) -> Scope | None:
        """The scope in which `name`, used here, is bound.

        None for a builtin or a name from a star import.
        """
        if self.elsewhere.get(name) == "global":
            return self.module
        if name in self.names and name not in self.elsewhere:
            return self
        scope = self.parent
        while scope is not None:
            # Functions do not see the names of a class around them.
            if (
                not isinstance(scope.node, ast.ClassDef)
                and name in scope.names
                and name not in scope.elsewhere
            ):
                return scope
            if scope.elsewhere.get(name) == "global":
                return scope.module
            scope = scope.parent
        return None


def bound_names(node: ScopeNode) -> Iterator[tuple[str, str]]:
    """Each name that a scope binds or declares, with `""`, `"global"` or `"nonlocal"`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = node.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ):
            if argument is not None:
                yield argument.arg, ""
    if isinstance(node, Comprehension):
        for generator in node.generators:
            for target in ast.walk(generator.target):
                if isinstance(target, ast.Name):
                    yield target.id, ""
        return
    pending: list[ast.AST] = (
        [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    )
    while pending:
        current = pending.pop()
        yield from _bindings(current)
        if isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending.extend(current.decorator_list)
        elif isinstance(current, ast.Lambda):
            continue
        elif isinstance(current, Comprehension):
            # [(last := x) for x in xs] binds `last` around the comprehension.
            pending.extend(
                child for child in ast.walk(current) if isinstance(child, ast.NamedExpr)
            )
        else:
            pending.extend(ast.iter_child_nodes(current))


def _bindings(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name, ""
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
        ):
            yield name, ""
        # `import package.module` binds `package`.
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                if alias.name != "*":
                    yield alias.asname or alias.name.partition(".")[0], ""
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            yield name, ""
        case ast.MatchMapping(rest=str(name)):
            yield name, ""
        case ast.Global(names=declared):
            for name in declared:
                yield name, "global"
        case ast.Nonlocal(names=declared):
            for name in declared:
                yield name, "nonlocal"
        case _:
            pass


def open_scope(unit: Unit, node: ScopeNode, parent: Scope | None) -> Scope:
    """A scope with its names filled in."""
    scope = Scope(unit, node, parent)
    for name, declared in bound_names(node):
        if declared:
            scope.elsewhere[name] = declared
            if declared == "global":
                scope.module.names.add(name)
        else:
            scope.names.add(name)
    return scope
