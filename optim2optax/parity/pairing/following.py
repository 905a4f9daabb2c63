"""What an expression of a tree depends on: its names are followed to what they are bound to.

Files are read as syntax trees, and none of their code is run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from codemods.analysis.queries import Queries
from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.objects import Class, External, Function, Module
from codemods.inference.scopes import Scope
from codemods.removed import table
from codemods.sources.modules import Unit
from codemods.sources.notebook import read
from codemods.sources.parsing import parse
from codemods.sources.relevance import import_graph, reachable
from codemods.vocabulary import words
from optim2optax.parity.optimizer.harmless import may_have_effects
from optim2optax.parity.optimizer.sampling import (
    KNOWN_MODULES,
    TRAVERSALS,
    constructor,
)

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
BoundTo: TypeAlias = ast.expr | Definition | Unit | str | None
"""What a name is bound to: an expression, a definition, a module of the project, or the dotted name
of something in a package; None if that is not known."""

FOLLOWED = frozenset(KNOWN_MODULES) - {"jnp", "np", "onp", "optim"}
"""The packages whose names are written out, however a file imports them."""

MUTATING = words("add append clear extend insert pop remove setdefault sort update")
NOTHING: Mapping[ast.expr, str] = MappingProxyType({})


@dataclass(frozen=True)
class Slice:
    """An expression with the values of its names in their place, and what it reaches.

    `definitions` are the functions and classes, by name, in an order in which they can run. A
    name whose value is not known stays. `reached` are the nodes that went into it.
    """

    expression: str
    definitions: dict[str, str]
    reached: tuple[ast.AST, ...] = field(compare=False)


class Tree:
    """Some files of a project by their paths, with those that they import, as codemods reads them.

    A file that is no Python is none of them.
    """

    def __init__(self, contents: Mapping[str, bytes], wanted: Iterable[str]) -> None:
        texts = {}
        for path, content in contents.items():
            with suppress(ValueError):
                texts[path] = read(path, content)
        imports, _ = import_graph({path: text.code for path, text in texts.items()})
        self.units: dict[str, Unit] = {}
        for path in reachable(wanted, imports) & texts.keys():
            text = texts[path]
            with suppress(SyntaxError, RecursionError):
                unit = Unit(path, text.code, parse(text.code), text.places)
                self.units[path] = unit
        self._flow = Queries(self.units.values()).flow
        self._scopes = self._flow.reading.scopes
        self._changed = {
            (self._scopes[name].binding(name.id), name.id) for name in self._mutated()
        }

    def _mutated(self) -> Iterator[ast.Name]:
        """The names of what is changed in place."""
        index = self._flow.engine.index
        # settings["rate"] = 1e-3; settings.rate = 1e-3
        owners = [store.target.value for store in index.item_stores]
        for stores in index.stores.values():
            owners += [store.owner for store in stores]
        # settings.update(rate=1e-3)
        for word in MUTATING:
            for call in index.called.get(word, ()):
                if isinstance(call.func, ast.Attribute):
                    owners.append(call.func.value)
        return (one for one in owners if isinstance(one, ast.Name))

    def line(self, node: ast.expr) -> int:
        """The line of its file in which a node stands."""
        return self.unit_of(node).line(node.lineno)

    def unit_of(self, node: ast.expr) -> Unit:
        return self._scopes[node].unit

    def place(self, text: str, at: ast.AST) -> ast.expr:
        """An expression that is as if it stood where a node stands."""
        found = ast.parse(f"({text})", mode="eval").body
        self._scopes.update((inner, self._scopes[at]) for inner in ast.walk(found))
        return found

    def bound(self, name: ast.Name) -> tuple[Scope, BoundTo] | None:
        """The scope in which a name is bound, and to what; None if the file has no such name."""
        scope = self._scopes[name].binding(name.id)
        if scope is None:
            return None
        return scope, self._value(scope, name.id)

    def of_module(self, unit: Unit, name: str) -> BoundTo:
        """What a name of a module is bound to."""
        return self._value(self._flow.modules[unit], name)

    def _value(self, scope: Scope, name: str) -> BoundTo:
        """What a variable is bound to; one that is bound twice may have either value."""
        bindings = self._flow.engine.bindings_of(scope, name)
        is_parameter = any(isinstance(one.node, ast.arg) for one in bindings)
        if is_parameter or (scope, name) in self._changed:
            return None
        place = ("variable", scope, name)
        match self._flow.sources.of(place):
            case [ast.expr() as value]:
                return value
            # from common import rate
            case [("variable", Scope() as other, str(its_name))]:
                found = None if other is scope else self._value(other, its_name)
                if found is not None:
                    return found
        match self._flow.solver.at(place):
            case [External(name=dotted)] if dotted.partition(".")[0] in FOLLOWED:
                return dotted
            case [Module(unit=Unit() as unit)]:
                return unit
            case [Function(node=node) | Class(node=node)]:
                return node if isinstance(node, Definition) else None
        return None

    def given(self, scope: Scope, name: str) -> ast.expr | None:
        """What all calls in the file give a parameter of a function, if that is the same text."""
        function, around = scope.node, scope.parent
        if not isinstance(function, ast.FunctionDef) or around is None:
            return None
        signature = signature_of(function.args)
        found: dict[str, ast.expr] = {}
        for use in self._flow.engine.index.reads[around, function.name]:
            call = scope.unit.call_of(use)
            # train(create_optimizer): it is called elsewhere
            bound = None if call is None else bind(signature, call)
            if not isinstance(bound, Bound) or bound.unpacked:
                return None
            value = bound.complete.get(name)
            if value is None:
                return None
            found[ast.unparse(value)] = value
        return next(iter(found.values())) if len(found) == 1 else None

    def slice(
        self,
        node: ast.expr,
        kept: frozenset[str] = frozenset(),
        in_callers: bool = False,
        become: Mapping[ast.expr, str] = NOTHING,
    ) -> Slice:
        """An expression, and the code that it depends on; the names in `kept` stay.

        Parameters stay too, unless they are to be followed to what all calls in the file give
        them. Some nodes of the old tree `become` other source texts in the new one.
        """
        follower = _Follower(self, kept, in_callers, become)
        expression = ast.unparse(ast.fix_missing_locations(follower.copied(node)))
        return Slice(expression, follower.definitions, tuple(follower.reached))

    def definition(self, node: Definition) -> str:
        """The code of a function or class as it is among the definitions of a slice."""
        follower = _Follower(self, frozenset(), False, NOTHING)
        return follower.definitions[follower.defined(node)]


class _Follower:
    """Copies expressions, with the values of their names in the place of the names.

    `definitions` and `reached` collect the functions and classes, and the nodes, that went into
    the copies. `_named` has the definitions by the names that they get, `_inside` the bindings
    that are being copied, among which a recursion ends.
    """

    def __init__(
        self,
        tree: Tree,
        kept: frozenset[str],
        in_callers: bool,
        become: Mapping[ast.expr, str],
    ) -> None:
        self.tree = tree
        self.kept = kept
        self.in_callers = in_callers
        self.become = become
        self.definitions: dict[str, str] = {}
        self.reached: list[ast.AST] = []
        self._named: dict[str, ast.AST] = {}
        self._inside: list[ast.AST] = []

    def copied(self, node: Any) -> Any:
        """A copy of any node or field, without annotations, which need not be defined."""
        if isinstance(node, list):
            return [self.copied(item) for item in node]
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.expr) and node in self.become:
            node = self.tree.place(self.become[node], node)
        # a traversal becomes its predicate
        elif self.become and constructor(node) in TRAVERSALS:
            match node:
                case ast.Call(args=[predicate], keywords=[]):
                    return self.copied(predicate)
        value = self._value(node)
        if value is not None:
            return value
        found = copy.copy(node)
        for name, part in ast.iter_fields(node):
            # An `AnnAssign` cannot do without an annotation: `rate: None = 1e-3`.
            is_needed = isinstance(node, ast.AnnAssign)
            nothing = ast.Constant(None) if is_needed else None
            is_annotation = name in ("annotation", "returns")
            setattr(found, name, nothing if is_annotation else self.copied(part))
        # optax.additive_weight_decay
        row = (
            table().get(ast.unparse(found))
            if isinstance(found, ast.Attribute)
            else None
        )
        if row is not None and row.how == "same":
            return ast.parse(row.to, mode="eval").body
        return found

    def _value(self, node: ast.AST) -> ast.AST | None:
        """A copy of what a name, or an attribute of a module, is bound to, if that is known."""
        match node:
            # `settings.RATE`, after `import settings` or `from . import settings`
            case ast.Attribute(value=ast.Name() as name, attr=attribute):
                module = self._bound(name)
                if isinstance(module, Unit):
                    return self._copied_bound(self.tree.of_module(module, attribute))
            case ast.Name(ctx=ast.Load()):
                return self._copied_bound(self._bound(node))
        return None

    def _bound(self, name: ast.Name) -> BoundTo:
        found = None if name.id in self.kept else self.tree.bound(name)
        if found is None:
            return None
        scope, bound = found
        # A local name of a function that is copied as a whole stays.
        around = (scope.node, *scope.unit.ancestors(scope.node))
        if any(inner in around for inner in self._inside):
            return None
        if bound is None and self.in_callers:
            return self.tree.given(scope, name.id)
        return bound

    def _copied_bound(self, bound: BoundTo) -> ast.AST | None:
        """A copy of what a name is bound to; for a function or class, its name."""
        if isinstance(bound, str):
            return ast.parse(bound, mode="eval").body
        if isinstance(bound, Definition):
            return ast.Name(self.defined(bound), ast.Load())
        if bound is None or isinstance(bound, Unit) or bound in self._inside:
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

    def defined(self, node: Definition) -> str:
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
