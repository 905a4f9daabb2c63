"""New names, by the places that they are for: places are told by names that outlast a change of the file."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from codemods.flow.objects import Derived, Object, Result, Thing
from codemods.flow.scopes import ScopeNode
from codemods.sources.modules import Unit

WORD = re.compile(r"optimizer|(?<![a-z])(?:optim|opt)(?![a-z])")
STATE = "state"
TRANSFORMATION = "tx"
DEFINITIONS = ("optimizer_def", "opt_def", "optim_def", "optimizer_definition")
Functions = ast.FunctionDef | ast.AsyncFunctionDef
ScopePath = tuple[tuple[str, int], ...]
"""The functions and classes around a scope, outermost first, each with its number among those of its name beside it."""


@dataclass(frozen=True)
class Keyword:
    """The keyword of a call in some scope, by the source text of what is called."""

    scope: ScopePath
    called: str
    name: str


@dataclass(frozen=True)
class Attribute:
    """An attribute in some scope, by its source text: `self.optimizer`."""

    scope: ScopePath
    text: str


@dataclass
class Renames:
    """The new names in one file: of the variables of each scope, of keywords, and of attributes."""

    variables: dict[ScopePath, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    keywords: dict[Keyword, str] = field(default_factory=dict)
    attributes: dict[Attribute, str] = field(default_factory=dict)


def kind_of(items: Iterable[Object], done: set[Thing]) -> str:
    """The kind of some objects, if they are all of one kind and have all migrated; empty otherwise."""
    held = [item for item in items if not isinstance(item, Derived) and not _is_restored(item)]
    kinds = {item.kind if isinstance(item, Thing) and item in done else "" for item in held}
    return kinds.pop() if len(kinds) == 1 else ""


def is_optimizer(item: Object) -> bool:
    """Whether something is an optimizer for sure."""
    return isinstance(item, Thing) and item.kind == "optimizer"


def _is_restored(item: Object) -> bool:
    """Whether this is what reads checkpoints, of which the target tells what it gives."""
    return isinstance(item, Result) and item.name.rpartition(".")[2] == "restore_checkpoint"


def keyword_of(call: ast.Call, unit: Unit, name: str) -> Keyword:
    called = (
        [call.func, *call.args[:1]] if ast.unparse(call.func).endswith("partial") else [call.func]
    )
    return Keyword(scope_path(call, unit), ", ".join(map(ast.unparse, called)), name)


def scope_path(node: ast.AST, unit: Unit) -> ScopePath:
    """Where a scope is, or the scope in which a node is, by names that outlast a change of the file."""
    around = [node, *unit.ancestors(node)]
    return tuple(
        (one.name, _numbers(unit)[one])
        for one in reversed(around)
        if isinstance(one, Functions | ast.ClassDef)
    )


@lru_cache(maxsize=2)  # of a file as it was and as it is
def _numbers(unit: Unit) -> Mapping[ast.AST, int]:
    """Of each function and class, how many of its name are above it in the same scope."""
    owners = [node for node in unit.nodes if isinstance(node, Functions | ast.ClassDef)]
    above: Counter[tuple[ast.AST, str]] = Counter()
    numbers: dict[ast.AST, int] = {}
    for owner in sorted(owners, key=lambda node: node.lineno):
        around = next(
            (outer for outer in unit.ancestors(owner) if isinstance(outer, ScopeNode)), unit.tree
        )
        numbers[owner] = above[around, owner.name]
        above[around, owner.name] += 1
    return numbers
