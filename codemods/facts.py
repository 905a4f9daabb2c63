"""What rules ask about a project: which expressions are legacy objects, how sure that is, and what belongs together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.flow.constraints import Annotation, Constraints, Import, direct_types
from codemods.flow.modules import Project, Unit
from codemods.flow.objects import (
    Class,
    Container,
    External,
    Function,
    Instance,
    Module,
    Object,
    Opaque,
    Place,
    Result,
    Thing,
)
from codemods.flow.scopes import Scope
from codemods.legacy import DEFINITIONS, FOREIGN, FlaxOptim, legacy_name, traversal_name
from codemods.model import Evidence

IMPORTS_JAX = re.compile(r"^\s*(?:import|from)\s+(?:jax|flax)\b", re.MULTILINE)
OPTIMIZER_LIKE = re.compile(r"(^|_)(opt|optim|optimizer|optimiser)s?\d*(_|$)", re.IGNORECASE)
FOREIGN_OPTIMIZERS = (*FOREIGN, "jax.example_libraries.", "jax.experimental.")
STRENGTH: tuple[Evidence, ...] = ("proven", "declared", "deduced", "likely")


@dataclass(frozen=True, eq=False)
class Use:
    """One legacy construct: what kind of use it is, where, and which objects meet there.

    `kind` is `import`, `module`, `definition`, `base`, `annotation`, `check` (isinstance), `value` (a class or method used as a
    value), `dynamic` (a class chosen at run time), or `KIND.ATTRIBUTE` for an attribute of a thing, such as `optimizer.target`.
    """

    kind: str
    name: str
    unit: Unit
    node: ast.expr | ast.stmt
    things: tuple[Thing, ...]
    others: tuple[Object, ...] = ()
    legacy_import: bool = True

    @property
    def evidence(self) -> Evidence:
        found = {thing.evidence for thing in self.things}
        return next((level for level in STRENGTH if level in found), "proven")


class Facts:
    """Everything that the analysis of a project found out. `include_likely` treats likely optimizers as optimizers."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.legacy = FlaxOptim()
        self.flow = Constraints(self.legacy)
        self.project = Project(units)
        self.flow.read(self.project)
        self.flow.solve()
        self._seed()

    # What is where

    def objects(self, node: ast.expr) -> Iterable[Object]:
        place = self.flow.places.get(node)
        return () if place is None else self.flow.solver.at(place)

    def things(self, node: ast.expr, *kinds: str) -> list[Thing]:
        return [item for item in self.objects(node) if isinstance(item, Thing) and (not kinds or item.kind in kinds)]

    def externals(self, node: ast.expr) -> list[str]:
        return [item.name for item in self.objects(node) if isinstance(item, External)]

    def target(self, optimizer: Thing) -> Iterable[Object]:
        """What is known of the parameters an optimizer was created for."""
        return self.flow.solver.at(("target", optimizer))

    def scope(self, node: ast.expr) -> Scope:
        return self.flow.reading.scopes[node]

    def imported(self, unit: Unit) -> list[Import]:
        return [item for item in self.flow.reading.imports if item.unit is unit]

    def derives_from(self, cls: Class, *names: str) -> bool:
        """Whether a class has one of these external classes among its ancestors."""
        return any(isinstance(item, External) and item.name in names for item in self.flow.ancestry(cls))

    def within(self, place: Place, depth: int = 4) -> list[Thing]:
        """The things at a place and in the containers there."""
        found: dict[Thing, None] = {}
        for item in self.flow.solver.at(place):
            if isinstance(item, Thing):
                found[item] = None
            elif isinstance(item, Container) and depth:
                found.update(dict.fromkeys(self.within(("elements", item), depth - 1)))
            elif isinstance(item, Function) and depth:
                for argument in item.node.args.args:
                    found.update(dict.fromkeys(self.within(("variable", item.scope, argument.arg), 0)))
                found.update(dict.fromkeys(self.within(("return", item.node), depth - 1)))
        return list(found)

    # Evidence other than proof

    def _seed(self) -> None:
        self._seed_declared()
        self.flow.solve()
        for _ in range(8):
            if not self._seed_deduced():
                break
            self.flow.solve()
        self._adopt()
        self._seed_likely()
        self.flow.solve()

    def _adopt(self) -> None:
        """Link optimizers of unknown origin to those that they may be: created in the project and stepped nowhere in view.

        A function that nobody in the project calls gets its optimizer from outside, and one that such a function returns
        goes there. The two may be the same, so they migrate together; those of the same file are the first to be thought of.
        """
        made = [
            thing
            for _, call in self.flow.reading.calls
            for thing in self.things(call, "optimizer")
            if thing.node is call
        ]
        stepped = {
            thing
            for _, node in self.flow.reading.attributes
            if node.attr in ("apply_gradient", "optimize")
            for thing in self.things(node.value, "optimizer")
        }
        candidates = [thing for thing in made if thing not in stepped] or made
        for thing in stepped:
            if thing.evidence in ("declared", "deduced") and not self.legacy.definitions(thing):
                own = [candidate for candidate in candidates if candidate.unit is thing.unit]
                for candidate in own or candidates:
                    self.legacy.links[thing, candidate] = None

    def _seed_declared(self) -> None:
        for annotation in self.flow.reading.annotations:
            for direct in direct_types(annotation.expression):
                names = {legacy_name(name) for name in self.externals(direct)}
                for name, kind in (("Optimizer", "optimizer"), ("OptimizerDef", "definition")):
                    known = any(isinstance(item, Thing) for item in self.flow.solver.at(annotation.target))
                    if name in names and not known:
                        thing = Thing(kind, annotation.unit, annotation.node, "", "declared")
                        self.flow.solver.add(annotation.target, thing)

    @cached_property
    def _defines_apply_gradient(self) -> bool:
        return any(
            isinstance(node, ast.FunctionDef)
            and node.name == "apply_gradient"
            and not self._is_definition_method(unit, node)
            for unit in self.project.units
            for node in ast.walk(unit.tree)
        )

    def _is_definition_method(self, unit: Unit, node: ast.FunctionDef) -> bool:
        owner = unit.parents.get(node)
        if not isinstance(owner, ast.ClassDef):
            return False
        ancestry = self.flow.ancestry(self.flow.class_of(owner))
        return any(isinstance(item, External) and legacy_name(item.name) is not None for item in ancestry)

    def _seed_deduced(self) -> bool:
        """Seed receivers of `.apply_gradient(…)`, then unknown `.create(…)` whose result gets there. Whether any was new."""
        seeded = False
        for unit, node in list(self.flow.reading.attributes):
            if node.attr != "apply_gradient" or self._known(node.value) or self._defines_apply_gradient:
                continue
            if not self._contradicted(unit, node):
                thing = Thing("optimizer", unit, node, "", "deduced")
                self._seed_expression(node.value, thing)
                seeded = True
        if seeded:
            self.flow.solve()
        for unit, call in list(self.flow.reading.calls):
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr != "create" or self._known(function.value):
                continue
            if self.flow.solver.reaches(call, self._holds_deduced):
                self._seed_expression(function.value, Thing("definition", unit, function, "", "deduced"))
                seeded = True
        return seeded

    def _holds_deduced(self, place: Place) -> bool:
        return any(isinstance(item, Thing) and item.kind == "optimizer" for item in self.flow.solver.at(place))

    def _known(self, node: ast.expr) -> bool:
        return any(not isinstance(item, Opaque | Result) or _foreign(item) for item in self.objects(node))

    def _contradicted(self, unit: Unit, node: ast.Attribute) -> bool:
        """Whether a call of an `apply_gradient` cannot be, or is declared not to be, the one of a legacy optimizer."""
        call = unit.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or len(call.args) > 1:
            return True
        statement = unit.parents.get(call)
        unpacked = isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Tuple | ast.List) for target in statement.targets
        )
        return unpacked or self._annotated(node.value) or not (self._imports_legacy or IMPORTS_JAX.search(unit.code))

    @cached_property
    def _imports_legacy(self) -> bool:
        return any(legacy_name(item.target) is not None or item.target == "flax" for item in self.flow.reading.imports)

    def _annotated(self, node: ast.expr) -> bool:
        """Whether a name, or the object whose attribute it is, is annotated with a type other than a legacy one."""
        place = self.flow.places.get(node)
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
            return self._annotated(node.value)
        return any(
            annotation.target == place
            and not any(
                legacy_name(name) is not None
                for direct in direct_types(annotation.expression)
                for name in self.externals(direct)
            )
            and ast.unparse(annotation.expression) not in ("Any", "typing.Any")
            for annotation in self.flow.reading.annotations
        )

    def _seed_likely(self) -> None:
        for unit, node in list(self.flow.reading.attributes):
            if node.attr not in ("target", "state") or not isinstance(node.ctx, ast.Load) or self._known(node.value):
                continue
            name = _last_word(node.value)
            if not OPTIMIZER_LIKE.search(name) or "jax" not in unit.code or self._annotated(node.value):
                continue
            parent = unit.parents.get(node)
            if node.attr == "target" or (isinstance(parent, ast.Attribute) and parent.attr == "step"):
                same = self._field_of_one_class(node.value)
                thing = Thing("optimizer", unit, node, "", "deduced" if same else "likely")
                self.legacy.links.update({(thing, other): None for other in same})
                self._seed_expression(node.value, thing)

    def _field_of_one_class(self, node: ast.expr) -> list[Thing]:
        """The optimizers in the field that an attribute of something unknown names, if just one class has such a field."""
        if not isinstance(node, ast.Attribute):
            return []
        found = [
            held
            for cls in self.flow.reading.classes
            if (
                held := [
                    item for item in self.flow.solver.at(self.flow.field(cls, node.attr)) if isinstance(item, Thing)
                ]
            )
        ]
        return found[0] if len(found) == 1 else []

    def _seed_expression(self, node: ast.expr, thing: Thing) -> None:
        """Let a thing be what an expression holds: at its variable or field, so that other uses of that see it too."""
        place = self.flow.places[node]
        if isinstance(node, ast.Attribute):
            owners = [item for item in self.objects(node.value) if isinstance(item, Instance | Opaque)]
            if not owners:
                opaque = Opaque(self.flow.places[node.value])
                self.flow.solver.add(self.flow.places[node.value], opaque)
                owners = [opaque]
            for owner in owners:
                field = self.flow.field(owner.cls if isinstance(owner, Instance) else owner, node.attr)
                self.flow.solver.add(field, thing)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = [item for item in self.objects(node.value) if isinstance(item, Container)]
            if not held:
                held = [Container(node.value, "opaque")]
                self.flow.solver.add(self.flow.places[node.value], held[0])
            source = ("seeded", node)
            self.flow.solver.add(source, thing)
            for container in held:
                self.flow.store_element(container, self.flow.key(node.slice), source)
        self.flow.solver.add(place, thing)

    # Uses

    @cached_property
    def uses(self) -> list[Use]:
        """Every legacy construct of the project, in order of files and lines."""
        return [use for unit in self.project.units for use in self._uses_in(unit)]

    def _uses_in(self, unit: Unit) -> list[Use]:
        found: list[Use] = []
        for imported in self.imported(unit):
            known = any(use.node is imported.statement for use in found)
            if legacy_name(imported.target) is not None and not known:
                found.append(Use("import", imported.target, unit, imported.statement, ()))
        annotated = self._annotated_nodes(unit)
        for node in ast.walk(unit.tree):
            if isinstance(node, ast.Attribute | ast.Name):
                use = self._reference(unit, node, annotated) or self._attribute_use(unit, node)
                if use is not None:
                    found.append(use)
            elif isinstance(node, ast.Call):
                use = self._dynamic_use(unit, node) or self._reflection(unit, node)
                if use is not None:
                    found.append(use)
            elif isinstance(node, ast.Constant) and node in annotated:
                found.extend(self._quoted(unit, node, annotated[node]))
        return sorted(found, key=lambda use: (unit.span(use.node)[:2], unit.span(use.node)[2:]))

    def _annotated_nodes(self, unit: Unit) -> dict[ast.AST, Annotation]:
        return {
            node: annotation
            for annotation in self.flow.reading.annotations
            if annotation.unit is unit
            for node in (annotation.node, *ast.walk(annotation.expression))
        }

    def _textual(self, node: ast.expr) -> bool:
        """Whether an expression names a legacy class or module itself, rather than a variable that holds it."""
        if isinstance(node, ast.Attribute):
            return any(
                name in ("flax", "flax.traverse_util") or legacy_name(name) == "" for name in self.externals(node.value)
            )
        if not isinstance(node, ast.Name) or node not in self.flow.reading.scopes:
            return False
        binding = self.scope(node).binding(node.id)
        return any(
            imported.scope is binding and imported.name in (node.id, "*") for imported in self.flow.reading.imports
        )

    def _reference(
        self, unit: Unit, node: ast.Attribute | ast.Name, annotated: dict[ast.AST, Annotation]
    ) -> Use | None:
        if not isinstance(node.ctx, ast.Load) or not self._textual(node):
            return None
        externals = self.externals(node)
        name = next((name for item in externals if (name := legacy_name(item)) is not None), None)
        legacy_import = name is not None
        parent = unit.parents.get(node)
        if any(traversal_name(item) for item in externals):
            name = "ModelParamTraversal"
        if name is None:
            return None
        others = tuple(External(item) for item in externals if legacy_name(item) is None and not traversal_name(item))
        if isinstance(parent, ast.Attribute) and any(legacy_name(item) is not None for item in self.externals(parent)):
            return None
        if isinstance(parent, ast.Call) and parent.func is node:
            things = tuple(thing for thing in self.things(parent) if thing.node is parent)
            return Use("definition", name, unit, parent, things, others, legacy_import)
        if node in annotated:
            return Use("annotation", name, unit, node, self._annotated_things(annotated[node]), others)
        return self._class_value(unit, node, name, parent)

    def _class_value(self, unit: Unit, node: ast.expr, name: str, parent: ast.AST | None) -> Use:
        if isinstance(parent, ast.ClassDef):
            cls = self.flow.class_of(parent)
            return Use(
                "base",
                name,
                unit,
                node,
                self._made_by(lambda thing: thing.name == "custom" and self._makes(thing, cls)),
            )
        container = unit.parents.get(parent) if isinstance(parent, ast.Tuple) and parent is not None else parent
        if isinstance(container, ast.Call) and "builtins.isinstance" in self.externals(container.func):
            return Use("check", name, unit, node, tuple(self.things(container.args[0], "optimizer")))
        if name == "":
            return Use("module", name, unit, node, self._made_by(lambda thing: thing.name == "?"))
        return Use(
            "value", name, unit, node, self._made_by(lambda thing: thing.name == name and not self._direct(thing))
        )

    def _made_by(self, condition: Callable[[Thing], bool]) -> tuple[Thing, ...]:
        made = (thing for thing in self._all_things if thing.kind == "definition" and condition(thing))
        return tuple(made)

    @cached_property
    def _all_things(self) -> list[Thing]:
        found: dict[Thing, None] = {}
        for node in self.flow.places:
            found.update(dict.fromkeys(self.things(node)))
        return list(found)

    def _direct(self, thing: Thing) -> bool:
        return isinstance(thing.node, ast.Call) and self._textual(thing.node.func)

    def _makes(self, thing: Thing, cls: Class) -> bool:
        if not isinstance(thing.node, ast.Call):
            return False
        return any(
            isinstance(item, Class) and cls in self.flow.ancestry(item) for item in self.objects(thing.node.func)
        )

    def _annotated_things(self, annotation: Annotation) -> tuple[Thing, ...]:
        return tuple(thing for thing in self.within(annotation.target) if thing.kind in ("optimizer", "definition"))

    def _quoted(self, unit: Unit, node: ast.Constant, annotation: Annotation) -> Iterable[Use]:
        if annotation.node is not node:
            return
        for inner in ast.walk(annotation.expression):
            if isinstance(inner, ast.Name | ast.Attribute) and self._textual(inner):
                names = [legacy_name(name) for name in self.externals(inner)]
                name = next((name for name in names if name), None)
                if name:
                    yield Use("annotation", name, unit, node, self._annotated_things(annotation))
                    return

    def _dynamic_use(self, unit: Unit, node: ast.Call) -> Use | None:
        """A call of a legacy class that came through a variable."""
        if self._textual(node.func):
            return None
        names = [legacy_name(name) for name in self.externals(node.func)]
        if not any(name in (*DEFINITIONS, "?") for name in names):
            return None
        return Use("dynamic", next(name for name in names if name), unit, node, tuple(self.things(node, "definition")))

    def _reflection(self, unit: Unit, node: ast.Call) -> Use | None:
        """`getattr`, `hasattr` or `setattr` on a thing, with the name of one of its attributes or one that is not plain."""
        if len(node.args) < 2 or not {"builtins.getattr", "builtins.hasattr", "builtins.setattr"} & {
            *self.externals(node.func)
        }:
            return None
        name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
        things = [thing for thing in self.things(node.args[0]) if name is None or name in ATTRIBUTES[thing.kind]]
        return Use("reflection", str(name), unit, node, tuple(things)) if things else None

    def _attribute_use(self, unit: Unit, node: ast.Attribute | ast.Name) -> Use | None:
        if not isinstance(node, ast.Attribute):
            return None
        things = self.things(node.value)
        if not things:
            return None
        kinds = {thing.kind: None for thing in things}
        owner = next((kind for kind in kinds if node.attr in ATTRIBUTES.get(kind, ())), None)
        if owner is None:
            return None
        others = tuple(item for item in self.objects(node.value) if self._offers(item, node.attr))
        owners = tuple(thing for thing in things if thing.kind == owner)
        return Use(f"{owner}.{node.attr}", node.attr, unit, node, owners, others)

    def _offers(self, item: Object, name: str) -> bool:
        """Whether something that is no legacy object could answer to this attribute."""
        match item:
            case Instance(cls=cls):
                if any(
                    isinstance(base, External) and legacy_name(base.name) is not None
                    for base in self.flow.ancestry(cls)
                ):
                    return False
                members = {*cls.scope.names, *self.flow.fields_in_order(cls)}
                return name in members or (name == "replace" and "step" in members)
            case Module() | Class():
                return True
            case Result() | External():
                return _foreign(item)
            case _:
                return False


ATTRIBUTES = {
    "definition": frozenset(
        (
            "create",
            "hyper_params",
            "apply_gradient",
            "init_state",
            "update_hyper_params",
            "state_dict",
            "restore_state",
            "apply_param_gradient",
            "init_param_state",
        )
    ),
    "optimizer": frozenset(
        (
            "target",
            "state",
            "optimizer_def",
            "apply_gradient",
            "replace",
            "compute_gradient",
            "compute_gradients",
            "optimize",
            "replicate",
            "unreplicate",
            "state_dict",
            "restore_state",
        )
    ),
    "state": frozenset(("step", "param_states", "replace")),
    "hyper_params": frozenset(),
    "traversal": frozenset(("iterate", "update", "set", "compose", "merge", "filter", "tree", "each", "__getitem__")),
}


def _last_word(node: ast.expr) -> str:
    """The name that an expression ends with: of a variable, an attribute or a key."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def _foreign(item: Object) -> bool:
    return isinstance(item, Result | External) and item.name.startswith(FOREIGN_OPTIMIZERS)


def unify(things: Iterable[Iterable[Thing]]) -> dict[Thing, Thing]:
    """Union-find: for each thing the representative of its group, given the sets that belong together."""
    parent: dict[Thing, Thing] = {}

    def find(item: Thing) -> Thing:
        parent.setdefault(item, item)
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for together in things:
        members = list(together)
        for member in members:
            parent[find(member)] = find(members[0])
    return {item: find(item) for item in tuple(parent)}
