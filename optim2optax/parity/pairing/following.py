"""What an expression of a file depends on: its names are followed to their definitions.

No code of the file is run.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import Any

from codemods.removed import table
from optim2optax.parity.optimizer.harmless import may_have_effects
from optim2optax.parity.optimizer.sampling import KNOWN_MODULES
from optim2optax.parity.pairing.bound_names import (
    BoundTo,
    Definition,
    File,
    Imported,
    top_level,
)

FOLLOWED = frozenset(KNOWN_MODULES) - {"jnp", "np", "onp", "optim"}
"""The packages whose names are written out, however a file imports them."""


@dataclass(frozen=True)
class Slice:
    """An expression with the values of its names in their place, and what it reaches.

    `definitions` are the functions and classes, by name, in an order in which they can run. A
    name whose value is not known stays. `reached` are the nodes that went into it.
    """

    expression: str
    definitions: dict[str, str]
    reached: tuple[ast.AST, ...] = field(compare=False)


def slice_of(
    file: File,
    node: ast.expr,
    kept: frozenset[str] = frozenset(),
    in_callers: bool = False,
) -> Slice:
    """An expression of a file, and the code that it depends on; the names in `kept` stay.

    Parameters stay too, unless they are to be followed to what all calls in the file give them.
    """
    follower = _Follower(file, kept, in_callers)
    expression = ast.unparse(ast.fix_missing_locations(follower.copied(node)))
    return Slice(expression, follower.definitions, tuple(follower.reached))


def dotted(file: File, node: ast.expr) -> str:
    """A name or attribute in full, such as `optax.adam`; empty for any other expression."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return ""
    return slice_of(file, node).expression


class _Follower:
    """Copies expressions, with the values of their names in the place of the names.

    `definitions` and `reached` collect the functions and classes, and the nodes, that went into
    the copies. `_named` has the definitions by the names that they get, `_inside` the bindings
    that are being copied, among which a recursion ends.
    """

    def __init__(self, file: File, kept: frozenset[str], in_callers: bool) -> None:
        self.file = file
        self.kept = kept
        self.in_callers = in_callers
        self.definitions: dict[str, str] = {}
        self.reached: list[ast.AST] = []
        self._named: dict[str, ast.AST] = {}
        self._inside: list[ast.AST] = []

    def copied(self, node: Any) -> Any:
        """A copy of any node, without annotations, which need not be defined."""
        if isinstance(node, ast.Name):
            found = self._of_name(node) if isinstance(node.ctx, ast.Load) else None
            return found or copy.copy(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = self._of_module(node, node.value)
            if found is not None:
                return found
        found = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                # An `AnnAssign` cannot do without an annotation: `rate: None = 1e-3`.
                is_needed = isinstance(node, ast.AnnAssign)
                setattr(found, name, ast.Constant(None) if is_needed else None)
            elif isinstance(value, list):
                setattr(found, name, [self._copied_item(item) for item in value])
            else:
                setattr(found, name, self._copied_item(value))
        return _by_its_name_today(found)

    def _copied_item(self, value: Any) -> Any:
        """A copy of the value of a field, or an item of it; the names of `global` are texts."""
        return self.copied(value) if isinstance(value, ast.AST) else value

    def _of_module(self, node: ast.Attribute, name: ast.Name) -> ast.AST | None:
        """What an attribute of another module of the project is bound to there."""
        match self.file.lookup(name):
            # `settings.RATE`, after `import settings` or `from . import settings`
            case (_, Imported(module, attribute, level)) if (
                top_level(module) not in FOLLOWED
            ):
                return self._elsewhere(_joined(module, attribute), level, node.attr)
        return None

    def _elsewhere(self, module: str, level: int, name: str) -> ast.AST | None:
        """What a name of an imported module is bound to there, if that is one of the project."""
        home = self.file.imported(module, level)
        bound = home.of_module(name) if home is not None else None
        if home is None or bound is None:
            return None
        here = self.file
        # The names in what is copied now are those of the other module.
        self.file = home
        try:
            return self._of_bound(bound)
        finally:
            self.file = here

    def _of_name(self, node: ast.Name) -> ast.AST | None:
        found = self.file.lookup(node)
        if found is None or node.id in self.kept:
            return None
        scope, bound = found
        # A local name of a function that is copied as a whole stays.
        around = (scope, *self.file.unit.ancestors(scope))
        if any(inner in around for inner in self._inside):
            return None
        if bound is None and self.in_callers:
            bound = self.file.given(scope, node.id)
        return self._of_bound(bound)

    def _of_bound(self, bound: BoundTo) -> ast.AST | None:
        """A copy of what a name is bound to; None if that is not known.

        For a function or class it is the name of a definition.
        """
        if isinstance(bound, Imported):
            # `adam` is `optax.adam`, after `from optax import adam`
            if top_level(bound.module) in FOLLOWED and not bound.level:
                return ast.parse(_joined(bound.module, bound.name), mode="eval").body
            return self._elsewhere(bound.module, bound.level, bound.name)
        if isinstance(bound, Definition):
            return ast.Name(self._defined(bound), ast.Load())
        if bound is None or bound in self._inside:
            return None
        value: ast.expr = self._within(bound)
        if may_have_effects(value):
            return None
        self.reached.append(bound)
        return value

    def _within(self, node: ast.AST) -> Any:
        """A copy of what is looked into, in which the recursion ends."""
        self._inside.append(node)
        found = self.copied(node)
        self._inside.pop()
        return found

    def _defined(self, node: Definition) -> str:
        """The name under which a function or class is among the definitions.

        Of two that have the same name, the second one gets a new name.
        """
        for name, known in self._named.items():
            if known is node:
                return name
        name = node.name
        if name in self._named:
            name = f"{name}_{len(self._named)}"
        self._named[name] = node
        self.reached.append(node)
        found: Definition = self._within(node)
        found.name = name
        if ast.get_docstring(found) is not None:
            found.body = found.body[1:] or [ast.Pass()]
        self.definitions[name] = ast.unparse(ast.fix_missing_locations(found))
        return name


def _by_its_name_today(node: ast.AST) -> ast.AST:
    """What has another name in a package today, such as `optax.additive_weight_decay`."""
    if not isinstance(node, ast.Attribute):
        return node
    row = table().get(ast.unparse(node))
    if row is None or row.how != "same":
        return node
    return ast.parse(row.to, mode="eval").body


def _joined(module: str, name: str) -> str:
    """A dotted name; either part may be empty."""
    return ".".join(part for part in (module, name) if part)
