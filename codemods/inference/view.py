"""A project as its rules see it: what an expression may be, in any of the calls that lead to it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace

from codemods.inference.annotations import TypeWithin, quoted_types, types_within
from codemods.inference.answers import Answers
from codemods.inference.depth import DEEP
from codemods.inference.engine import Inference
from codemods.inference.library import Library
from codemods.inference.objects import (
    Arguments,
    Called,
    Class,
    Container,
    Declared,
    External,
    Instance,
    Key,
    LegacyObject,
    Made,
    Object,
    Opaque,
    Place,
    Result,
    Stored,
    plain,
)
from codemods.inference.reading import key_of
from codemods.inference.recorded import Annotation, Import, PassedOn, Reading
from codemods.inference.scopes import Scope
from codemods.inference.sources import Sources, unframed
from codemods.inference.tracing import Trace
from codemods.sources.modules import Project, Unit

TABLES = ("pytest.mark.parametrize", "pytest.param", "absl.testing.parameterized.")
"""Functions that give tests what they are given."""


class View:
    """The expressions, functions and classes of a project, and what each may be."""

    def __init__(self, project: Project, library: Library) -> None:
        self.engine = Inference(project, library)
        self.project = project
        self.library = library
        self.solver = Answers(self.engine)
        self.reading = Reading()
        self.reading.scopes = self.engine.scopes
        self.places = Places(self.engine)
        self.modules: Mapping[Unit, Scope] = {
            unit: self.engine.module(unit) for unit in project.read
        }
        self.entered = Entered(self)
        self.sources = Sources(self)
        self._names: dict[ast.expr, set[str]] = {}
        self.key = key_of
        for unit in project.units:
            contents = self.engine.contents(unit)
            self.reading.calls += ((unit, call) for call in contents.calls)
            self.reading.attributes += ((unit, node) for node in contents.attributes)
            self.reading.functions += contents.functions
            self.reading.classes += contents.classes
            self._read_imports(unit, self.reading.imports)
            for node, scope, owner in self.engine.contents(unit).annotated:
                self.annotate(node, scope, self._annotated(owner, scope))
        for unit in project.around:
            self._read_imports(unit, from_outside=[])
        self._read_casts()

    # Imports and annotations

    def _read_imports(self, unit: Unit, from_outside: list[Import]) -> None:
        for node in unit.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self._read_import(unit, node, alias, from_outside)

    def _read_import(
        self,
        unit: Unit,
        node: ast.Import | ast.ImportFrom,
        alias: ast.alias,
        from_outside: list[Import],
    ) -> None:
        scope = self.engine.stands(unit, node)
        if isinstance(node, ast.Import):
            name, target = alias.asname or alias.name.partition(".")[0], alias.name
            is_outside = not self.engine.imports.absolute(unit, alias.name)
        else:
            name, target = alias.asname or alias.name, node.module or ""
            if alias.name != "*":
                target = f"{'.' * node.level}{target}.{alias.name}"
            sources = self.engine.imports.sources(unit, node)
            is_outside = not (sources or self.engine.imports.others(unit, node))
            if sources:
                units = (module.unit for module in sources)
                scopes = tuple(self.modules[one] for one in units if one is not None)
                owner = scope.binding(name) or scope
                passed = PassedOn(unit, node, alias, owner, name, scopes)
                self.reading.passed_on.append(passed)
        if is_outside:
            owner = scope.binding(name) or scope
            from_outside.append(Import(unit, node, alias, owner, name, target))

    def _read_casts(self) -> None:
        """Note what `typing.cast(optim.Optimizer, value)` declares."""
        units = set(self.project.units)
        for call in self.engine.index.called.get("cast", ()):
            scope = self.engine.scopes[call]
            is_cast = External("typing.cast") in self.solver.at(call.func)
            if scope.unit in units and is_cast and call.args:
                self.annotate(call.args[0], scope, self.places[call])

    def _annotated(self, owner: ast.AST, scope: Scope) -> Place:
        """The place of what has an annotation."""
        match owner:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return ("return", owner)
            case ast.arg():
                function = self.engine.function_with(owner)
                declared = function.node.args
                if owner in (declared.vararg, declared.kwarg):
                    return ("declared", owner)
                return ("variable", function.scope, owner.arg)
            case ast.AnnAssign(target=ast.Name(id=name)):
                if isinstance(scope.node, ast.ClassDef):
                    return ("field", self.class_of(scope.node), name)
                return ("variable", scope.binding(name) or scope, name)
            case ast.AnnAssign(target=ast.Attribute(value=own, attr=name) as target):
                method = self.engine.method_of(own)
                cls = None if method is None else self.engine.class_of_method(method)
                if cls is not None:
                    return ("field", cls, name)
                return ("annotated", target)
            case ast.AnnAssign(target=target):
                return ("annotated", target)
        return ("annotated", owner)

    def annotate(self, node: ast.expr, scope: Scope, target: Place) -> None:
        expression = node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            quoted_type = self.engine.quoted(node)
            if quoted_type is None:
                return
            expression = quoted_type
        annotation = Annotation(scope.unit, node, expression, scope, target)
        self.reading.annotations.append(annotation)
        others = dict.fromkeys(quoted_types(expression))
        for named in types_within(expression):
            match named.type:
                case ast.Constant() as quoted:
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, self.inside(target, named))
                case ast.Subscript(slice=ast.Constant(value=str()) as quoted):
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, ("class", quoted))
        # quoted types of which the value has no part: the parameters of a Callable
        for quoted in others:
            self.annotate(quoted, scope, ("declared", quoted))

    def inside(self, place: Place, named: TypeWithin) -> Place:
        """The place of the part of an annotated value that is of a type within its annotation."""
        for node, step in named.path:
            if step == "returned":
                self.solver.add(place, Declared(node))
                place = ("returned", node)
            else:
                box = Container(node, "declared")
                self.solver.add(place, box)
                place = ("declared", node, step)
                key = step if isinstance(step, int) else None
                self.engine.solver.add(("stored", box), Stored(key, place))
        return place

    # What is within others

    def carried(self, place: Place, *carriers: type) -> list[LegacyObject]:
        """The legacy objects at a place, in containers and in fields of instances there.

        Args:
          place: where to look.
          carriers: the kinds of objects to look into; containers and instances if none are given.
        """
        found: dict[LegacyObject, None] = {}
        pending: list[Object] = []
        for asked in self.solver.asked(place):
            pending += self.engine.solver.at(asked)
        seen = set(pending)
        while pending:
            item = pending.pop()
            if isinstance(item, LegacyObject):
                found[item] = None
            for inner in self._parts(item, carriers or (Container, Instance)):
                if inner not in seen:
                    seen.add(inner)
                    pending.append(inner)
        return [*found]

    def _parts(self, item: Object, carriers: tuple[type, ...]) -> list[Object]:
        kind = plain(item)
        if not isinstance(kind, carriers):
            return []
        if isinstance(kind, Container):
            return [*self.engine.solver.at(("item in", item, None))]
        found: list[Object] = []
        if isinstance(item, Instance | Made):
            for name in self._field_names(item.cls):
                found += self.engine.solver.at(("field", item, name))
        return found

    def _field_names(self, cls: Class) -> dict[str, None]:
        """The names of all fields of an instance, inherited or not."""
        classes = (one for one in self.ancestry(cls) if isinstance(one, Class))
        return {name: None for one in classes for name in self.engine.fields_named(one)}

    # Classes

    def ancestry(self, cls: Class) -> list[Object]:
        """The class, its bases and theirs, nearest first; some are external."""
        return [*self.engine.solver.at(("ancestry", cls))]

    def class_of(self, node: ast.ClassDef) -> Class:
        return self.engine.class_of(node)

    def defining(self, cls: Class, name: str) -> Iterator[Class]:
        """The class and those of its bases that bind a name, nearest first."""
        for item in self.ancestry(cls):
            if isinstance(item, Class) and name in item.scope.names:
                yield item

    def fields_in_order(self, cls: Class) -> list[str]:
        """The annotated fields of a dataclass or NamedTuple, inherited ones first."""
        return [str(one) for one in self.engine.solver.at(("fields in order", cls))]

    @staticmethod
    def field(owner: Hashable, name: str) -> Place:
        return ("field", owner, name)

    def field_places(self, cls: Class | Opaque) -> list[Place]:
        """The places of all fields of an instance, inherited or not."""
        if isinstance(cls, Opaque):
            return []
        return [("field", cls, name) for name in self._field_names(cls)]

    def is_asked_by_any_name(self, _: Class) -> bool:
        """Whether some field is read or written by a name that is computed."""
        return self.engine.index.reflects

    # Names and calls

    def keys_of(self, container: Container) -> tuple[object, ...]:
        """The keys under which a container has elements, None among them if some are not known."""
        entries: list[Object] = []
        for form in self.solver.forms(container):
            entries += self.engine.solver.at(("entries of", form, None))
        stored = (one for one in entries if isinstance(one, Stored))
        # **options: dict tells of no key
        declared = ("declared", container.node)
        keys = (one.key for one in stored if one.place != declared)
        return tuple(dict.fromkeys(keys))

    @property
    def looked_up(self) -> Mapping[Unit, dict[tuple[str | None, Place], None]]:
        """The keys by which variables of each module are read, None for any, and where these go."""
        return self.engine.looked_up

    def stands_at(self, place: Place) -> Iterable[tuple[Unit, ast.expr]]:
        """Where what is at a place may stand, or what holds it, by the text."""
        match place:
            case ast.expr():
                yield from self.trace(place).nodes
            case ast.arg(arg=name):
                scope = self.engine.function_with(place).scope
                yield from self.stands_at(("variable", scope, name))
            case ("variable", Scope(), str()):
                yield from self.engine.tracing.of(place, depth=DEEP).nodes  # type: ignore[arg-type]
            case ("target", LegacyObject() as optimizer):
                for _, node in self.reading.attributes:
                    if node.attr == "target" and self.solver.has(node.value, optimizer):
                        yield from self.trace(node).nodes

    def trace(self, node: ast.expr) -> Trace:
        """What becomes of the value of an expression, or of what holds it, by the text."""
        unit = self.engine.scopes[node].unit
        return self.engine.tracing.of(("value", unit, node), depth=DEEP)

    def store_element(self, container: Container, key: Key, place: Place) -> None:
        """Let a container have what is at a place as an element."""
        self.engine.solver.add(("stored", container), Stored(key, place))

    # What is out of view

    def is_unknown(self, callee: Place) -> bool:
        """Whether nothing is known of a function."""
        known = self.library.function
        return all(
            isinstance(item, External | Result) and known(item.name) is None
            for item in self.solver.at(callee)
        )

    def is_only_looked_at(self, call: ast.AST, keyword: str | None = None) -> bool:
        """Whether an argument is one of the `choices` of a command, or in the table of a test."""
        if not isinstance(call, ast.Call):
            return False
        names = self.origin_names(call.func)
        kinds = ("argparse.",) if keyword == "choices" else TABLES
        return all(name.startswith(kinds) for name in names)

    def may_be_unknown(self, place: Place) -> bool:
        """Whether something of which nothing is known may be at a place, beside the rest."""
        for root in self.sources.roots(place):
            match root:
                case ast.Constant():
                    continue
                case ast.expr() | ("variable", _, str()):
                    if not self.solver.at(root):
                        return True
        return False

    def origin_names(self, node: ast.expr) -> set[str]:
        """The full names that an expression may stand for, as far as imports tell.

        `queue.Queue().put` is one. An empty name stands for what is not known.
        """
        if node not in self._names:
            # of what comes from itself alone, nothing is known
            self._names[node] = {""}
            self._names[node] = self._found_names(node)
        return self._names[node]

    def _found_names(self, node: ast.expr) -> set[str]:
        items = self.solver.at(node)
        found = {name for item in items for name in self._names_of(item)}
        if found:
            return found
        ending = ""
        match node:
            case ast.Attribute(value=value, attr=attribute):
                ending, names = f".{attribute}", self.origin_names(value)
            case ast.Call(func=function):
                ending, names = "()", self.origin_names(function)
            case ast.Subscript(value=value):
                names = self.origin_names(value)
            case ast.Constant(value=value):
                names = {f"builtins.{type(value).__name__}"}
            case ast.JoinedStr():
                names = {"builtins.str"}
            case _:
                roots = self.sources.roots(self.places.get(node))
                parts = [one for one in roots if isinstance(one, ast.expr)]
                names = {name for one in parts for name in self.origin_names(one)}
                if len(parts) < len(roots):
                    names.add("")
        return {name and f"{name}{ending}" for name in names}

    def _names_of(self, item: Object) -> Iterator[str]:
        match item:
            case External(name=name):
                yield name
            case Result(name=name):
                yield f"{name}()"
            # class Model(flax.linen.Module)
            case Class() | Instance():
                cls = item if isinstance(item, Class) else item.cls
                ending = "" if isinstance(item, Class) else "()"
                for base in self.ancestry(cls):
                    if isinstance(base, External):
                        yield f"{base.name}{ending}"


class Places:
    """The place of each expression: that of a name is the variable that it stands for."""

    def __init__(self, engine: Inference) -> None:
        self._engine = engine
        self._scopes = engine.scopes

    def __getitem__(self, node: ast.expr) -> Place:
        scope = self._scopes[node]
        if isinstance(node, ast.Name):
            scope = self._engine.names.seen_from(node, scope)
            bound = scope.binding(node.id)
            if bound is not None:
                return ("variable", bound, node.id)
        if isinstance(node, ast.NamedExpr | ast.Await):
            return self[node.value]
        return node

    def get(self, node: ast.AST | None) -> Place | None:
        if not isinstance(node, ast.expr) or node not in self._scopes:
            return None
        return self[node]

    def read(self, node: ast.AST | None) -> Place | None:
        """The place of what an expression gives: of a variable that is begun anew, only a part."""
        if isinstance(node, ast.Name) and node in self._scopes:
            is_part = self._engine.reaching.bindings(node) is not None
            return node if is_part else self[node]
        return self.get(node)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, ast.expr) and node in self._scopes

    def __iter__(self) -> Iterator[ast.expr]:
        return (node for node in self._scopes if isinstance(node, ast.expr))


class Entered:
    """The calls that reach each function.

    Each comes with the number of parameters, such as `self`, that no argument of the call is for.
    """

    def __init__(self, view: View) -> None:
        self._engine = view.engine
        self._places = view.places

    def __getitem__(self, node: ast.AST) -> list[tuple[Arguments, int]]:
        found: list[tuple[Arguments, int]] = []
        if node in self._engine.functions:
            for call in self._engine.solver.at(("callers", node)):
                assert isinstance(call, Called)
                found.append((self._as_seen(call.arguments), call.offset))
        return found

    def _as_seen(self, given: Arguments) -> Arguments:
        words = ((word, self._place(one)) for word, one in given.keywords)
        return replace(
            given,
            positional=tuple(map(self._place, given.positional)),
            keywords=tuple(words),
            unpacked=tuple(map(self._place, given.unpacked)),
        )

    def _place(self, place: Place) -> Place:
        node = unframed(place)
        return self._places[node] if isinstance(node, ast.expr) else node
