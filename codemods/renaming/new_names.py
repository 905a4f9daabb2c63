"""New names by place. A place is given by names that do not change when the file is edited."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from codemods.inference.objects import LegacyObject, Object, Result
from codemods.sources.bindings import ScopeNode
from codemods.sources.modules import Unit

WORD = re.compile(r"optimizer|(?<![a-z])(?:optim|opt)(?![a-z])")
STATE = "state"
TRANSFORMATION = "tx"
DEFINITIONS = ("optimizer_def", "opt_def", "optim_def", "optimizer_definition")
Functions = ast.FunctionDef | ast.AsyncFunctionDef
ScopePath = tuple[tuple[str, int], ...]
"""The functions and classes around a scope, outermost first.

Each has its number among those of the same name in the same scope.
"""


@dataclass(frozen=True)
class Keyword:
    """The keyword of a call in some scope, by the source text of the function."""

    scope: ScopePath
    called: str
    name: str


@dataclass(frozen=True)
class Attribute:
    """An attribute in some scope, by its source text: `self.optimizer`."""

    scope: ScopePath
    text: str

    @property
    def name(self) -> str:
        return self.text.rpartition(".")[2]


@dataclass
class Renames:
    """The new names in one file: of the variables of each scope, of keywords, and of attributes."""

    variables: dict[ScopePath, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    keywords: dict[Keyword, str] = field(default_factory=dict)
    attributes: dict[Attribute, str] = field(default_factory=dict)

    def drop(self, name: str) -> None:
        """Let a name stay what it is."""
        for names in self.variables.values():
            names.pop(name, None)
        for keyword in [one for one in self.keywords if one.name == name]:
            del self.keywords[keyword]
        for attribute in [one for one in self.attributes if one.name == name]:
            del self.attributes[attribute]


def kind_of(items: Iterable[Object], done: set[LegacyObject]) -> str:
    """The kind of some objects, if all have migrated and are of one kind; empty otherwise."""
    kinds: set[str] = set()
    for item in items:
        if isinstance(item, LegacyObject) and item in done:
            kinds.add(item.kind)
        elif not _is_restored(item):
            kinds.add("")
    return kinds.pop() if len(kinds) == 1 else ""


def is_optimizer(item: Object) -> bool:
    """Whether an object is an optimizer for sure."""
    return isinstance(item, LegacyObject) and item.kind == "optimizer"


def _is_restored(item: Object) -> bool:
    """Whether this is the result of a function that reads checkpoints: its target shows more."""
    if not isinstance(item, Result):
        return False
    _, _, last = item.name.rpartition(".")
    return last == "restore_checkpoint"


def keyword_of(call: ast.Call, unit: Unit, name: str) -> Keyword:
    # partial(train_step, optimizer=optimizer)
    called = [call.func]
    if ast.unparse(call.func).endswith("partial"):
        called += call.args[:1]
    text = ", ".join(map(ast.unparse, called))
    return Keyword(scope_path(call, unit), text, name)


def attribute_of(node: ast.Attribute, unit: Unit) -> Attribute:
    return Attribute(scope_path(node, unit), ast.unparse(node))


def scope_path(node: ast.AST, unit: Unit) -> ScopePath:
    """The path of a scope, or of the scope that a node is in."""
    around = [node, *unit.ancestors(node)]
    path: list[tuple[str, int]] = []
    for one in reversed(around):
        if isinstance(one, Functions | ast.ClassDef):
            number = _numbers(unit)[one]
            path.append((one.name, number))
    return tuple(path)


@lru_cache(maxsize=2)  # of a file as it was and as it is
def _numbers(unit: Unit) -> Mapping[ast.AST, int]:
    """For each function and class how many of its name are above it in the same scope."""
    owners = [node for node in unit.nodes if isinstance(node, Functions | ast.ClassDef)]
    above: Counter[tuple[ast.AST, str]] = Counter()
    numbers: dict[ast.AST, int] = {}
    for owner in sorted(owners, key=lambda node: node.lineno):
        outer = unit.ancestors(owner)
        scopes = (one for one in outer if isinstance(one, ScopeNode))
        around = next(scopes, unit.tree)
        # the second `def step` of a module has the number 1
        numbers[owner] = above[around, owner.name]
        above[around, owner.name] += 1
    return numbers
