"""The names in a file for a module: what its imports bind, and dotted names that begin with it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from codemods.inference.scopes import Scope, Scopes
from codemods.sources.modules import Unit
from codemods.sources.places import joined, said

Statement = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class BoundModule:
    """A name that an import binds to a module, or to a package around it.

    `rest` is what stands behind the module's own name, such as `.adam`. `missing` is what has to
    follow the bound name to get to the module: `optim` for `import flax`.
    """

    statement: Statement
    alias: ast.alias
    scope: Scope | None
    name: str
    rest: str = ""
    missing: tuple[str, ...] = ()


class Bindings:
    """The places of a file that refer to a module.

    It has one of some names there, such as `flax.optim` or `.legacy`.
    """

    def __init__(self, unit: Unit, modules: Collection[str]) -> None:
        self.unit = unit
        self.modules = modules
        self._scopes = Scopes(unit)
        self.statements = [node for node in unit.nodes if isinstance(node, Statement)]
        # from flax.optim import Adam
        froms = (node for node in self.statements if isinstance(node, ast.ImportFrom))
        self.froms = [node for node in froms if self.within(said(node))]
        bound = [one for node in self.statements for one in self._of(node)]
        self.modules_bound = [one for one in bound if not one.missing]
        self.packages_bound = [one for one in bound if one.missing]
        self.uses = list(self._uses())

    def within(self, name: str) -> tuple[str, str] | None:
        """The module that a name begins with, and the rest of the name."""
        for module in self.modules:
            if name == module or name.startswith(f"{module}."):
                return module, name[len(module) :]
        return None

    def loads(self, name: str, scope: Scope | None) -> Iterator[ast.AST]:
        """The places that read a name of a scope."""
        for node in self.unit.nodes:
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            # optim = None
            if isinstance(node.ctx, ast.Store):
                continue
            if self._scopes.around(node).binding(name) is scope:
                yield node

    def _of(self, node: Statement) -> Iterator[BoundModule]:
        """The names that a statement binds to the module, or to a package around it."""
        scope = self._scopes.around(node)
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            holder = scope.binding(name)
            prefix = name
            # from flax import optim
            if isinstance(node, ast.ImportFrom):
                prefix = joined(said(node), alias.name)
                if prefix in self.modules:
                    yield BoundModule(node, alias, holder, name)
            else:
                module, rest = self.within(alias.name) or ("", "")
                # import flax.optim.adam as adam
                if module and alias.asname:
                    yield BoundModule(node, alias, holder, name, rest)
                    continue
                # import legacy_optim.adam
                if module and "." not in module:
                    yield BoundModule(node, alias, holder, name)
                    continue
                # import flax.core as core
                if alias.asname:
                    prefix = alias.name
            # import flax
            for module in self.modules:
                if module.startswith(f"{prefix}."):
                    below = module.removeprefix(f"{prefix}.")
                    missing = tuple(below.split("."))
                    yield BoundModule(node, alias, holder, name, missing=missing)

    def _uses(self) -> Iterator[tuple[ast.Attribute, Scope | None]]:
        """The dotted names for the module, such as `flax.optim`, and the scopes of their roots."""
        ways = {(one.scope, one.name, one.missing) for one in self.packages_bound}
        names = {name for _, name, _ in ways}
        for node in self.unit.nodes:
            if not isinstance(node, ast.Attribute):
                continue
            # flax.optim = legacy
            if not isinstance(node.ctx, ast.Load):
                continue
            root, steps = _chain(node)
            if root is None or root.id not in names:
                continue
            scope = self._scopes.around(root).binding(root.id)
            if (scope, root.id, steps) in ways:
                yield node, scope


def _chain(node: ast.Attribute) -> tuple[ast.Name | None, tuple[str, ...]]:
    """The name at the root of dotted attributes, if it is one, and the attributes in order."""
    steps = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        steps.append(inner.attr)
        inner = inner.value
    root = inner if isinstance(inner, ast.Name) else None
    return root, tuple(reversed(steps))
