"""What is recorded while the files of a project are read, and asked for afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.inference.objects import Class, Function, Place
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit


@dataclass(frozen=True, eq=False)
class Annotation:
    """A type annotation: its node, its scope, and the place of what it annotates.

    `expression` is what it says: the node itself, or what a node in quotes is parsed to.
    """

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
class PassedOn:
    """An import that binds `name`, in `scope`, to what a module of the project has.

    `sources` are the scopes of the modules that it may be. The name is `*` for a star.
    """

    unit: Unit
    statement: ast.ImportFrom
    alias: ast.alias
    scope: Scope
    name: str
    sources: tuple[Scope, ...]


@dataclass
class Reading:
    """What is recorded on the way and asked for afterwards."""

    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    passed_on: list[PassedOn] = field(default_factory=list)
    attributes: list[tuple[Unit, ast.Attribute]] = field(default_factory=list)
    calls: list[tuple[Unit, ast.Call]] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
