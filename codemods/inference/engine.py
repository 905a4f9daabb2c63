"""What is this expression? Asked on demand, answered by the equations of the modules beside."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import chain

from codemods.inference.binding import arguments_in
from codemods.inference.calls import Calls
from codemods.inference.containers import CHANGING, FIXED
from codemods.inference.depth import DEEP, ITSELF, is_default_dict
from codemods.inference.elements import Elements, may_store
from codemods.inference.expressions import Expressions
from codemods.inference.heap import Answer, Heap
from codemods.inference.imports import Imports
from codemods.inference.library import Library
from codemods.inference.names import Names
from codemods.inference.objects import (
    DEEPEST,
    MOST,
    Arguments,
    Class,
    Container,
    Frame,
    Function,
    Layout,
    LegacyObject,
    Module,
    Object,
    Place,
    plain,
)
from codemods.inference.reaching import Reaching
from codemods.inference.reading import (
    AttributeStore,
    Binding,
    Contents,
    FunctionNode,
    Index,
    ItemStore,
    Reader,
    function_around,
)
from codemods.inference.scopes import Scope
from codemods.inference.solver import Equation, Solver, whole
from codemods.inference.tracing import Tracing
from codemods.sources.modules import Project, Unit


class Inference:
    """Answers what expressions of a project are.

    Args:
      project: its files.
      library: what is known of code outside of it.
    """

    def __init__(self, project: Project, library: Library) -> None:
        self.project = project
        self.library = library
        self.solver = Solver(self._equation, self._same)
        self.scopes: dict[ast.AST, Scope] = {}
        self.index = Index()
        self.imports = Imports(project, library)
        self.tracing = Tracing(self)
        self.reaching = Reaching(self)
        self.names = names = Names(self)
        self.heap = heap = Heap(self)
        self.elements = elements = Elements(self)
        self.calls = calls = Calls(self)
        self.expressions = expressions = Expressions(self)
        self._equations: dict[str, Callable[..., Equation]] = {
            "expression": self._expression,
            "variable": names.variable,
            "set from outside": self._set_from_outside,
            "bound": expressions.bound,
            "entered": expressions.entered,
            "rest of": self._rest_of,
            "attribute of": heap.attribute,
            "attribute": self._attribute,
            "declared by": heap.declared,
            "field": heap.field,
            "field of": heap.field_of,
            "any field": heap.any_field,
            "fields in order": heap.fields_in_order,  # type: ignore[dict-item]
            "ancestry": heap.ancestry,
            "bases": heap.bases,
            "heirs": heap.heirs,
            "special": self._special,
            "instances": self._instances,
            "item of": elements.item,
            "each of": elements.each,
            "turn of": elements.turn,
            "item in": elements.element,
            "entries of": elements.entries,
            "changes": self._changes,
            "change": elements.change,
            "item stored": elements.store_item,
            "invoked": calls.invoked,
            "return": calls.returned,
            "callers": self._callers,
            "site": self._site,
            "part": self._part,
            "either": self._either,
            "itself": self._itself,
            "target": self._target,
            "raised": self._raised,
        }
        self.functions = self.index.functions
        self.bound_in_classes: set[str] = set()
        self._contents: dict[Unit, Contents] = {}
        self._readers: dict[Unit, Reader] = {}
        self._of_parameter: dict[ast.arg, Function] = {}
        self._quoted: dict[ast.Constant, ast.expr | None] = {}
        self._methods: dict[AttributeStore, Function | None] = {}
        self._frames: dict[Function, set[Frame]] = defaultdict(set)
        for unit in (*project.units, *project.around):
            self._read(unit)
        self.imports.open_stars(self._contents.values())

    # Reading

    def _read(self, unit: Unit) -> None:
        reader = Reader(unit, self.scopes, self.index)
        contents = reader.contents
        self._readers[unit] = reader
        self._contents[unit] = contents
        for function in contents.functions:
            for argument in ast.walk(function.node.args):
                if isinstance(argument, ast.arg):
                    self._of_parameter[argument] = function
        for cls in contents.classes:
            self.bound_in_classes |= cls.scope.names

    # What stands where

    def contents(self, unit: Unit) -> Contents:
        return self._contents[unit]

    def module(self, unit: Unit) -> Scope:
        return self._contents[unit].scope

    def bindings_of(self, scope: Scope, name: str) -> list[Binding]:
        return self.index.bindings.get((scope, name), [])

    def function_with(self, argument: ast.arg) -> Function:
        return self._of_parameter[argument]

    def class_of(self, node: ast.ClassDef) -> Class:
        return self.index.classes[node]

    def definition(self, node: ast.AST) -> Function | Class:
        """The function or class that a statement defines."""
        if isinstance(node, ast.ClassDef):
            return self.class_of(node)
        return self.functions[node]

    def yielded(self, node: ast.AST) -> list[ast.Yield | ast.YieldFrom]:
        return self.index.yielded.get(node, [])

    def values_returned(self, node: ast.AST) -> list[ast.expr]:
        return self.index.returned.get(node, [])

    def fields_named(self, cls: Class) -> Iterable[str]:
        """The names of the fields that a class annotates or sets."""
        found: dict[str, None] = {}
        for statement in cls.node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    found[name] = None
        return found | self._fields_set.get(cls, {})

    @cached_property
    def _fields_set(self) -> dict[Class, dict[str, None]]:
        """The fields that the methods of each class set: `self.name = …`."""
        found: dict[Class, dict[str, None]] = defaultdict(dict)
        for name, stores in self.index.stores.items():
            for method in map(self.method_storing, stores):
                cls = None if method is None else self.class_of_method(method)
                if cls is not None:
                    found[cls][name] = None
        return found

    def method_storing(self, store: AttributeStore) -> Function | None:
        """The method of which the first parameter is the owner: `self.name = …`."""
        if store not in self._methods:
            self._methods[store] = self.method_of(store.owner)
        return self._methods[store]

    def method_of(self, owner: ast.expr) -> Function | None:
        """The method of which an expression is the first parameter: `self`."""
        if not isinstance(owner, ast.Name):
            return None
        scope = self.scopes[owner].binding(owner.id)
        if scope is None or not isinstance(scope.node, FunctionNode):
            return None
        function = self.functions[scope.node]
        positional = [*scope.node.args.posonlyargs, *scope.node.args.args]
        is_first = bool(positional) and positional[0].arg == owner.id
        return function if is_first and self.class_of_method(function) else None

    def class_of_method(self, function: Function) -> Class | None:
        around = function.scope.parent
        if around is None or not isinstance(around.node, ast.ClassDef):
            return None
        return self.index.classes[around.node]

    @staticmethod
    def decorators(definition: ast.AST | None) -> set[str]:
        """The last words of a function's decorators: `cached_property`, `setter`."""
        found: set[str] = set()
        for node in getattr(definition, "decorator_list", ()):
            # @functools.cached_property, @optimizer.setter
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            # @property
            elif isinstance(node, ast.Name):
                found.add(node.id)
        return found

    def quoted(self, annotation: ast.Constant) -> ast.expr | None:
        """The type that an annotation in quotes says."""
        if annotation not in self._quoted:
            try:
                parsed = ast.parse(str(annotation.value).strip(), mode="eval").body
            except SyntaxError:
                parsed = None
            scope = self.scopes[annotation]
            for inner in ast.walk(parsed) if parsed is not None else ():
                ast.copy_location(inner, annotation)
                if isinstance(inner, ast.expr):
                    self.scopes[inner] = scope
            self._quoted[annotation] = parsed
        return self._quoted[annotation]

    @cached_property
    def looked_up(self) -> dict[Unit, dict[tuple[str | None, Place], None]]:
        """The keys by which variables of each module are read, None for any, and where these go."""
        found: dict[Unit, dict[tuple[str | None, Place], None]] = defaultdict(dict)
        for lookup in self.index.lookups:
            for item in self.solver.at(("expression", lookup.owner, None)):
                if isinstance(item, Module) and item.unit is not None:
                    found[item.unit][lookup.key, lookup.node] = None
        return found

    # Calls

    def frame(
        self,
        function: Function,
        arguments: Arguments | None,
        around: Frame | None,
        owner: Object | None,
    ) -> Frame | None:
        """A call of a function; None, which stands for any, if it is within too many others.

        Of a function that is called in very many ways, calls are no longer told apart.
        """
        frame = Frame(function, arguments, around, owner)
        if frame.depth > DEEPEST:
            return None
        known = self._frames[function]
        if len(known) < MOST:
            known.add(frame)
        return frame if frame in known else None

    def frame_for(self, scope: Scope, frame: Frame | None) -> Frame | None:
        """The frame, of this one and those around it, of the function around a scope."""
        node = function_around(scope)
        while frame is not None and frame.function.node is not node:
            frame = frame.around
        return frame

    def within(self, place: Place, frame: Frame | None) -> Place:
        """A place as it is in a frame, if it is an expression of that function."""
        match place:
            case ("expression", ast.expr() as node, None):
                own = self.frame_for(self.scopes[node], frame)
                return ("expression", node, own)
            case ("each of" | "turn of" | "contents of" as word, inner):
                return (word, self.within(inner, frame))
        return place

    def variable(self, scope: Scope, name: str, frame: Frame | None) -> Place:
        own = self.frame_for(scope, frame)
        if own is None:
            return ("variable", scope, name)
        return ("variable", scope, name, own)

    @staticmethod
    def returned(node: FunctionNode, frame: Frame | None) -> Place:
        return ("return", node) if frame is None else ("return", node, frame)

    @staticmethod
    def bound(binding: Binding, frame: Frame | None) -> Place:
        return ("bound", binding, frame)

    # Equations

    def _equation(self, place: Place) -> Equation | None:
        """The equation of a place; None if there is only what is added to it."""
        assert isinstance(place, tuple)
        word, *rest = place
        equation = self._equations.get(word)
        return None if equation is None else equation(*rest)

    def _same(self, place: Place) -> Place | None:
        """The place that an expression or a binding is only a name for."""
        assert isinstance(place, tuple)
        word, *rest = place
        if word == "expression":
            return self.expressions.same(*rest)
        return self.expressions.source(*rest) if word == "bound" else None

    def _itself(self, item: Object) -> Equation:
        yield from ()
        return (item,)

    def _expression(self, node: ast.expr, frame: Frame | None) -> Equation:
        found = self.expressions.expression(node, frame)
        if isinstance(node, ast.Call | ast.Subscript):
            return self._with_seeds(node, found)
        return found

    @staticmethod
    def _with_seeds(node: ast.expr, value: Answer) -> Equation:
        found = yield from value
        found += yield ("seeded expression", node)
        return found

    def _rest_of(self, place: Place, node: ast.AST) -> Equation:
        yield from ()
        return (Layout(Container(node, "rest"), ((None, ("each of", place)),)),)

    def _either(self, places: tuple[Place, ...]) -> Equation:
        for place in places:
            yield whole(place)
        return []

    def _part(self, behaviour: object, arguments: Arguments) -> Equation:
        return behaviour(self, arguments)  # type: ignore[operator, no-any-return]

    def _special(self, item: Object, name: str) -> Equation:
        return self.heap.member_of(item.cls, name, item)  # type: ignore[union-attr, arg-type]

    def _attribute(self, node: ast.AST, name: str) -> Equation:
        """What is set as an attribute of a function."""
        found: list[Object] = []
        for store in self.index.stores.get(name, ()):
            for item in (yield ("expression", store.owner, None)):
                if getattr(plain(item), "node", None) is node:
                    found += yield self.bound(store.binding, None)
        return found

    def _raised(self) -> Equation:
        found: list[Object] = []
        for node in self.index.raised:
            found += yield ("expression", node, None)
        return found

    def _target(self, obj: LegacyObject) -> Equation:
        if isinstance(obj.node, ast.expr) and obj.node in self.scopes:
            yield ("expression", obj.node, None)
        for call in self.index.called.get("replace", ()):
            if any(word.arg == "target" for word in call.keywords):
                yield ("site", call)
        return ()

    # What is found by a look at the calls that may matter

    def _callers(self, node: FunctionNode) -> Equation:
        function = self.functions[node]
        decorated = self.tracing.of_function(function).decorated
        yield from self._look_at(self.tracing.calls_of(function), decorated)
        cls = self.class_of_method(function)
        name = getattr(node, "name", "")
        if cls is not None and name.startswith("__"):
            for one in (cls, *(yield ("heirs", cls))):
                trace = self.tracing.of_class(one)  # type: ignore[arg-type]
                yield from self._look_at(trace.calls, trace.decorated)
                # show = Printer(); show(optimizer)
                for made in trace.calls if name == "__call__" else ():
                    calls = self.tracing.of_value(made).calls
                    accepted = self.tracing.accepting.calls(function, calls)
                    yield from self._look_at(accepted, ())
        return ()

    def _instances(self, cls: Class) -> Equation:
        for one in (cls, *(yield ("heirs", cls))):
            trace = self.tracing.of_class(one)  # type: ignore[arg-type]
            yield from self._look_at(trace.calls, trace.decorated)
        fields: set[object] = {None}
        for one in (cls, *(yield ("heirs", cls))):
            fields.update((yield ("fields in order", one)))
            fields.update(self.fields_named(one))  # type: ignore[arg-type]
        for word in ("replace", "_replace"):
            for call in self.index.called.get(word, ()):
                # state.replace(step=0), state.replace(**fields)
                if call.keywords and all(one.arg in fields for one in call.keywords):
                    yield ("site", call)
        return ()

    def callees(self, node: ast.expr) -> Iterable[FunctionNode]:
        """The functions that an evaluation calls, through whatever hands them on."""
        match node:
            case ast.Call():
                self.solver.at(("site", node))
                self.solver.at(("expression", node, None))
            # table[name] = value
            case ast.Subscript():
                for store in self.index.item_stores_of.get(node, ()):
                    self.solver.at(("item stored", store))
        unit = self.scopes[node].unit
        match unit.parents.get(node):
            # @jax.jit
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) as parent:
                self.solver.at(("variable", self.stands(unit, parent), name))
        return self.calls.reached.get(node, ())

    def _look_at(
        self, calls: Iterable[ast.Call], decorated: Iterable[Function | Class]
    ) -> Equation:
        for call in calls:
            yield ("site", call)
        for definition in decorated:
            around = definition.scope.parent
            assert around is not None
            own = definition.node.name  # type: ignore[union-attr]
            yield ("variable", around.binding(own) or around, own)
        return ()

    def _site(self, call: ast.Call) -> Equation:
        """Let whatever a call reaches know of it."""
        unit = self.scopes[call].unit
        arguments = arguments_in(unit, call, None)
        for callee in (yield ("expression", call.func, None)):
            yield from self.calls.reach(callee, arguments)
            if self.calls.has_effect(callee, call):
                yield ("expression", call, None)
        return ()

    def _set_from_outside(self, scope: Scope, name: str) -> Equation:
        """What code that reaches a module by its name sets there."""
        found: list[Object] = []
        for store in (*self.index.stores.get(name, ()), *self.index.stores_by_key):
            if self.tracing.may_be_module(store.owner):
                for item in (yield ("expression", store.owner, None)):
                    if isinstance(item, Module) and item.unit is scope.unit:
                        found += yield self.bound(store.binding, None)
        return found

    def _changes(self, container: Container, word: str | None) -> Equation:
        """Look at what may change a container; with a word, what it has under this key."""
        for change in self._changes_of(container):
            if word is None or may_store(change, word):
                kind = "change" if isinstance(change, ast.Call) else "item stored"
                yield (kind, change)
        return ()

    def _changes_of(self, container: Container) -> Iterable[ast.Call | ItemStore]:
        node = container.node
        if isinstance(node, ast.Tuple) or container.role in FIXED:
            return ()
        # class Cache(dict): whatever may change an instance
        if isinstance(node, ast.ClassDef):
            calls = (self.index.called.get(word, ()) for word in CHANGING)
            return (*chain.from_iterable(calls), *self.index.item_stores)
        if isinstance(node, ast.arg):
            scope = self._of_parameter[node].scope
            return self.tracing.of(("variable", scope, node.arg)).changes
        if isinstance(node, FunctionNode):
            return self.tracing.of(("given by", self.functions[node])).changes
        unit = self.unit_of(node)
        if unit is None:
            return ()
        # defaultdict(list): each element is one
        is_nested = isinstance(node, ast.Call) and is_default_dict(node)
        depth = DEEP if is_nested else ITSELF
        return self.tracing.of(("value", unit, node), depth=depth).changes

    def stands(self, unit: Unit, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        return self._readers[unit].stands[node]

    def unit_of(self, node: ast.AST) -> Unit | None:
        if isinstance(node, ast.expr) and node in self.scopes:
            return self.scopes[node].unit
        return next((unit for unit in self._contents if node in unit.parents), None)
