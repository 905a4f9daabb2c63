"""How sure it is that something is a legacy object, where that is not proven.

An object is declared (an annotation names the class), deduced (only a legacy object is used like
this) or likely (its name and its uses suggest it).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from codemods.analysis.legacy import CLASS_AT_RUN_TIME, Unnamed, legacy_name
from codemods.analysis.members import tells
from codemods.analysis.naming import CONFIG_LIKE, OPTIMIZER_LIKE, last_word
from codemods.analysis.queries import Queries
from codemods.analysis.receivers import (
    DECLARED,
    PURPOSES,
    Receivers,
    is_something_else,
    may_be_unseen,
    replaces_target,
)
from codemods.analysis.uses import ATTRIBUTES
from codemods.inference.annotations import TypeWithin, types_within
from codemods.inference.objects import (
    Container,
    External,
    Function,
    Instance,
    LegacyObject,
    Opaque,
)
from codemods.inference.recorded import Annotation
from codemods.sources.modules import Unit

CERTAIN = ("compute_gradient", "optimizer_def")
"""Attributes that only a legacy optimizer has."""

STATE_PARTS = ("step", "param_states")

Seed = tuple[ast.expr, LegacyObject]
"""An expression, and what it is shown to be."""


class Seeding:
    """Adds the objects that annotations declare and uses suggest to those that calls create."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.receivers = Receivers(facts)

    def seed(self) -> None:
        """Run to the fixed point."""
        self._seed_declared()
        for _ in range(8):
            if not self._seed_deduced():
                break
        self._seed_likely()
        self._adopt()
        self._ask_for_definitions()

    def _ask_for_definitions(self) -> None:
        """Propagate the definitions of linked optimizers to the reads of `optimizer_def`."""
        for node, obj in self._read(("optimizer_def",)):
            for definition in self.facts.legacy.definitions(obj):
                self.flow.solver.add(self.flow.places[node], definition)

    def _read(
        self, attributes: Collection[str]
    ) -> Iterator[tuple[ast.Attribute, LegacyObject]]:
        """Where one of some attributes of an optimizer is read."""
        for _, node in self.flow.reading.attributes:
            if node.attr in attributes:
                for obj in self.facts.legacy_objects(node.value, "optimizer"):
                    yield node, obj

    def _adopt(self) -> None:
        """Link optimizers of unknown origin to those of the project that they may be.

        A function that nobody in the project calls gets its optimizer from outside, and the one
        that such a function returns goes there. The two may be the same, so they migrate together.
        An optimizer that takes steps is preferably one that takes no step elsewhere in view.
        Candidates of the same file come first, then those of the same program. At last, if the
        optimizer takes steps, those of the whole project.
        """
        created = self._created_optimizers()
        stepped = {obj for _, obj in self._read(("apply_gradient", "optimize"))}
        unstepped = [obj for obj in created if obj not in stepped] or created
        read = dict.fromkeys(obj for _, obj in self._read(ATTRIBUTES["optimizer"]))
        for obj in read:
            # it may be known what it was made of
            is_proven = obj.evidence not in ("declared", "deduced")
            if is_proven or self.facts.legacy.definitions(obj):
                continue
            takes_steps = obj in stepped
            candidates = self._near(obj, unstepped) if takes_steps else []
            candidates = candidates or self._near(obj, created)
            if not candidates and takes_steps:
                candidates = unstepped
            self._link(obj, candidates)

    def _created_optimizers(self) -> list[LegacyObject]:
        """The optimizers whose allocation site is a call in view."""
        found: dict[LegacyObject, None] = {}
        for _, node in self.flow.reading.attributes:
            if node.attr == "create":
                for call in self.flow.trace(node).calls:
                    found |= dict.fromkeys(self.facts.made_at(call, "optimizer"))
        return [*found]

    def _near(
        self, obj: LegacyObject, candidates: list[LegacyObject]
    ) -> list[LegacyObject]:
        """The candidates of the same file as an object; without any, those of the same program."""
        of_file = [candidate for candidate in candidates if candidate.unit is obj.unit]
        if of_file:
            return of_file
        program = self.facts.together(obj.unit)
        return [candidate for candidate in candidates if candidate.unit.path in program]

    def _seed_declared(self) -> None:
        for annotation in self.flow.reading.annotations:
            for named in types_within(annotation.expression):
                self._seed_annotated(annotation, named)
        for unit, call in self.flow.reading.calls:
            # isinstance(x, optim.Optimizer)
            if last_word(call.func) == "isinstance" and len(call.args) == 2:
                kind = self._declared_kind(call.args[1])
                if kind is not None and not self.receivers.known(call.args[0], ""):
                    obj = LegacyObject(kind, unit, call, evidence="declared")
                    self._seed_expression(call.args[0], obj)

    def _seed_annotated(self, annotation: Annotation, named: TypeWithin) -> None:
        """Seed what one type within an annotation declares: `Optimizer`, or `Type[Optimizer]`."""
        if isinstance(named.type, ast.Constant):
            return  # a type in quotes is an annotation of its own
        # Type[optim.Optimizer]
        if isinstance(named.type, ast.Subscript):
            self._seed_class(named, annotation)
            return
        kind = self._declared_kind(named.type)
        if kind is not None and not self.facts.within(annotation.target):
            obj = LegacyObject(
                kind, annotation.unit, annotation.node, evidence="declared"
            )
            self.flow.solver.add(self.flow.inside(annotation.target, named), obj)

    def _seed_class(self, named: TypeWithin, annotation: Annotation) -> None:
        """Seed a class that is chosen at run time for `Type[Optimizer]`, if none is known there."""
        assert isinstance(named.type, ast.Subscript)
        if self._declared_kind(named.type.slice) is None:
            return
        place = self.flow.inside(annotation.target, named)
        found = self.flow.solver.at(place)
        if not any(isinstance(item, External) for item in found):
            self.flow.solver.add(place, CLASS_AT_RUN_TIME)

    def _declared_kind(self, node: ast.expr) -> str | None:
        """The kind of object that an annotation, or the second argument of `isinstance`, names."""
        names = {legacy_name(name) for name in self.facts.externals(node)}
        for name, kind in DECLARED.items():
            if name in names:
                return kind
        return None

    def _has_states_of_its_own(self, unit: Unit) -> bool:
        """Whether a program imports nothing legacy, and a class of it has a `param_states`."""
        program = self.facts.together(unit)
        return not self.receivers.imports_legacy(unit) and any(
            "param_states" in self.flow.fields_in_order(cls)
            for cls in self.flow.reading.classes
            if cls.unit.path in program
        )

    def _seed_deduced(self) -> bool:
        """Seed the objects that only legacy ones are used like; return whether any was new."""
        seeded = False
        for deduced in (self._deduced, self._creating):
            for unit, node in list(self.flow.reading.attributes):
                found = deduced(unit, node)
                if found is not None:
                    self._seed_expression(*found)
                    seeded = True
        return seeded

    def _deduced(self, unit: Unit, node: ast.Attribute) -> Seed | None:
        """What the owner of an attribute is that only legacy objects have, if that is new."""
        known = self.receivers.known
        match node:
            # `state` of `state.param_states`
            case ast.Attribute(attr="param_states", value=state):
                if (
                    known(state, node.attr)
                    or not self._is_of_an_optimizer(unit, node)
                    or self._has_states_of_its_own(unit)
                ):
                    return None
                return state, LegacyObject("state", unit, node, evidence="deduced")
            # `optimizer` of `optimizer.optimizer_def.hyper_params`
            case ast.Attribute(
                attr="hyper_params" | "update_hyper_params",
                value=ast.Attribute(value=owner, attr="optimizer_def"),
            ):
                if self.receivers.is_of_jax(unit) and not known(owner, "optimizer_def"):
                    return owner, LegacyObject(
                        "optimizer", unit, node, evidence="deduced"
                    )
            # `optimizer` of `optimizer.apply_gradient(grads)`
            case ast.Attribute(attr="apply_gradient", value=owner):
                if known(owner, node.attr):
                    return self._unseen(unit, node)
                obj = self.receivers.shown(unit, node)
                if obj is None:
                    return None
                if (obj.kind, obj.evidence) == ("optimizer", "deduced"):
                    self._link(obj, self._field_of_one_class(owner))
                return owner, obj
        return None

    def _creating(self, unit: Unit, node: ast.Attribute) -> Seed | None:
        """The definition in `x.create(…)`, if that is new, and an optimizer where it gets to."""
        call = unit.call_of(node) if node.attr == "create" else None
        if call is None:
            return None
        if self.receivers.known(node.value, "create"):
            return self._unseen(unit, node)
        match node.value:
            case ast.Attribute(value=owner, attr="optimizer_def"):
                is_shown = bool(self.facts.legacy_objects(owner, "optimizer"))
            case _:
                is_shown = False
        if not is_shown and not any(
            self.facts.legacy_objects(one, "optimizer")
            for _, one in self.flow.stands_at(call)
        ):
            return None
        made_by = Unnamed.UNSEEN if may_be_unseen(self.facts, node.value) else None
        obj = LegacyObject("definition", unit, node, made_by, "deduced")
        return node.value, obj

    def _unseen(self, unit: Unit, node: ast.Attribute) -> Seed | None:
        """What code out of view makes beside legacy objects, if that is new.

        It is used as these are: `Own(rate) if own else optim.Adam(rate)`, then `.create(params)`.
        """
        kind = PURPOSES[node.attr]
        if not self.facts.legacy_objects(node.value, kind):
            return None
        definition = LegacyObject("definition", unit, node, Unnamed.UNSEEN, "deduced")
        obj = replace(definition, kind=kind)
        is_seeded = obj in self.facts.objects(node.value)
        if is_seeded or not may_be_unseen(self.facts, node.value):
            return None
        if obj != definition:
            self.facts.legacy.links[obj, definition] = None
        return node.value, obj

    def _is_of_an_optimizer(self, unit: Unit, node: ast.AST) -> bool:
        """Whether a state of unknown origin is used outside of the methods of definitions.

        To these it is handed as an argument.
        """
        classes = (
            unit.parents[method]
            for method in unit.ancestors(node)
            if isinstance(method, ast.FunctionDef)
        )
        return self.receivers.is_of_jax(unit) and not any(
            isinstance(cls, ast.ClassDef)
            and self.facts.legacy_bases(self.flow.class_of(cls))
            for cls in classes
        )

    def _seed_likely(self) -> None:
        """Seed unknown objects that are read or replaced as the parts of an optimizer are."""
        for unit, node in list(self.flow.reading.attributes):
            attribute = "target" if replaces_target(unit, node) else node.attr
            if (
                self._has_its_shape(unit, node)
                and self._is_suggested(unit, node)
                and not self.receivers.known(node.value, attribute)
                and not self.receivers.is_declared_otherwise(node.value)
            ):
                self._seed_reader(unit, node)

    @staticmethod
    def _has_its_shape(unit: Unit, node: ast.Attribute) -> bool:
        """Whether this may be `x.target`, `x.replace(target=…)`, `x.state.step` and the like."""
        if not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in (*CERTAIN, "target") or replaces_target(unit, node):
            return True
        parent = unit.parents.get(node)
        # x.state[0].param_states: the state of a MultiOptimizer is a list
        if isinstance(parent, ast.Subscript) and parent.value is node:
            parent = unit.parents.get(parent)
        is_read = isinstance(parent, ast.Attribute) and parent.attr in STATE_PARTS
        return node.attr == "state" and is_read

    def _is_suggested(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether a use or its name suggests an optimizer."""
        is_named_so = OPTIMIZER_LIKE.search(last_word(node.value)) is not None
        # a file may import Flax alone, or only what makes optimizers
        is_of_jax = "jax" in unit.code or "flax" in unit.code
        is_near = is_of_jax or self.receivers.imports_legacy(unit)
        return is_near and (is_named_so or self._is_plain_use(unit, node))

    def _seed_reader(self, unit: Unit, node: ast.Attribute) -> None:
        """Seed an optimizer that its use or name suggests, unless it is something else."""
        word = last_word(node.value)
        is_named_so = OPTIMIZER_LIKE.search(word) is not None
        if is_named_so and is_something_else(self.facts, node.value):
            return
        # for sure by its attribute, its field or its name
        alike = self._field_of_one_class(node.value)
        is_sure = bool(alike) or node.attr in CERTAIN
        if is_named_so and not is_sure:
            is_sure = self._is_name_of_optimizers(unit, word) or (
                (unit, word) in self._names_with_targets
            )
        obj = LegacyObject(
            "optimizer", unit, node, evidence="deduced" if is_sure else "likely"
        )
        # what is only possible holds no optimizer back: it belongs to no group
        if is_sure:
            self._link(obj, alike)
        self._seed_expression(node.value, obj)

    @staticmethod
    def _is_plain_use(unit: Unit, node: ast.Attribute) -> bool:
        """Whether an object is used as only an optimizer is, whatever its name."""
        match unit.parents.get(node):
            case ast.Attribute(attr="param_states"):
                return True
            # model.apply({"params": optimizer.target}, x)
            case ast.Dict(keys=keys, values=values) if node in values:
                key = keys[values.index(node)]
                is_params = isinstance(key, ast.Constant) and key.value == "params"
            # model.apply(optimizer.target, x)
            case ast.Call(func=ast.Attribute(attr="apply" | "call"), args=[first, *_]):
                is_params = first is node
            case _:
                return False
        return is_params and node.attr == "target"

    def _is_name_of_optimizers(self, unit: Unit, word: str) -> bool:
        """Whether a name stands for legacy optimizers, and in the programs of a file for no other.

        Others count if they may have the attributes of an optimizer.
        """
        legacy, others = self._called
        return word in legacy and others[word].isdisjoint(self.facts.together(unit))

    @cached_property
    def _called(self) -> tuple[frozenset[str], Mapping[str, set[str]]]:
        """The names of legacy optimizers, and by name the files where it is that of another."""
        legacy: set[str] = set()
        others: dict[str, set[str]] = defaultdict(set)
        for node in self.flow.places:
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            word = last_word(node)
            if not word or not OPTIMIZER_LIKE.search(word):
                continue
            for item in filter(tells, self.facts.objects(node)):
                if isinstance(item, LegacyObject):
                    if item.kind == "optimizer":
                        legacy.add(word)
                elif not isinstance(item, Container | Function):
                    others[word].add(self.facts.scope(node).unit.path)
        return frozenset(legacy), others

    @cached_property
    def _names_with_targets(self) -> frozenset[tuple[Unit, str]]:
        """The names in `name.replace(target=…)`, which only a legacy optimizer has, by file."""
        return frozenset(
            (unit, last_word(node.value))
            for unit, node in self.flow.reading.attributes
            if replaces_target(unit, node)
        )

    def _link(self, obj: LegacyObject, others: Iterable[LegacyObject]) -> None:
        """Let an object migrate with others."""
        for other in others:
            self.facts.legacy.links[obj, other] = None

    def _field_of_one_class(self, node: ast.expr) -> list[LegacyObject]:
        """The optimizers in the field of that name, if only one class has such a field.

        That is for an attribute of something unknown, such as `state.optimizer`.
        """
        # config.optimizer is the name of one
        if not isinstance(node, ast.Attribute) or CONFIG_LIKE.search(
            last_word(node.value)
        ):
            return []
        if any(isinstance(item, Instance) for item in self.facts.objects(node.value)):
            return []
        fields = [
            [
                item
                for item in self.flow.solver.at(place)
                if isinstance(item, LegacyObject)
            ]
            for cls in self.flow.reading.classes
            for place in [self.flow.field(cls, node.attr)]
        ]
        with_one = [objects for objects in fields if objects]
        return with_one[0] if len(with_one) == 1 else []

    def _seed_expression(self, node: ast.expr, obj: LegacyObject | Opaque) -> None:
        """Add an object to the points-to set of an expression, and of the variable or field behind.

        Other reads of the same variable, field or element see it there.
        """
        solver = self.flow.solver
        match node:
            # state.optimizer, of each object that `state` may be
            case ast.Attribute(value=value, attr=name):
                kinds = (Instance, Opaque)
                owners = [
                    one for one in self.facts.objects(value) if isinstance(one, kinds)
                ]
                if not owners:
                    opaque = Opaque(self.flow.places[value])
                    self._seed_expression(value, opaque)
                    owners = [opaque]
                for owner in owners:
                    holder = owner.cls if isinstance(owner, Instance) else owner
                    solver.add(self.flow.field(holder, name), obj)
            # state["optimizer"]
            case ast.Subscript(value=value, slice=ast.Constant() as key):
                boxes = [
                    one
                    for one in self.facts.objects(value)
                    if isinstance(one, Container)
                ]
                if not boxes:
                    boxes = [Container(value, "opaque")]
                    solver.add(self.flow.places[value], boxes[0])
                solver.add(("seeded", node), obj)
                for box in boxes:
                    self.flow.store_element(box, self.flow.key(key), ("seeded", node))
        solver.add(self.flow.places[node], obj)
