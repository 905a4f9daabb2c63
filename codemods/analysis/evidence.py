"""How sure it is that something is a legacy object, other than by proof: declared, deduced or likely."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from codemods.analysis.closed_world import ClosedWorld, creates, replaces_target
from codemods.analysis.legacy import RUN_TIME, legacy_name
from codemods.analysis.members import Members, tells
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES
from codemods.flow.annotations import TypeWithin, direct_types, types_within
from codemods.flow.derived import Escape
from codemods.flow.objects import (
    Class,
    Container,
    Derived,
    External,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Opaque,
    Place,
    Result,
    Thing,
)
from codemods.flow.reading import Annotation
from codemods.sources.modules import Unit
from codemods.vocabulary import PACKAGE

IMPORTS_JAX = re.compile(r"^\s*(?:import|from)\s+(?:jax|flax)\b", re.MULTILINE)
OPTIMIZER_LIKE = re.compile(r"(^|_)(opt|optim|optimizer|optimiser)s?\d*(_|$)", re.IGNORECASE)
CONFIG_LIKE = re.compile(
    r"(^|_)(config|cfg|conf|args|flags|hparams|options|settings)(_|$)", re.IGNORECASE
)
CERTAIN = ("compute_gradient", "optimizer_def")
"""Attributes that nothing but a legacy optimizer has."""

DECLARED = {"Optimizer": "optimizer", "OptimizerDef": "definition"}


class Evidence:
    """Adds to what flows from constructors the things that annotations declare and uses tell."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.world = ClosedWorld(facts)
        self.members = Members(facts)
        self.suspected: dict[Thing, Escape | None] = {}

    def seed(self) -> None:
        """Run to the fixed point."""
        self._seed_declared()
        self.facts.flow.solve()
        for _ in range(8):
            if not self._seed_deduced():
                break
            self.facts.flow.solve()
        self._seed_likely()
        self.facts.flow.solve()
        self._adopt()
        self._ask_for_definitions()

    def _ask_for_definitions(self) -> None:
        """Let the definitions of optimizers that were linked with others since reach where these are asked for them."""
        flow = self.facts.flow
        for _, node in flow.reading.attributes:
            if node.attr == "optimizer_def":
                for thing in self.facts.things(node.value, "optimizer"):
                    for definition in self.facts.legacy.definitions(thing):
                        flow.solver.add(flow.places[node], definition)
        flow.solve()

    def _adopt(self) -> None:
        """Link optimizers of unknown origin to those that they may be.

        These were created in the project and, if the others take steps, are stepped nowhere else in view.

        A function that nobody in the project calls gets its optimizer from outside, and one that such a function returns
        goes there. The two may be the same, so they migrate together; those of the same file are the first to be thought of,
        then those of the same program, and at last, if a step is to have any, those of the whole project.
        """
        self._join_lost()
        made = [
            thing
            for _, call in self.facts.flow.reading.calls
            for thing in self.facts.things(call, "optimizer")
            if thing.node is call
        ]
        stepped = {
            thing
            for _, node in self.facts.flow.reading.attributes
            if node.attr in ("apply_gradient", "optimize")
            for thing in self.facts.things(node.value, "optimizer")
        }
        unstepped = [thing for thing in made if thing not in stepped] or made
        read = (
            thing
            for _, node in self.facts.flow.reading.attributes
            for thing in self.facts.things(node.value, "optimizer")
            if thing.evidence in ("declared", "deduced")
        )
        for thing in dict.fromkeys(read):
            if not self.facts.legacy.definitions(thing):
                unmet = self._near(thing, unstepped) if thing in stepped else []
                near = unmet or self._near(thing, made)
                for candidate in near or (unstepped if thing in stepped else ()):
                    self.facts.legacy.links[thing, candidate] = None

    def _near(self, thing: Thing, candidates: list[Thing]) -> list[Thing]:
        """Those of some things that are of the same file as another; if none is, of the same program."""
        own = [candidate for candidate in candidates if candidate.unit is thing.unit]
        program = set() if own else self.facts.together(thing.unit)
        return own or [candidate for candidate in candidates if candidate.unit.path in program]

    def _join_lost(self) -> None:
        """Link definitions that are used with those that are lost on their ways and may be what is used there as well."""
        lost = [
            thing
            for thing in self.world.lost
            if thing.kind == "definition" and thing not in self.world.put_to_use
        ]
        for unit, node in self.facts.flow.reading.attributes if lost else ():
            known = (
                self.facts.things(node.value, "definition")
                if node.attr in ATTRIBUTES["definition"]
                else []
            )
            if known and self.world.may_be_more(unit, node.value):
                may_come = [
                    source for source in self.world.sources(unit, node.value) if source in lost
                ]
                self.facts.legacy.links.update(
                    dict.fromkeys((thing, source) for thing in known for source in may_come)
                )

    def _seed_declared(self) -> None:
        for annotation in self.facts.flow.reading.annotations:
            for named in types_within(annotation.expression):
                if isinstance(named.type, ast.Constant):
                    continue  # a type in quotes is an annotation of its own
                if isinstance(named.type, ast.Subscript):
                    self._seed_class(named, annotation)
                    continue
                kind = self._declared_kind(named.type)
                if kind is not None and not self.facts.within(annotation.target):
                    thing = Thing(kind, annotation.unit, annotation.node, "", "declared")
                    self.facts.flow.solver.add(
                        self.facts.flow.inside(annotation.target, named), thing
                    )
        for unit, call in self.facts.flow.reading.calls:
            if len(call.args) == 2 and "builtins.isinstance" in self.facts.externals(call.func):
                kind = self._declared_kind(call.args[1])
                if kind is not None and not self._known(unit, call.args[0], ""):
                    self._seed_expression(call.args[0], Thing(kind, unit, call, "", "declared"))

    def _seed_class(self, named: TypeWithin, annotation: Annotation) -> None:
        """Where `Type[Optimizer]` is declared and no class is known, there is one that was chosen at run time."""
        assert isinstance(named.type, ast.Subscript)
        place = self.facts.flow.inside(annotation.target, named)
        known = any(isinstance(item, External) for item in self.facts.flow.solver.at(place))
        if self._declared_kind(named.type.slice) is not None and not known:
            self.facts.flow.solver.add(place, External(f"{PACKAGE}.{RUN_TIME}"))

    def _declared_kind(self, node: ast.expr) -> str | None:
        """The kind of thing that an annotation, or the second argument of `isinstance`, names."""
        names = {legacy_name(name) for name in self.facts.externals(node)}
        return next((kind for name, kind in DECLARED.items() if name in names), None)

    @cached_property
    def _defines_apply_gradient(self) -> bool:
        return any(
            isinstance(node, ast.FunctionDef)
            and node.name == "apply_gradient"
            and not self._is_definition_method(unit, node)
            for unit in self.facts.project.units
            for node in unit.nodes
        )

    def _has_states_of_its_own(self, unit: Unit) -> bool:
        """Whether a file's programs name nothing legacy, and have a class with such a field themselves."""
        program = self.facts.together(unit)
        units = [one for one in self.facts.project.units if one.path in program]
        imports = (item for one in units for item in self.facts.imported(one))
        if any(legacy_name(item.target) is not None for item in imports):
            return False
        classes = (cls for cls in self.facts.flow.reading.classes if cls.unit in units)
        return any("param_states" in self.facts.flow.fields_in_order(cls) for cls in classes)

    def _is_definition_method(self, unit: Unit, node: ast.FunctionDef) -> bool:
        owner = unit.parents.get(node)
        if not isinstance(owner, ast.ClassDef):
            return False
        ancestry = self.facts.flow.ancestry(self.facts.flow.class_of(owner))
        return any(
            isinstance(item, External) and legacy_name(item.name) is not None for item in ancestry
        )

    def _seed_deduced(self) -> bool:
        """Seed receivers of `.apply_gradient(…)`, then unknown `.create(…)` whose result gets there. Whether any was new."""
        seeded = False
        for unit, node in list(self.facts.flow.reading.attributes):
            if (
                node.attr == "param_states"
                and not self._known(unit, node.value, node.attr)
                and self._is_of_an_optimizer(unit, node)
                and not self._has_states_of_its_own(unit)
            ):
                self._seed_expression(node.value, Thing("state", unit, node, "", "deduced"))
                seeded = True
            if (
                node.attr != "apply_gradient"
                or self._known(unit, node.value, node.attr)
                or self._defines_apply_gradient
            ):
                continue
            if (evidence := _steps_by_hand(unit, node)) is not None and self._is_of_jax(unit):
                self._seed_expression(node.value, Thing("definition", unit, node, "", evidence))
                seeded = True
            elif not self._contradicted(unit, node):
                thing = Thing("optimizer", unit, node, "", "deduced")
                self._link_sources(thing, node.value)
                self._seed_expression(node.value, thing)
                seeded = True
        if seeded:
            self.facts.flow.solve()
        for unit, call in list(self.facts.flow.reading.calls):
            function = call.func
            if (
                not isinstance(function, ast.Attribute)
                or function.attr != "create"
                or self._known(unit, function.value, "create")
            ):
                continue
            of_optimizer = (
                isinstance(function.value, ast.Attribute)
                and function.value.attr == "optimizer_def"
                and self.facts.things(function.value.value, "optimizer")
            )
            if of_optimizer or self.facts.flow.solver.reaches(call, self._holds_deduced):
                thing = Thing("definition", unit, function, "", "deduced")
                self._seed_expression(function.value, thing)
                self._link_unknown(thing, unit, function.value)
                seeded = True
        return seeded

    def _link_unknown(self, thing: Thing, unit: Unit, node: ast.expr) -> None:
        """Let a thing of unknown origin migrate together with those of its kind that it may be."""
        for source in self.world.sources(unit, node):
            if source.kind == thing.kind:
                self.facts.legacy.links[thing, source] = None

    def _holds_deduced(self, place: Place) -> bool:
        """Whether an optimizer is at a place, and not just beside something else in a container."""
        mixed = isinstance(place, tuple) and place[0] == "elements"
        return not mixed and any(
            isinstance(item, Thing) and item.kind == "optimizer"
            for item in self.facts.flow.solver.at(place)
        )

    def _known(self, unit: Unit, node: ast.expr, attribute: str) -> bool:
        """Whether it is told what is there, other than what has no such attribute."""
        items = self.facts.objects(node)
        holds = any(
            isinstance(item, Derived) for item in items
        )  # what a package made may be what it was given
        told = [
            item
            for item in items
            if self._tells_of(item, attribute) and not (holds and isinstance(item, Result))
        ]
        if any(isinstance(item, Thing | Class | Module) for item in told):
            return True
        return bool(told) and not self.world.may_be_more(unit, node)

    def _tells_of(self, item: Object, attribute: str) -> bool:
        if isinstance(item, Function | Method) or not tells(item):
            return False
        if isinstance(item, Thing):
            return not attribute or attribute in ATTRIBUTES[item.kind]
        return self.members.may_offer(item, attribute)

    def _contradicted(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether a call of an `apply_gradient` cannot be, or is declared not to be, the one of a legacy optimizer."""
        call = unit.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or len(call.args) > 1:
            return True
        statement = unit.parents.get(call)
        unpacked = isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Tuple | ast.List) for target in statement.targets
        )
        return unpacked or self._annotated(node.value) or not self._is_of_jax(unit)

    def _is_of_an_optimizer(self, unit: Unit, node: ast.AST) -> bool:
        """Whether the state of something unknown is used, and not within a definition, to which its methods are handed it."""
        outer = [method for method in unit.ancestors(node) if isinstance(method, ast.FunctionDef)]
        return self._is_of_jax(unit) and not any(
            self._is_definition_method(unit, method) for method in outer
        )

    def _is_of_jax(self, unit: Unit) -> bool:
        return self._imports_legacy or IMPORTS_JAX.search(unit.code) is not None

    @cached_property
    def _imports_legacy(self) -> bool:
        imports = self.facts.flow.reading.imports
        if any(legacy_name(item.target) is not None or item.target == "flax" for item in imports):
            return True
        return any(map(IMPORTS_JAX.search, self.facts.others.values()))

    def _annotated(self, node: ast.expr) -> bool:
        """Whether a name, or the object whose attribute it is, is annotated with a type other than a legacy one."""
        place = self.facts.flow.places.get(node)
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
            return self._annotated(node.value)
        return any(
            annotation.target == place
            and not any(
                self._may_be_legacy(direct) for direct in direct_types(annotation.expression)
            )
            and ast.unparse(annotation.expression) not in ("Any", "typing.Any")
            for annotation in self.facts.flow.reading.annotations
        )

    def _may_be_legacy(self, declared: ast.expr) -> bool:
        """Whether an annotation names a legacy class, or one that is called so and comes from nowhere in view."""
        if any(legacy_name(name) is not None for name in self.facts.externals(declared)):
            return True
        return last_word(declared) in DECLARED and not any(map(tells, self.facts.objects(declared)))

    def _seed_likely(self) -> None:
        """Seed what is read or replaced as the parts of an optimizer are, on objects of which nothing else tells."""
        for unit, node in list(self.facts.flow.reading.attributes):
            known = self._known(
                unit, node.value, "target" if replaces_target(unit, node) else node.attr
            )
            if self._is_shaped_so(unit, node) and not known and not self._annotated(node.value):
                self._seed_reader(unit, node)

    def _is_shaped_so(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether this may be `x.target`, `x.replace(target=…)`, or the `x.state` of `x.state.step` and the like."""
        if not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in CERTAIN:
            return True
        return (
            node.attr == "target"
            or replaces_target(unit, node)
            or self._is_state(unit, node)
            or creates(unit, node)
        )

    @staticmethod
    def _is_state(unit: Unit, node: ast.Attribute) -> bool:
        parent = unit.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            parent = unit.parents.get(parent)
        return (
            node.attr == "state"
            and isinstance(parent, ast.Attribute)
            and parent.attr in ("step", "param_states")
        )

    def _seed_reader(self, unit: Unit, node: ast.Attribute) -> None:
        """Seed an optimizer if a use, its name, or what has gone out of view in the same program suggests one."""
        found = self.world.sources(unit, node.value)
        if node.attr == "create":
            self._seed_suspected("definition", unit, node, found)
            return
        sources = {thing: escape for thing, escape in found.items() if thing.kind == "optimizer"}
        named_so = OPTIMIZER_LIKE.search(last_word(node.value)) is not None
        if not sources and (
            "jax" not in unit.code or not (named_so or self._is_plain_use(unit, node))
        ):
            return
        if named_so and not sources and self.world.is_something_else(node.value):
            return
        if not self._is_sure(unit, node, named_so):
            self._seed_suspected("optimizer", unit, node, sources, always=True)
            return
        thing = Thing("optimizer", unit, node, "", "deduced")
        self._link_sources(thing, node.value)
        for source in sources:
            self.facts.legacy.links[thing, source] = None
        self._seed_expression(node.value, thing)

    def _seed_suspected(
        self,
        kind: str,
        unit: Unit,
        node: ast.Attribute,
        sources: Mapping[Thing, Escape | None],
        always: bool = False,
    ) -> None:
        """Seed what may be one of some things that have gone out of view, or something else."""
        own = {thing: escape for thing, escape in sources.items() if thing.kind == kind}
        if not own and not always:
            return
        thing = Thing(kind, unit, node, "", "likely")
        for source, escape in own.items():
            self.facts.legacy.links[thing, source] = None
            if self.suspected.get(thing) is None:
                self.suspected[thing] = escape
        self._seed_expression(node.value, thing)

    def _is_plain_use(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether an object is used as nothing but an optimizer is, whatever it is called."""
        parent = unit.parents.get(node)
        if node.attr == "target":
            return self._passed_as_params(unit, node)
        return isinstance(parent, ast.Attribute) and parent.attr == "param_states"

    def _is_sure(self, unit: Unit, node: ast.Attribute, named_so: bool) -> bool:
        word = last_word(node.value)
        return (
            (node.attr in CERTAIN and "jax" in unit.code)
            or bool(self._field_of_one_class(node.value))
            or (
                named_so
                and (
                    self._is_name_of_optimizers(unit, word)
                    or (unit, word) in self._names_with_targets
                )
            )
        )

    def _is_name_of_optimizers(self, unit: Unit, word: str) -> bool:
        """Whether legacy optimizers are called so, and in no program of a file anything else that may have their attributes."""
        legacy, others = self._called
        return word in legacy and others[word].isdisjoint(self.facts.together(unit))

    @cached_property
    def _called(self) -> tuple[frozenset[str], Mapping[str, set[str]]]:
        """The names of legacy optimizers, and by each name the files in which something else is called so."""
        legacy: set[str] = set()
        others: dict[str, set[str]] = defaultdict(set)
        for node in self.facts.flow.places:
            if (
                isinstance(node, ast.Name | ast.Attribute)
                and (word := last_word(node))
                and OPTIMIZER_LIKE.search(word)
            ):
                told = [item for item in self.facts.objects(node) if tells(item)]
                if any(isinstance(item, Thing) and item.kind == "optimizer" for item in told):
                    legacy.add(word)
                if any(not isinstance(item, Thing | Container | Function) for item in told):
                    others[word].add(self.facts.scope(node).unit.path)
        return frozenset(legacy), others

    @cached_property
    def _names_with_targets(self) -> frozenset[tuple[Unit, str]]:
        """The names of which a file says `name.replace(target=…)`, which nothing but a legacy optimizer has."""
        return frozenset(
            (unit, last_word(node.value))
            for unit, node in self.facts.flow.reading.attributes
            if replaces_target(unit, node)
        )

    def _link_sources(self, thing: Thing, node: ast.expr) -> None:
        """Let a thing migrate together with those that the fields of its name hold, or that it is derived from."""
        sources = [item.source for item in self.facts.objects(node) if isinstance(item, Derived)]
        for other in (*self._field_of_one_class(node), *sources):
            self.facts.legacy.links[thing, other] = None

    def _passed_as_params(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether something is used as parameters are: as `{"params": …}`, or first in a call of `apply`."""
        parent = unit.parents.get(node)
        if isinstance(parent, ast.Dict):
            key = parent.keys[parent.values.index(node)] if node in parent.values else None
            return isinstance(key, ast.Constant) and key.value == "params"
        return (
            isinstance(parent, ast.Call)
            and isinstance(parent.func, ast.Attribute)
            and parent.func.attr in ("apply", "call")
            and parent.args[:1] == [node]
        )

    def _field_of_one_class(self, node: ast.expr) -> list[Thing]:
        """The optimizers in the field that an attribute of something unknown names, if just one class has such a field."""
        if not isinstance(node, ast.Attribute) or CONFIG_LIKE.search(last_word(node.value)):
            return []
        if any(isinstance(item, Instance) for item in self.facts.objects(node.value)):
            return []
        found = [
            held
            for cls in self.facts.flow.reading.classes
            if (
                held := [
                    item
                    for item in self.facts.flow.solver.at(self.facts.flow.field(cls, node.attr))
                    if isinstance(item, Thing)
                ]
            )
        ]
        return found[0] if len(found) == 1 else []

    def _seed_expression(self, node: ast.expr, thing: Thing | Opaque) -> None:
        """Let a thing, or what carries one, be what an expression holds: at its variable or field, as other uses see it."""
        place = self.facts.flow.places[node]
        if isinstance(node, ast.Attribute):
            owners = [
                item
                for item in self.facts.objects(node.value)
                if isinstance(item, Instance | Opaque)
            ]
            if not owners:
                opaque = Opaque(self.facts.flow.places[node.value])
                self._seed_expression(node.value, opaque)
                owners = [opaque]
            for owner in owners:
                field = self.facts.flow.field(
                    owner.cls if isinstance(owner, Instance) else owner, node.attr
                )
                self.facts.flow.solver.add(field, thing)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = [item for item in self.facts.objects(node.value) if isinstance(item, Container)]
            if not held:
                held = [Container(node.value, "opaque")]
                self.facts.flow.solver.add(self.facts.flow.places[node.value], held[0])
            source = ("seeded", node)
            self.facts.flow.solver.add(source, thing)
            for container in held:
                self.facts.flow.store_element(container, self.facts.flow.key(node.slice), source)
        self.facts.flow.solver.add(place, thing)


def _steps_by_hand(unit: Unit, node: ast.Attribute) -> Literal["deduced", "likely"] | None:
    """How sure it is that this is the method in `definition.apply_gradient(definition.hyper_params, params, state, grads)`."""
    call = unit.parents.get(node)
    if not isinstance(call, ast.Call) or call.func is not node or not call.args:
        return None
    own = ast.dump(ast.Attribute(node.value, "hyper_params", ast.Load()))
    if any(ast.dump(inner) == own for inner in ast.walk(call.args[0])):
        return "deduced"
    named = isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript)  # unlike `super()`
    return "likely" if named and len(call.args) + len(call.keywords) == 4 else None


def last_word(node: ast.expr) -> str:
    """The name that an expression ends with: of a variable, an attribute or a key."""
    match node:
        case (
            ast.Name(id=name)
            | ast.Attribute(attr=name)
            | ast.Subscript(slice=ast.Constant(value=str(name)))
        ):
            return name
        case _:
            return ""
