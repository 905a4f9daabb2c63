"""The names of one file by which it gets at a module: what its imports bind, and the dotted names that begin so."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from codemods.dataflow.bindings import Scopes
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit

Statement = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Bound:
    """A name that an import binds to a module, or to a package around it.

    `rest` is what stands behind the module's own name, such as `.adam`; `missing` what has to follow the bound name to get
    there, `optim` for `import flax`.
    """

    statement: Statement
    alias: ast.alias
    scope: Scope | None
    name: str
    rest: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """An expression such as `flax.optim`, by way of a name that is bound to a package."""

    node: ast.Attribute
    scope: Scope | None
    name: str


class Bindings:
    """What a file says of a module, which has one of some names there, as in `flax.optim` or `.legacy`."""

    def __init__(self, unit: Unit, modules: Collection[str]) -> None:
        self.unit = unit
        self.modules = modules
        self._scopes = Scopes(unit)
        self.statements = [node for node in unit.nodes if isinstance(node, Statement)]
        self.froms = [
            node
            for node in self.statements
            if isinstance(node, ast.ImportFrom) and self.within(said(node))
        ]
        bound = [one for node in self.statements for one in self._of(node)]
        self.modules_bound = [one for one in bound if not one.missing]
        self.packages_bound = [one for one in bound if one.missing]
        self.uses = list(self._uses())

    def within(self, name: str) -> tuple[str, str] | None:
        """The module that a name begins with, and the rest of it."""
        for module in self.modules:
            if name == module or name.startswith(f"{module}."):
                return module, name[len(module) :]
        return None

    def loads(self, name: str, scope: Scope | None) -> Iterator[ast.AST]:
        """The places that read a name of a scope."""
        for node in self.unit.nodes:
            is_read = (
                isinstance(node, ast.Name)
                and node.id == name
                and not isinstance(node.ctx, ast.Store)
            )
            if is_read and self._scopes.around(node).binding(name) is scope:
                yield node

    def _of(self, node: Statement) -> Iterator[Bound]:
        scope = self._scopes.around(node)
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            holder = scope.binding(name)
            full = (
                joined(said(node), alias.name) if isinstance(node, ast.ImportFrom) else alias.name
            )
            found = self.within(full)
            if isinstance(node, ast.ImportFrom):
                if full in self.modules:
                    yield Bound(node, alias, holder, name)
            elif found is not None and (alias.asname or "." not in found[0]):
                yield Bound(node, alias, holder, name, found[1] if alias.asname else "")
                continue
            prefix = full if alias.asname or isinstance(node, ast.ImportFrom) else name
            for module in self.modules:
                if module.startswith(f"{prefix}."):
                    yield Bound(
                        node,
                        alias,
                        holder,
                        name,
                        missing=tuple(module[len(prefix) + 1 :].split(".")),
                    )

    def _uses(self) -> Iterator[Use]:
        ways = {(one.scope, one.name, one.missing) for one in self.packages_bound}
        names = {name for _, name, _ in ways}
        for node in self.unit.nodes:
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            root, steps = _chain(node)
            if root is None or root.id not in names:
                continue
            scope = self._scopes.around(root).binding(root.id)
            if (scope, root.id, steps) in ways:
                yield Use(node, scope, root.id)


def said(node: ast.ImportFrom) -> str:
    """The module that a statement names, as it says it."""
    return "." * node.level + (node.module or "")


def joined(package: str, name: str) -> str:
    """The dotted name of something in a package."""
    return f"{package}{name}" if package.endswith(".") else f"{package}.{name}"


def _chain(node: ast.Attribute) -> tuple[ast.Name | None, tuple[str, ...]]:
    """The name at the root of dotted attributes, if it is one, and these in order."""
    steps = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        steps.append(inner.attr)
        inner = inner.value
    return (inner if isinstance(inner, ast.Name) else None), tuple(reversed(steps))
