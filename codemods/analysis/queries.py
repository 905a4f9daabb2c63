"""Questions about the expressions of a project, once it is solved which objects each may be."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from codemods.analysis.flax_optim import FlaxOptim
from codemods.analysis.legacy import LegacyName, Unnamed, legacy_name
from codemods.dataflow.effects import Variable
from codemods.dataflow.moments import Dataflow
from codemods.inference.holders import unwrapped
from codemods.inference.imports import exported
from codemods.inference.library import APPLYING, BEHAVIOURS
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Function,
    Instance,
    LegacyObject,
    Method,
    Module,
    Object,
    Place,
    Record,
)
from codemods.inference.recorded import Annotation, Import, PassedOn
from codemods.inference.scopes import Scope
from codemods.inference.view import View
from codemods.sources.modules import Project, Unit
from codemods.sources.relevance import Graph, import_graph, reachable
from codemods.vocabulary import PACKAGE

MAKING = ("create", "init_state")
"""The methods of which a call makes an optimizer, or its state."""


class Queries:
    """What each expression of a project may be, and how its files belong together.

    Args:
      units: the files that are analysed.
      named_classes: the legacy classes that the project names in quotes.
      others: the texts of files of the project that are not read.
      graphs: which files import which, and which are imported by which, if that is known.
      around: files that are read where a question leads there, and are not asked about.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        named_classes: Iterable[str] = (),
        others: Mapping[str, str] = MappingProxyType({}),
        graphs: tuple[Graph, Graph] | None = None,
        around: Iterable[Unit] = (),
    ) -> None:
        self.named_classes = frozenset(named_classes)
        around = list(around)
        self.others = {**others, **{unit.path: unit.code for unit in around}}
        self._together: dict[str, set[str]] = {}
        self._known_graphs = graphs
        self._version = -1
        self._within: dict[Place, list[LegacyObject]] = {}
        self._held: dict[Container, list[ast.expr]] = {}
        self.project = Project(units, others, around)
        self.legacy = FlaxOptim()
        self.flow = View(self.project, self.legacy)

    @cached_property
    def dataflow(self) -> Dataflow:
        """When things happen, and what changes them."""
        importers = self.graphs[1]
        above = reachable((unit.path for unit in self.project.read), importers)
        others = [text for path, text in self.project.others.items() if path in above]
        return Dataflow(self.flow, others)

    def together(self, unit: Unit) -> set[str]:
        """The paths of the files that may run in one program with a file.

        These are it, its importers, and all that they import.
        """
        if unit.path not in self._together:
            imports, importers = self.graphs
            self._together[unit.path] = reachable(
                reachable({unit.path}, importers), imports
            )
        return self._together[unit.path]

    def in_programs_of(self, units: Iterable[Unit]) -> list[Unit]:
        """The files that may run in one program with any of some."""
        paths = set[str]().union(*map(self.together, units))
        return [unit for unit in self.project.units if unit.path in paths]

    def importers_of(self, unit: Unit) -> set[str]:
        """The paths of the files that import a file themselves."""
        return self.graphs[1][unit.path]

    @cached_property
    def graphs(self) -> tuple[Graph, Graph]:
        codes = {unit.path: unit.code for unit in self.project.units}
        return self._known_graphs or import_graph({**codes, **self.others})

    # What is where

    def objects(self, node: ast.expr) -> Iterable[Object]:
        place = self.flow.places.read(node)
        return () if place is None else self.flow.solver.at(place)

    def legacy_objects(self, node: ast.expr, *kinds: str) -> list[LegacyObject]:
        return [
            item
            for item in self.objects(node)
            if isinstance(item, LegacyObject) and (not kinds or item.kind in kinds)
        ]

    def externals(self, node: ast.expr) -> list[str]:
        """The full names of what an expression may be that is out of view."""
        return [item.name for item in self.objects(node) if isinstance(item, External)]

    def made_at(self, call: ast.Call, *kinds: str) -> list[LegacyObject]:
        """What a call itself makes."""
        if all(map(self._makes_nothing, self.objects(call.func))):
            return []
        return [obj for obj in self.legacy_objects(call, *kinds) if obj.node is call]

    def _makes_nothing(self, callee: Object) -> bool:
        """Whether what a call gives is not made by this very call, but within, or is unknown."""
        match callee:
            case External(name=name):
                makes = self.legacy.function(name) is not None
                return not makes or (name in BEHAVIOURS and name not in APPLYING)
            case Class():
                return not self.legacy_bases(callee)
            case Method(owner=owner):
                return not isinstance(owner, LegacyObject)
            case Function() | Instance() | Module() | Container():
                return True
        return False

    def may_be_one(self, node: ast.expr, cls: Class) -> bool:
        """Whether an expression may be an instance of a class."""
        return Instance(cls) in self.objects(node)

    def functions(self, node: ast.expr) -> list[Function]:
        """The functions of the project that an expression may be, as they are."""
        return [item for item in self.objects(node) if isinstance(item, Function)]

    def full_name(self, node: ast.expr) -> str:
        """The full name of an expression, if imports show it: `jax.numpy.sqrt` for `jnp.sqrt`.

        Empty otherwise.
        """
        return self.dataflow.program.full_name(node)

    def names(self, node: ast.expr) -> set[str]:
        """All full names that an expression may have."""
        return {*self.externals(node), self.full_name(node)} - {""}

    def target(self, optimizer: LegacyObject) -> Iterable[Object]:
        """The known objects among the params that an optimizer was created for."""
        return self.flow.solver.at(("target", optimizer))

    def scope(self, node: ast.expr) -> Scope:
        return self.flow.reading.scopes[node]

    def binding(self, name: ast.Name) -> Scope | None:
        """The scope that binds what a name stands for; None if none in view does."""
        seen = self.flow.engine.names.seen_from(name, self.scope(name))
        return seen.binding(name.id)

    def with_quoted(self, annotation: Annotation) -> Iterator[Annotation]:
        """An annotation, and those in quotes within it, at any depth."""
        yield annotation
        for node in ast.walk(annotation.expression):
            inner = self._annotations.get(node)
            if inner is not None and inner is not annotation:
                yield from self.with_quoted(inner)

    @cached_property
    def _annotations(self) -> dict[ast.AST, Annotation]:
        return {
            annotation.node: annotation for annotation in self.flow.reading.annotations
        }

    def imported(self, unit: Unit) -> list[Import]:
        """The imports of a file from outside of the project.

        Those of legacy names that another of its files passes on count, too.
        """
        return self._imports.get(unit, [])

    @cached_property
    def _imports(self) -> dict[Unit, list[Import]]:
        found: dict[Unit, list[Import]] = {unit: [] for unit in self.project.units}
        for item in self.flow.reading.imports:
            found.setdefault(item.unit, []).append(item)
        # from project.optimizers import Adam
        for passed in self.flow.reading.passed_on:
            target = self._legacy_names.get((passed.scope, passed.name))
            if target is not None and passed.name != "*":
                item = Import(
                    passed.unit,
                    passed.statement,
                    passed.alias,
                    passed.scope,
                    passed.name,
                    target,
                )
                found.setdefault(passed.unit, []).append(item)
        return found

    def looked_up(self, unit: Unit) -> set[str | None]:
        """The keys by which variables of a module are read: `globals()[key]`; None for any."""
        return {key for key, _ in self.flow.looked_up.get(unit, ())}

    def is_imported(self, scope: Scope | None, name: str) -> bool:
        """Whether an import binds a name in a scope, perhaps by a star."""
        names = self._imported_names
        return any(scope in names.get(one, ()) for one in (name, "*"))

    def names_legacy(self, node: ast.expr) -> bool:
        """Whether an expression names a legacy class or module by imports alone.

        A variable that holds one does not count.
        """
        if not isinstance(node, ast.Attribute) or self._is_by_import(node):
            return self._is_by_import(node)
        # optim.Adam: the owner `optim` has to be legacy, and imported
        if not (self._is_by_import(node.value) or self.names_legacy(node.value)):
            return False
        return any(
            name in ("flax", "flax.traverse_util") or legacy_name(name) is not None
            for name in self.externals(node.value)
        )

    def _is_by_import(self, node: ast.expr) -> bool:
        """Whether an expression is a name that an import binds, in a module or a class."""
        match node:
            # `Adam` after `from flax.optim import Adam`
            case ast.Name() if node in self.flow.reading.scopes:
                binding = self.binding(node)
                return binding is None or (
                    self.is_imported(binding, node.id)
                    and self.finds_import(node, binding)
                )
            # `optimizers.Adam` of a module of the project that imports it
            case ast.Attribute(value=owner, attr=name) if not (
                self._imported_names.keys().isdisjoint((name, "*"))
            ):
                scopes = map(self._namespace, self.objects(owner))
                return any(
                    scope is not None and self.is_imported(scope, name)
                    for scope in scopes
                )
        return False

    def finds_import(self, node: ast.Name, binding: Scope) -> bool:
        """Whether a name that an import binds may still mean that where it is read.

        It does not behind `optim = flax.optim.Adam(0.1).create(params)`.
        """
        definitions, variable = self.dataflow.definitions, Variable(binding, node.id)
        stores = definitions.stores(variable)
        if all(isinstance(store, ast.alias) for store in stores):
            return True
        reaching = definitions.reaching(node, variable)
        if reaching:
            return any(isinstance(store, ast.alias) for store in reaching)
        # In a function, what is read tells which of the two it is.
        if not self.legacy_objects(node):
            return True
        parent = binding.unit.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in self.legacy.members(
            PACKAGE
        )

    def _namespace(self, item: Object) -> Scope | None:
        """The scope whose names are the attributes of an object."""
        match item:
            case Module(unit=Unit() as unit):
                return self.flow.modules[unit]
            case Class(scope=scope) | Instance(cls=Class(scope=scope)):
                return scope
        return None

    @cached_property
    def made(self) -> tuple[LegacyObject, ...]:
        """What the calls of the project make."""
        calls = (call for _, call in self.flow.reading.calls)
        return tuple(dict.fromkeys(obj for call in calls for obj in self.made_at(call)))

    @cached_property
    def made_by_modules(self) -> tuple[LegacyObject, ...]:
        """The definitions that are made by the module `flax.optim` in a variable or parameter."""
        found: list[LegacyObject] = []
        for obj in self.made:
            match obj:
                # def make(library): return library.Adam(1e-3)
                case LegacyObject(
                    kind="definition",
                    node=ast.Call(func=ast.Attribute(value=owner) as called),
                ) if not self.names_legacy(called):
                    if Unnamed.MODULE in map(legacy_name, self.externals(owner)):
                        found.append(obj)
        return tuple(found)

    @cached_property
    def _imported_names(self) -> dict[str, set[Scope | None]]:
        """By the names that imports bind, the scopes in which they do."""
        found: dict[str, set[Scope | None]] = defaultdict(set)
        for item in self.flow.reading.imports:
            found[item.name].add(item.scope)
        for scope, name in self._legacy_names:
            found[name].add(scope)
        return found

    @cached_property
    def _legacy_names(self) -> dict[tuple[Scope | None, str], str]:
        """What the names stand for that modules have from legacy imports.

        Other modules of the project may be in between.
        """
        found: dict[tuple[Scope | None, str], str] = {}
        for item in self.flow.reading.imports:
            if legacy_name(item.target) is None:
                continue
            if item.name != "*":
                found[item.scope, item.name] = item.target
                continue
            # from flax.optim import *
            for name in self.legacy.members(item.target):
                found[item.scope, name] = f"{item.target}.{name}"
        # from project.optimizers import Adam, or a star
        pending = list(found)
        while pending:
            scope, name = pending.pop()
            for passed in self.takers[scope] if scope is not None else ():
                is_named = passed.alias.name == name
                is_by_star = passed.name == "*" and scope and name in exported(scope)
                brought = passed.name if is_named else name
                if (is_named or is_by_star) and (passed.scope, brought) not in found:
                    found[passed.scope, brought] = found[scope, name]
                    pending.append((passed.scope, brought))
        return found

    @cached_property
    def takers(self) -> dict[Scope, list[PassedOn]]:
        """The imports that take names from a module of the project, by its scope."""
        found: dict[Scope, list[PassedOn]] = defaultdict(list)
        for passed in self.flow.reading.passed_on:
            for source in passed.sources:
                found[source].append(passed)
        return found

    def holders(self, container: Container) -> list[ast.expr]:
        """The expressions that may stand for a container."""
        if container not in self._held:
            stands = self.flow.stands_at(container.node)
            held = [node for _, node in stands if container in self.objects(node)]
            self._held[container] = held
        return self._held[container]

    def outer_bases(self, cls: Class) -> list[str]:
        """The full names of the classes out of view from which a class derives."""
        ancestry = self.flow.ancestry(cls)
        return [item.name for item in ancestry if isinstance(item, External)]

    def bases_out_of_view(self, cls: Class) -> Iterator[ast.expr]:
        """The bases of a class, and of its bases, that are not in view."""
        for one in self.flow.ancestry(cls):
            for base in one.node.bases if isinstance(one, Class) else ():
                items = self.objects(base)
                if not any(isinstance(item, Class | Record) for item in items):
                    yield base

    def derives_from(self, cls: Class, *names: str) -> bool:
        """Whether a class has one of these external classes among its ancestors."""
        return not {*names}.isdisjoint(self.outer_bases(cls))

    def legacy_bases(self, cls: Class) -> set[LegacyName]:
        """The legacy names among the ancestors of a class."""
        names = map(legacy_name, self.outer_bases(cls))
        return {name for name in names if name is not None}

    def are_params(self, node: ast.expr) -> bool:
        """Whether this is an optimizer's `target`, in which there is no optimizer."""
        if self.legacy_objects(node, "optimizer", "state_dict"):
            return False
        behind = self.flow.sources.behind(self.flow.places.get(node))
        return any(isinstance(one, tuple) and one[0] == "target" for one in behind)

    def within(self, place: Place) -> list[LegacyObject]:
        """The objects at a place, in containers there, and in what functions take and return."""
        version = self.flow.solver.version
        if self._version != version:
            self._version = version
            self._within.clear()
        if place not in self._within:
            self._within[place] = self._found_within(place)
        return [*self._within[place]]

    def _found_within(self, place: Place) -> list[LegacyObject]:
        found: dict[LegacyObject, None] = {}
        pending, seen = [place], {place}
        for one in pending:  # grows while it is read
            for item in map(unwrapped, self.flow.solver.at(one)):
                if isinstance(item, LegacyObject):
                    found[item] = None
                new = [part for part in self._parts(item) if part not in seen]
                seen.update(new)
                pending += new
        return list(found)

    @staticmethod
    def _parts(item: Object) -> Iterable[Place]:
        match item:
            case Container():
                return (("elements", item),)
            case Function(node=node, scope=scope):
                parameters = (("variable", scope, one.arg) for one in node.args.args)
                return (*parameters, ("return", node))
        return ()
