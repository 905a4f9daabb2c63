"""What is read by a name that no code has: by a text that is run, or by a key of `globals()`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.legacy import LegacyName, legacy_name
from codemods.analysis.queries import Queries
from codemods.inference.objects import Container, External, LegacyObject, Place
from codemods.inference.recorded import Import
from codemods.sources.modules import Unit
from codemods.vocabulary import PACKAGE

EVALUATING = frozenset(("builtins.eval", "builtins.exec", "builtins.compile"))
"""What runs a text as code."""

WORD = re.compile(r"\w+")


class Lookups:
    """The legacy names that are read by a key, or by code that is made at run time."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts

    def by_keys(self, unit: Unit, name: str, legacy: LegacyName) -> Iterator[Place]:
        """Where a variable of a module goes that holds something legacy and may be read by a key.

        A key that may be any counts for a class that is called by another name than its own.
        """
        is_called = isinstance(legacy, str) and legacy in self._called
        for key, result in self.facts.flow.looked_up.get(unit, ()):
            if key == name or (key is None and is_called and self._has(result, legacy)):
                yield result

    @cached_property
    def by_key(self) -> set[LegacyName]:
        """The classes that are read by a key."""
        return {
            legacy
            for unit in self.facts.flow.looked_up
            for item in self.facts.imported(unit)
            if (legacy := legacy_name(item.target)) is not None
            and any(self.by_keys(unit, item.name, legacy))
        }

    def may_be_any(self, unit: Unit) -> bool:
        """Whether any variable of a module may be read by a key."""
        return any(key is None for key, _ in self.facts.flow.looked_up.get(unit, ()))

    def _has(self, place: Place, legacy: LegacyName) -> bool:
        """Whether a class is at a place, or in a container there: `globals().items()`."""
        pending, seen = [place], {place}
        for inner in pending:  # grows while it is read
            for item in self.facts.flow.solver.at(inner):
                if isinstance(item, External) and legacy_name(item.name) == legacy:
                    return True
                elements = ("elements", item)
                if isinstance(item, Container) and elements not in seen:
                    seen.add(elements)
                    pending.append(elements)
        return False

    def among_stars(
        self, unit: Unit, node: ast.Call | ast.Subscript
    ) -> tuple[LegacyObject, ...]:
        """What may be made of a class that is looked up where a star import brought all of them."""
        return self.made(unit) if node in self._of_stars else ()

    def made(self, unit: Unit) -> tuple[LegacyObject, ...]:
        """What calls of classes make in a program that reach them otherwise than by imports."""
        program = self.facts.together(unit)
        return tuple(
            obj
            for owner, call in self.facts.flow.reading.calls
            if owner.path in program and not self.facts.names_legacy(call.func)
            for obj in self.facts.made_at(call, "definition")
        )

    @cached_property
    def _of_stars(self) -> set[Place]:
        """Where the variables of modules go that have a legacy star import, by any key."""
        found: set[Place] = set()
        for unit, lookups in self.facts.flow.looked_up.items():
            if any(self._is_star(item) for item in self.facts.imported(unit)):
                found.update(result for key, result in lookups if key is None)
        return found

    @staticmethod
    def _is_star(item: Import) -> bool:
        return item.name == "*" and legacy_name(item.target) is not None

    @cached_property
    def _called(self) -> set[LegacyName | None]:
        """The classes that are called by another name than that of an import."""
        return {
            legacy_name(name)
            for _, call in self.facts.flow.reading.calls
            if not self.facts.names_legacy(call.func)
            for name in self.facts.externals(call.func)
        }

    def are_in_text(self, unit: Unit, call: ast.Call) -> bool:
        """Whether a call runs a text that may name something legacy, or makes definitions."""
        if EVALUATING.isdisjoint(self.facts.externals(call.func)) or not call.args:
            return False
        legacy = self._legacy_names(unit)
        # eval(f"optim.{name}")
        near = self._texts(unit, call.args[0])
        if any(PACKAGE in text or legacy & {*WORD.findall(text)} for text in near):
            return True
        # make = eval(args.optimizer); make(0.1).create(params)
        return call in self._creating

    def _legacy_names(self, unit: Unit) -> set[str]:
        """The names that imports in a file bind to what is legacy."""
        found: set[str] = set()
        for item in self.facts.imported(unit):
            # from flax.optim import *
            if self._is_star(item):
                found.update(self.facts.legacy.members(item.target))
            elif legacy_name(item.target) is not None:
                found.add(item.name)
        return found - {"flax"}  # import flax.optim

    def _texts(self, unit: Unit, node: ast.expr) -> Iterator[str]:
        """The texts in an expression, and in what is assigned to the variables that it names."""
        assigned = _assigned(unit)
        pending: list[ast.AST] = [node]
        seen: set[str] = set()
        while pending:
            for part in ast.walk(pending.pop()):
                match part:
                    case ast.Constant(value=str(text)):
                        yield text
                    case ast.Name(id=name) if name not in seen:
                        seen.add(name)
                        pending += assigned[name]

    @cached_property
    def _creating(self) -> set[ast.AST]:
        """What the owner of a `create` comes from, by calls of what comes from elsewhere, too."""
        flow = self.facts.flow
        pending: list[ast.AST] = [
            node.value for _, node in flow.reading.attributes if node.attr == "create"
        ]
        found: set[ast.AST] = set()
        while pending:
            part = pending.pop()
            if part in found or not isinstance(part, ast.expr):
                continue
            found.add(part)
            roots = flow.roots(flow.places.get(part))
            pending += (root for root in roots if isinstance(root, ast.expr))
            if isinstance(part, ast.Call):
                pending.append(part.func)
        return found


def _assigned(unit: Unit) -> dict[str, list[ast.expr]]:
    """The values that the variables of a file are assigned, by their names."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in unit.nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[target.id].append(value)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
                | ast.For(target=ast.Name(id=name), iter=value)
            ):
                found[name].append(value)
    return found
