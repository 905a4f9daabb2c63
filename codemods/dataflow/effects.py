"""What an evaluation reads and writes.

If it is not known to leave all else as it is, it acts: it may do anything.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import lru_cache

from codemods.inference.objects import Object
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit


@dataclass(frozen=True)
class Variable:
    """A name, and the scope that binds it."""

    scope: Scope
    name: str

    @property
    def unit(self) -> Unit:
        return self.scope.unit


@dataclass(frozen=True)
class Field:
    """An attribute or element of some objects, or all of them for None.

    No owners: the object may be any.
    """

    name: object
    owners: frozenset[Object] = frozenset()


Cell = Variable | Field


@dataclass
class Effects:
    """What is read and written.

    Of the `world` outside something may be read or written, too. If it `acts`, anything may be.
    What is `handed` to code out of view may be changed by that. What is read is read `through`
    expressions for its owners, where these are unknown.
    """

    reads: set[Cell] = field(default_factory=set)
    writes: set[Cell] = field(default_factory=set)
    acts: bool = False
    world: bool = False
    handed: set[ast.AST] = field(default_factory=set)
    through: set[ast.expr] = field(default_factory=set)

    @property
    def are_none(self) -> bool:
        """Whether everything else is left as it is."""
        return not self.acts and not self.writes and not self.world

    def add(self, other: Effects) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.acts = self.acts or other.acts
        self.world = self.world or other.world
        self.handed |= other.handed
        self.through |= other.through

    def outside(self, function: ast.AST) -> Effects:
        """The effects that are seen from outside a function.

        Its variables, and the containers that it makes, are its own.
        """
        inside = _parts_of(function)

        def is_outside(cell: Cell) -> bool:
            if isinstance(cell, Variable):
                return cell.scope.node not in inside
            if not cell.owners:
                return True
            nodes = (getattr(owner, "node", None) for owner in cell.owners)
            return any(node not in inside for node in nodes)

        reads = {*filter(is_outside, self.reads)}
        writes = {*filter(is_outside, self.writes)}
        return replace(self, reads=reads, writes=writes)


@lru_cache(maxsize=1024)
def _parts_of(function: ast.AST) -> frozenset[ast.AST]:
    return frozenset(ast.walk(function))
