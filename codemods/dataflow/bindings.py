"""The names that a file binds, in which scope and how often."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

from codemods.dataflow.definitions import names_set
from codemods.inference.scopes import Scope, open_scope
from codemods.sources.bindings import ScopeNode
from codemods.sources.modules import Unit


class Scopes:
    """The scopes of one file, each opened when it is asked for."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.outermost = open_scope(unit, unit.tree, None)
        self._opened: dict[ScopeNode, Scope] = {unit.tree: self.outermost}

    def around(self, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        owner = next(
            outer for outer in self.unit.ancestors(node) if isinstance(outer, ScopeNode)
        )
        if owner not in self._opened:
            self._opened[owner] = open_scope(self.unit, owner, self.around(owner))
        return self._opened[owner]


@lru_cache(maxsize=8)  # more than one question in a row is about one file
def bound_anywhere(unit: Unit) -> Mapping[str, int]:
    """Every name that any scope of a file binds, with how often; zero for others."""
    names = chain.from_iterable(map(names_set, unit.nodes))
    return Counter(names)
