"""What is met while the files of a project are read, and asked for afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.flow.objects import Class, Function, Place
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit


@dataclass(frozen=True, eq=False)
class Annotation:
    """A type annotation: its node, the expression that stands for (another node if quoted), its scope, what it annotates."""

    unit: Unit
    node: ast.expr
    expression: ast.expr
    scope: Scope
    target: Place


@dataclass(frozen=True, eq=False)
class Import:
    """An import that binds `name`, in `scope`, to something outside the project."""

    unit: Unit
    statement: ast.Import | ast.ImportFrom
    alias: ast.alias
    scope: Scope
    name: str
    target: str


@dataclass(frozen=True, eq=False)
class Store:
    """An assignment to an attribute or an element: of what is at `owner`, from what is at `source`."""

    unit: Unit
    node: ast.Attribute | ast.Subscript
    owner: Place
    source: Place


@dataclass(frozen=True, eq=False)
class PassedOn:
    """An import that binds `name`, in `scope`, to what one of the modules with the scopes `sources` has; `*` for a star."""

    unit: Unit
    statement: ast.ImportFrom
    alias: ast.alias
    scope: Scope
    name: str
    sources: tuple[Scope, ...]


@dataclass
class Reading:
    """What was met on the way and is asked for afterwards."""

    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    passed_on: list[PassedOn] = field(default_factory=list)
    attributes: list[tuple[Unit, ast.Attribute]] = field(default_factory=list)
    calls: list[tuple[Unit, ast.Call]] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    decorated: list[tuple[Place, Place]] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
