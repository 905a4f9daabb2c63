"""Whether the receiver of an `apply_gradient` is shown to be a legacy object, where none is known.

`x.apply_gradient(grads)` is how only a legacy optimizer is used, unless this very receiver, or this
very call, contradicts it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from codemods.analysis.legacy import Unnamed, legacy_name
from codemods.analysis.members import Members, tells
from codemods.analysis.naming import last_word
from codemods.analysis.queries import Queries
from codemods.analysis.shown_by import replaces_target
from codemods.analysis.uses import ATTRIBUTES
from codemods.inference.annotations import direct_types
from codemods.inference.binding import Wrong, bind, is_unpacked, signature_of
from codemods.inference.objects import (
    Class,
    Function,
    Instance,
    LegacyObject,
    Method,
    Object,
    Partial,
    Place,
    Result,
)
from codemods.sources.modules import Unit

IMPORTS_JAX = re.compile(r"^\s*(?:import|from)\s+(?:jax|flax)\b", re.MULTILINE)
BY_A_CLASS = re.compile(r"\.[A-Z]\w*(\.\w+)?\(\)$")
"""The full name of what a class makes: `package.Model()`, `package.Model.create()`."""

DECLARED = {"Optimizer": "optimizer", "OptimizerDef": "definition"}
"""What the legacy classes in annotations declare."""

VAGUE = frozenset(("Any", "object", "PyTree"))
"""Types that say nothing."""


Kind = Literal["optimizer", "definition"]
Strength = Literal["deduced", "likely"]


class Shown(NamedTuple):
    """What a receiver is shown to be."""

    kind: Kind
    evidence: Strength


class Receivers:
    """What is known of receivers, and what a call of `apply_gradient` shows of its own."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.members = Members(facts)

    def known(self, node: ast.expr, attribute: str) -> bool:
        """Whether an object is known here that may have the attribute."""
        items = self.facts.objects(node)
        # getattr(importlib.import_module(module), name)(0.1): any module is among them
        if any(map(_is_made_by_name, items)):
            items = self.facts.legacy_objects(node)
        return any(self._may_have(item, attribute) for item in items)

    def _may_have(self, item: Object, attribute: str) -> bool:
        if isinstance(item, Function | Method) or not tells(item):
            return False
        if isinstance(item, LegacyObject):
            return not attribute or attribute in ATTRIBUTES[item.kind]
        return self.members.may_offer(item, attribute)

    def shown(self, unit: Unit, node: ast.Attribute) -> Shown | None:
        """What the receiver of `x.apply_gradient(…)` is shown to be, if nothing else is known.

        Its class contradicts that it is legacy: an annotation, or a class out of view of which
        `x` is an instance, or from which its class derives. So does a call that a legacy object
        would refuse: of something that is no gradient, or whose result is unpacked.

        A class of the same program that has a method `apply_gradient` for such a call leaves it
        open which of the two this is. If `x` is also used as only an optimizer is, it is one;
        otherwise it is likely at most, and in a program without `flax.optim` nothing at all.
        """
        call = unit.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return None
        if (
            self.known(node.value, node.attr)
            or not self.is_of_jax(unit)
            or self._is_of_a_class_out_of_view(node.value)
            or self.is_declared_otherwise(node.value)
        ):
            return None
        by_hand = _steps_by_hand(node, call)
        if by_hand is None and self._is_refused(unit, call):
            return None
        kind: Kind = "optimizer" if by_hand is None else "definition"
        evidence = by_hand or "deduced"
        rivals = self._rivals(unit, call)
        if rivals and not self._is_used_as_an_optimizer(node.value, rivals):
            if evidence == "likely" or not self.imports_legacy(unit):
                return None
            evidence = "likely"
        return Shown(kind, evidence)

    # Its class

    def _is_of_a_class_out_of_view(self, node: ast.expr) -> bool:
        """Whether a class that is not in view makes the receiver, or is a base of its class."""
        flow = self.facts.flow
        # super().apply_gradient(grads)
        if isinstance(node, ast.Call) and "builtins.super" in self.facts.externals(
            node.func
        ):
            return not self.facts.legacy_objects(node)
        made = (root for root in flow.roots(flow.places[node]))
        names = (flow.origin_names(root) for root in made if isinstance(root, ast.expr))
        return any(
            BY_A_CLASS.search(name) is not None and legacy_name(name) is None
            for found in names
            for name in found
        )

    def is_declared_otherwise(self, node: ast.expr) -> bool:
        """Whether an annotation tells of another class: of a variable, a field or a result."""
        place: Place = self.facts.flow.places.get(node)
        seen: set[Place] = set()
        while place not in seen:
            seen.add(place)
            if any(map(self._excludes_legacy, self._annotations.get(place, ()))):
                return True
            # On to the one place from which all comes.
            sources = self.facts.flow.sources(place)
            if len(sources) == 1:
                [place] = sources
        return False

    @cached_property
    def _annotations(self) -> dict[Place, list[ast.expr]]:
        found: dict[Place, list[ast.expr]] = {}
        for annotation in self.facts.flow.reading.annotations:
            found.setdefault(annotation.target, []).append(annotation.expression)
        return found

    def _excludes_legacy(self, declared: ast.expr) -> bool:
        """Whether an annotation says something, and allows no legacy class."""
        return not any(map(self._may_be_legacy, direct_types(declared)))

    def _may_be_legacy(self, declared: ast.expr) -> bool:
        """Whether a type is a legacy class, one of such a name that is not in view, or vague."""
        # a type in quotes is an annotation of its own
        if isinstance(declared, ast.Constant):
            return True
        names = self.facts.externals(declared)
        if any(legacy_name(name) is not None for name in names):
            return True
        words = {last_word(declared), *(name.rpartition(".")[2] for name in names)}
        if not words.isdisjoint(VAGUE):
            return True
        if any(map(tells, self.facts.objects(declared))):
            return False
        # T = TypeVar("T")
        roots = self.facts.flow.roots(self.facts.flow.places[declared])
        is_computed = any(isinstance(root, ast.Call) for root in roots)
        return is_computed or last_word(declared) in DECLARED

    # Its call

    def _is_refused(self, unit: Unit, call: ast.Call) -> bool:
        """Whether a legacy optimizer would not stand a call of its `apply_gradient`."""
        words = {word.arg: word.value for word in call.keywords}
        given = [*call.args, *([words["grads"]] if "grads" in words else [])]
        # x.apply_gradient(params, grads)
        if len(given) != 1 and not is_unpacked(call):
            return True
        # x.apply_gradient(lambda params: …)
        if any(map(self._is_function, given)):
            return True
        match unit.parents.get(call):
            # params, state = x.apply_gradient(grads)
            case ast.Assign(targets=targets):
                return any(isinstance(one, ast.Tuple | ast.List) for one in targets)
            case ast.Subscript(value=value):
                return value is call
        return False

    def _is_function(self, node: ast.expr) -> bool:
        return any(
            isinstance(item, Function | Method | Partial)
            for item in self.facts.objects(node)
        )

    # What else it may be

    def _rivals(self, unit: Unit, call: ast.Call) -> list[Class]:
        """The classes of the same program with an `apply_gradient` that takes such a call."""
        program = self.facts.together(unit)
        return [
            cls
            for cls in self._with_steps
            if cls.unit.path in program and self._takes(cls, call)
        ]

    @cached_property
    def _with_steps(self) -> list[Class]:
        """The classes of the project, no legacy ones, whose instances have `apply_gradient`."""
        classes = self.facts.flow.reading.classes
        return [
            cls
            for cls in classes
            if self.members.offers(Instance(cls), "apply_gradient")
        ]

    def _takes(self, cls: Class, call: ast.Call) -> bool:
        """Whether the `apply_gradient` of a class can be called so."""
        ancestry = self.facts.flow.ancestry(cls)
        bodies = (base.node.body for base in ancestry if isinstance(base, Class))
        for statement in chain.from_iterable(bodies):
            match statement:
                case ast.FunctionDef(name="apply_gradient", decorator_list=[]):
                    signature = signature_of(statement.args, bound=1)
                    return not isinstance(bind(signature, call), Wrong)
        return True

    def _is_used_as_an_optimizer(self, node: ast.expr, rivals: Iterable[Class]) -> bool:
        """Whether the same object has an attribute read that no rival has, and an optimizer has."""
        of = self.facts.flow.roots
        roots = of(self.facts.flow.places[node]).keys()
        names = {
            name
            for unit, name, owner in self._readings()
            if not roots.isdisjoint(of(self.facts.flow.places[owner]))
        }
        return any(
            not any(self.members.offers(Instance(cls), name) for cls in rivals)
            for name in names
        )

    def _readings(self) -> Iterator[tuple[Unit, str, ast.expr]]:
        """Each `x.target`, `x.optimizer_def` and `x.replace(target=…)`, by what is read of `x`."""
        for unit, node in self.facts.flow.reading.attributes:
            if node.attr in ("target", "optimizer_def"):
                yield unit, node.attr, node.value
            elif replaces_target(unit, node):
                yield unit, "target", node.value

    # Its program

    def is_of_jax(self, unit: Unit) -> bool:
        """Whether a file, or the project, has to do with JAX."""
        return self._of_flax or IMPORTS_JAX.search(unit.code) is not None

    @cached_property
    def _of_flax(self) -> bool:
        imports = self.facts.flow.reading.imports
        if any(
            legacy_name(item.target) is not None or item.target == "flax"
            for item in imports
        ):
            return True
        return any(map(IMPORTS_JAX.search, self.facts.others.values()))

    def imports_legacy(self, unit: Unit) -> bool:
        """Whether anything legacy is imported in the programs of a file."""
        program = self.facts.together(unit)
        return any(
            legacy_name(item.target) is not None
            for one in self.facts.project.units
            if one.path in program
            for item in self.facts.imported(one)
        )


def _is_made_by_name(item: Object) -> bool:
    """Whether a call gave this of which no more is known than that `flax.optim` may have it."""
    return isinstance(item, Result) and legacy_name(item.name) is Unnamed.MODULE


def _steps_by_hand(node: ast.Attribute, call: ast.Call) -> Strength | None:
    """How sure it is that a definition's own `apply_gradient` is called, not an optimizer's."""
    if not call.args:
        return None
    # definition.apply_gradient(definition.hyper_params, params, state, grads)
    hyper_params = ast.dump(ast.Attribute(node.value, "hyper_params", ast.Load()))
    if any(ast.dump(inner) == hyper_params for inner in ast.walk(call.args[0])):
        return "deduced"
    named = isinstance(
        node.value, ast.Name | ast.Attribute | ast.Subscript
    )  # unlike `super()`
    return "likely" if named and len(call.args) + len(call.keywords) == 4 else None
