"""The names that each scope of a file binds, by what, and how often, by Python's rules."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = (
    ast.Module
    | ast.ClassDef
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | Comprehension
)
Bound = tuple[str, str, ast.AST]
"""A name, `""` where it is bound, else `"global"` or `"nonlocal"`, and the node that does it."""

BINDING = {
    *(ast.Name, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.Global, ast.Nonlocal),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping),
}
"""The kinds of nodes that bind or declare names."""

Bindings = Mapping[ast.AST, list[Bound]]
"""By scope what it binds and declares."""


def bindings(nodes: Iterable[ast.AST], parents: Mapping[ast.AST, ast.AST]) -> Bindings:
    """What each scope of a file binds; it has all nodes of the file, and the parent of each."""
    found: defaultdict[ast.AST, list[Bound]] = defaultdict(list)
    for node in nodes:
        for bound in bound_by(node) if type(node) in BINDING else ():
            found[_scope_of(node, parents)].append(bound)
    return found


def count_names(bindings: Bindings) -> Counter[str]:
    """Every name that any scope of a file binds, with how often; zero for others."""
    every = chain.from_iterable(bindings.values())
    return Counter(name for name, declared, _ in every if not declared)


def bound_by(node: ast.AST) -> Iterator[Bound]:
    """What a node itself binds and declares; an import does so by each of its aliases."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name, "", node
        case ast.Name():
            return
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
        ):
            yield name, "", node
        # `import package.module` binds `package`.
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                if alias.name != "*":
                    yield alias.asname or alias.name.partition(".")[0], "", alias
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name, "", node
        case ast.Global(names=declared):
            for name in declared:
                yield name, "global", node
        case ast.Nonlocal(names=declared):
            for name in declared:
                yield name, "nonlocal", node


def _scope_of(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.AST:
    """The scope in which a node binds its name."""
    is_parameter = isinstance(node, ast.arg)
    while node in parents:
        child, node = node, parents[node]
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # decorators, defaults and annotations belong to the scope around it
                if is_parameter or isinstance(child, ast.stmt):
                    return node
            case ast.Lambda(body=body):
                if is_parameter or child is body:
                    return node
            # in [(last := x) for x in xs], `last` is bound around the comprehension
            case ast.comprehension(target=target) if child is target:
                return parents[node]
    return node
