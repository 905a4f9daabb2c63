"""Whether the receiver of an `apply_gradient` is shown to be a legacy object, where none is known.

`x.apply_gradient(grads)` is how only a legacy optimizer is used, unless this very receiver, or this
very call, contradicts it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property

from codemods.analysis.legacy import Unnamed, legacy_name
from codemods.analysis.members import Members, tells
from codemods.analysis.naming import last_word
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES
from codemods.inference.annotations import direct_types
from codemods.inference.binding import Wrong, bind, is_unpacked, signature_of, values_of
from codemods.inference.holders import unwrapped
from codemods.inference.objects import (
    Class,
    External,
    Function,
    Instance,
    LegacyObject,
    Method,
    Object,
    Partial,
    Place,
    Result,
)
from codemods.inference.out_of_view import effect_of, is_number, is_well_known
from codemods.model import Evidence
from codemods.sources.modules import Unit

IMPORTS_JAX = re.compile(r"^\s*(?:import|from)\s+(?:jax|flax)\b", re.MULTILINE)
BY_A_CLASS = re.compile(r"\.[A-Z]\w*(\.\w+)?\(\)$")
"""The full name of what a class makes: `package.Model()`, `package.Model.create()`."""

DECLARED = {"Optimizer": "optimizer", "OptimizerDef": "definition"}
"""What the legacy classes in annotations declare."""

PURPOSES = {
    "apply_gradient": "optimizer",
    "optimize": "optimizer",
    "create": "definition",
}
"""The methods for which objects of a kind are made."""

VAGUE = frozenset(("Any", "object", "PyTree"))
"""Types that say nothing."""


class Receivers:
    """What is known of receivers, and what a call of `apply_gradient` shows of its own."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.flow = facts.flow
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

    def shown(self, unit: Unit, node: ast.Attribute) -> LegacyObject | None:
        """What the receiver of `x.apply_gradient(…)` is shown to be, if nothing else is known.

        Its class contradicts that it is legacy: an annotation, or a class out of view of which
        `x` is an instance, or from which its class derives. So do the parameters of another train
        state, `x.params`, and a call that a legacy object would refuse: of something that is no
        gradient, or whose result is unpacked.

        A class of the same program that has a method `apply_gradient` for such a call leaves it
        open which of the two this is. If `x` is also used as only an optimizer is, it is one;
        otherwise it is likely at most, and in a program without `flax.optim` nothing at all.
        """
        call = unit.call_of(node)
        if (
            call is None
            or not self.is_of_jax(unit)
            or self._is_of_a_class_out_of_view(node.value)
            or self.is_declared_otherwise(node.value)
        ):
            return None
        by_hand = _steps_by_hand(node, call)
        # an optimizer has no `params`
        is_refused = self._is_refused(unit, call) or self._has_read(
            node.value, "params"
        )
        if by_hand is None and is_refused:
            return None
        kind = "optimizer" if by_hand is None else "definition"
        evidence: Evidence = by_hand or "deduced"
        rivals = self._rivals(unit, call)
        if rivals and not self._is_used_as_an_optimizer(node.value, rivals):
            if evidence == "likely" or not self.imports_legacy(unit):
                return None
            evidence = "likely"
        return LegacyObject(kind, unit, node, evidence=evidence)

    # Its class

    def _is_of_a_class_out_of_view(self, node: ast.expr) -> bool:
        """Whether a class that is not in view makes the receiver, or is a base of its class."""
        flow = self.flow
        # super().apply_gradient(grads)
        if isinstance(node, ast.Call) and "builtins.super" in self.facts.externals(
            node.func
        ):
            return not self.facts.legacy_objects(node)
        return any(
            BY_A_CLASS.search(name) is not None and legacy_name(name) is None
            for root in flow.sources.roots(flow.places[node])
            if isinstance(root, ast.expr)
            for name in flow.origin_names(root)
        )

    def is_declared_otherwise(self, node: ast.expr) -> bool:
        """Whether an annotation tells of another class: of a variable, a field or a result."""
        place: Place = self.flow.places.get(node)
        seen: set[Place] = set()
        while place not in seen:
            seen.add(place)
            for annotation in self.flow.reading.annotations:
                if annotation.target == place and not any(
                    map(self._may_be_legacy, direct_types(annotation.expression))
                ):
                    return True
            # On to the one place from which all comes.
            sources = self.flow.sources.of(place)
            if len(sources) == 1:
                [place] = sources
        return False

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
        roots = self.flow.sources.roots(self.flow.places[declared])
        is_computed = any(isinstance(root, ast.Call) for root in roots)
        return is_computed or last_word(declared) in DECLARED

    # Its call

    def _is_refused(self, unit: Unit, call: ast.Call) -> bool:
        """Whether a legacy optimizer would not stand a call of its `apply_gradient`."""
        given = [
            *call.args,
            *(one.value for one in call.keywords if one.arg == "grads"),
        ]
        # x.apply_gradient(params, grads)
        if len(given) != 1 and not is_unpacked(call):
            return True
        # x.apply_gradient(lambda params: …)
        if any(
            isinstance(item, Function | Method | Partial)
            for one in given
            for item in self.facts.objects(one)
        ):
            return True
        match unit.parents.get(call):
            # params, state = x.apply_gradient(grads)
            case ast.Assign(targets=targets):
                return any(isinstance(one, ast.Tuple | ast.List) for one in targets)
            case ast.Subscript(value=value):
                return value is call
        return False

    # What else it may be

    def _rivals(self, unit: Unit, call: ast.Call) -> list[Class]:
        """The classes of the same program with an `apply_gradient` that takes such a call."""
        program = self.facts.together(unit)
        return [
            cls
            for cls in self.flow.reading.classes
            if self.members.offers(Instance(cls), "apply_gradient")
            and cls.unit.path in program
            and self._takes(cls, call)
        ]

    def _takes(self, cls: Class, call: ast.Call) -> bool:
        """Whether the `apply_gradient` of a class can be called so."""
        for base in self.flow.ancestry(cls):
            for statement in base.node.body if isinstance(base, Class) else ():
                match statement:
                    case ast.FunctionDef(name="apply_gradient", decorator_list=[]):
                        signature = signature_of(statement.args, bound=1)
                        return not isinstance(bind(signature, call), Wrong)
        return True

    def _is_used_as_an_optimizer(self, node: ast.expr, rivals: Iterable[Class]) -> bool:
        """Whether the same object has an attribute read that no rival has, and an optimizer has."""
        return any(
            self._has_read(node, name)
            for name in ("target", "optimizer_def")
            if not any(self.members.offers(Instance(cls), name) for cls in rivals)
        )

    def _has_read(self, node: ast.expr, name: str) -> bool:
        """Whether the same object has an attribute read: x.target, x.replace(target=…)."""
        roots = self.flow.sources.roots(self.flow.places[node]).keys()
        return any(
            not roots.isdisjoint(self.flow.sources.roots(self.flow.places[read.value]))
            for unit, read in self.flow.reading.attributes
            if name == ("target" if replaces_target(unit, read) else read.attr)
        )

    # Its program

    def is_of_jax(self, unit: Unit) -> bool:
        """Whether a file, or the project, has to do with JAX."""
        return self._of_flax or IMPORTS_JAX.search(unit.code) is not None

    @cached_property
    def _of_flax(self) -> bool:
        return any(
            legacy_name(item.target) is not None or item.target == "flax"
            for item in self.flow.reading.imports
        ) or any(map(IMPORTS_JAX.search, self.facts.others.values()))

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


def _steps_by_hand(node: ast.Attribute, call: ast.Call) -> Evidence | None:
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


def replaces_target(unit: Unit, node: ast.Attribute) -> bool:
    """Whether this is the method in `x.replace(target=…)`."""
    call = unit.call_of(node) if node.attr == "replace" else None
    return call is not None and any(word.arg == "target" for word in call.keywords)


# What comes from packages out of view


def may_be_unseen(facts: Queries, node: ast.expr) -> bool:
    """Whether an object may come from a package out of view: `Own(rate) if own else Adam(rate)`."""
    places = facts.flow.sources.behind(facts.flow.places[node])
    return any(_is_unseen(facts, place) for place in places)


def _is_unseen(facts: Queries, place: Place) -> bool:
    # TABLE[name](rate) of a table that has `Own` among others
    if isinstance(place, ast.Call):
        return _calls_unseen(facts, place)
    if facts.flow.sources.of(place):
        return False
    items = facts.flow.solver.at(place)
    # what is given an optimizer may give that back, and `create` is asked by itself
    if any(isinstance(one, LegacyObject) and one.kind == "optimizer" for one in items):
        return False
    return _unknown(items)


def _calls_unseen(facts: Queries, call: ast.Call) -> bool:
    """Whether a call may be of a function or class out of view."""
    given = values_of(call)
    if isinstance(call.func, ast.Attribute):
        given = [call.func.value, *given]
    # what is given an optimizer may give that back
    if any(facts.within(facts.flow.places.read(one)) for one in given):
        return False
    if _unknown(map(unwrapped, facts.objects(call.func))):
        return True
    return any(
        _is_unknown(name)
        for root in facts.flow.sources.roots(facts.flow.places[call.func])
        if isinstance(root, ast.expr)
        for name in facts.flow.origin_names(root)
    )


def is_something_else(facts: Queries, node: ast.expr) -> bool:
    """Whether an object comes from packages that have nothing to do with legacy optimizers."""
    names = facts.flow.origin_names(node)
    if all(map(is_number, names)):
        # beside a number, an attribute is read of the container or instance
        return all(isinstance(item, Result | External) for item in facts.objects(node))
    return all(is_well_known(name) for name in names if not is_number(name))


def _unknown(items: Iterable[Object]) -> bool:
    """Whether one of some objects is of a package of which nothing is known."""
    names = (item.name for item in items if isinstance(item, External | Result))
    return any(map(_is_unknown, names))


def _is_unknown(name: str) -> bool:
    """Whether a full name is one of a package of which nothing is known."""
    return bool(name) and effect_of(name) == "unknown" and not is_well_known(name)
