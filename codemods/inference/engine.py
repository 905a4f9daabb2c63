"""What is this expression? Asked on demand, answered by the equations of the modules beside."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cached_property

from codemods.inference.calls import Calls
from codemods.inference.containers import FIXED
from codemods.inference.exports import open_stars
from codemods.inference.expressions import Expressions
from codemods.inference.heap import Answer, Heap, may_store
from codemods.inference.library import Library
from codemods.inference.names import Names
from codemods.inference.objects import (
    DEEPEST,
    MANY,
    MOST,
    Arguments,
    Class,
    Container,
    External,
    Frame,
    Function,
    Key,
    Layout,
    LegacyObject,
    Module,
    Object,
    Place,
    Stored,
    plain,
    without_frames,
)
from codemods.inference.reading import (
    MODULES,
    AttributeStore,
    Binding,
    Contents,
    FunctionNode,
    Index,
    ItemStore,
    Reader,
    function_around,
    last_name,
)
from codemods.inference.recorded import Reading
from codemods.inference.scopes import Scope
from codemods.inference.solver import Equation, Solver
from codemods.inference.tracing import Trace, Tracing
from codemods.sources.modules import Project, Unit, name_of

NAMESPACES = frozenset(("globals", "vars", "locals", "__dict__"))
SETTING = ("update", "setdefault", "__setitem__")
CONTAINERS = frozenset(
    [
        "dict",
        "list",
        "tuple",
        "set",
        "frozenset",
        "deque",
        "OrderedDict",
        "defaultdict",
        "UserDict",
        "Dict",
        "List",
        "NamedTuple",
    ]
)


class Inference:
    """Answers what expressions of a project are.

    Args:
      project: its files.
      library: what is known of code outside of it.
    """

    def __init__(self, project: Project, library: Library) -> None:
        self.project = project
        self.library = library
        self.solver = Solver(self._equation)
        self.reading = Reading()
        self.index = Index()
        self.tracing = Tracing(self)
        self.names = Names(self)
        self.heap = Heap(self)
        self.calls = Calls(self)
        self.expressions = Expressions(self)
        self.functions: dict[ast.AST, Function] = {}
        self.bound_in_classes: set[str] = set()
        self.looked_up: dict[Unit, dict[tuple[str | None, Place], None]] = defaultdict(
            dict
        )
        """The keys by which variables of each module are read, None for any, and where these go."""
        self._equations: dict[str, Callable[..., Equation] | None] = {}
        self._contents: dict[Unit, Contents] = {}
        self._readers: dict[Unit, Reader] = {}
        self._classes: dict[ast.AST, Class] = {}
        self._of_parameter: dict[ast.arg, Function] = {}
        self._quoted: dict[ast.Constant, ast.expr | None] = {}
        self._methods: dict[AttributeStore, Function | None] = {}
        self._frames: dict[Function, set[Frame]] = defaultdict(set)
        self._runs: dict[ast.ImportFrom, Unit] = {}
        for unit in (*project.units, *project.around):
            self._read(unit)
        self._open_stars()

    # Reading

    def _read(self, unit: Unit) -> None:
        reader = Reader(unit, self.reading.scopes)
        contents = reader.contents
        self._readers[unit] = reader
        self._contents[unit] = contents
        self.index.add(contents)
        for function in contents.functions:
            self.functions[function.node] = function
            for argument in ast.walk(function.node.args):
                if isinstance(argument, ast.arg):
                    self._of_parameter[argument] = function
        for cls in contents.classes:
            self._classes[cls.node] = cls
            self.bound_in_classes |= cls.scope.names

    def _open_stars(self) -> None:
        for unit, contents in self._contents.items():
            # what runs another file in its place has that file's names, as by a star import
            if self.project.run_by(unit):
                node = ast.ImportFrom(names=[ast.alias("*")], level=0)
                self._runs[node] = unit
                contents.stars.append(node)
        stars: list[tuple[Unit, ast.ImportFrom]] = []
        for unit, contents in self._contents.items():
            stars += ((unit, node) for node in contents.stars)
        modules = {unit: contents.scope for unit, contents in self._contents.items()}
        open_stars(modules, stars, self._star_units, self.library.members)

    def _star_units(self, unit: Unit, node: ast.ImportFrom) -> list[Unit]:
        found = self.sources(unit, node)
        return [module.unit for module in found if module.unit is not None]

    # What stands where

    def contents(self, unit: Unit) -> Contents:
        return self._contents[unit]

    def module(self, unit: Unit) -> Scope:
        return self._contents[unit].scope

    def bindings_of(self, scope: Scope, name: str) -> list[Binding]:
        return self._contents[scope.unit].bindings.get((scope, name), [])

    def stars_of(self, scope: Scope) -> list[ast.ImportFrom]:
        return self._contents[scope.unit].stars

    def function_of(self, scope: Scope) -> Function:
        return self.functions[scope.node]

    def function_with(self, argument: ast.arg) -> Function:
        return self._of_parameter[argument]

    def class_of(self, node: ast.ClassDef) -> Class:
        return self._classes[node]

    def yielded(self, node: ast.AST) -> list[ast.Yield | ast.YieldFrom]:
        unit = self.functions[node].unit
        return self._contents[unit].yielded.get(node, [])

    def values_returned(self, node: ast.AST) -> list[ast.expr]:
        unit = self.functions[node].unit
        return self._contents[unit].returned.get(node, [])

    def fields_named(self, cls: Class) -> Iterable[str]:
        """The names of the fields that a class annotates or sets."""
        found: dict[str, None] = {}
        for statement in cls.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(
                statement.target, ast.Name
            ):
                found[statement.target.id] = None
        for name, stores in self._contents[cls.unit].stores.items():
            methods = (self.method_storing(store) for store in stores)
            if any(
                one is not None and self.class_of_method(one) is cls for one in methods
            ):
                found[name] = None
        return found

    def method_storing(self, store: AttributeStore) -> Function | None:
        """The method of which the first parameter is the owner: `self.name = …`."""
        if store not in self._methods:
            self._methods[store] = self.method_of(store.target)
        return self._methods[store]

    def method_of(self, target: ast.Attribute) -> Function | None:
        owner = target.value
        if not isinstance(owner, ast.Name):
            return None
        scope = self.reading.scopes[owner].binding(owner.id)
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
        return self._classes[around.node]

    @staticmethod
    def decorators(function: Function) -> set[str]:
        """The last words of a function's decorators: `cached_property`, `setter`."""
        if isinstance(function.node, ast.Lambda):
            return set()
        found: set[str] = set()
        for node in function.node.decorator_list:
            # @functools.cached_property, @optimizer.setter
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            # @property
            elif isinstance(node, ast.Name):
                found.add(node.id)
        return found

    # Imports

    def absolute(self, unit: Unit, name: str) -> tuple[str, ...]:
        return () if self.library.owns(name) else self.project.absolute(unit, name)

    def _paths(self, unit: Unit, node: ast.ImportFrom) -> tuple[str, ...]:
        """The paths, without ending, of the modules of the project that a statement may mean."""
        name = node.module or ""
        if node.level:
            return (self.project.relative(unit, node.level, name),)
        return self.absolute(unit, name)

    def sources(self, unit: Unit, node: ast.ImportFrom) -> list[Module]:
        """The modules of the project from which a statement may import."""
        if node in self._runs:
            return [Module(ran) for ran in self.project.run_by(unit)]
        found = map(self.project.at, self._paths(unit, node))
        return [Module(*one) for one in found if one is not None]

    def modules_imported(self) -> Iterator[tuple[Scope, str]]:
        """The variables that imports bind to modules of the project."""
        for unit, contents in self._contents.items():
            for (scope, name), bindings in contents.bindings.items():
                if any(self._is_module(unit, one) for one in bindings):
                    yield scope, name

    def _is_module(self, unit: Unit, binding: Binding) -> bool:
        if binding.alias is None:
            return False
        name = binding.alias.name
        paths: Iterable[str] = ()
        if isinstance(binding.node, ast.Import):
            paths = self.absolute(unit, name)
        elif isinstance(binding.node, ast.ImportFrom):
            paths = (f"{one}/{name}" for one in self._paths(unit, binding.node))
        return any(self.project.at(path) is not None for path in paths)

    def others(self, unit: Unit, node: ast.ImportFrom) -> list[str]:
        """The files that are not analysed from which a statement may import."""
        if node in self._runs:
            return []
        found = map(self.project.left_out, self._paths(unit, node))
        return [file for file in found if file is not None]

    def by_star(self, scope: Scope, name: str) -> list[Object]:
        """What an unbound name may be, if star imports take names from files not analysed."""
        module = scope.module
        if module.binding(name) is not None:
            return []
        found: list[Object] = []
        for node in self.stars_of(module):
            files = self.others(module.unit, node)
            named = (file for file in files if self.project.may_have(file, name))
            found += (External(f"{name_of(file)}.{name}") for file in named)
        return found

    def quoted(self, annotation: ast.Constant) -> ast.expr | None:
        """The type that an annotation in quotes says."""
        if annotation not in self._quoted:
            try:
                parsed = ast.parse(str(annotation.value).strip(), mode="eval").body
            except SyntaxError:
                parsed = None
            scope = self.reading.scopes[annotation]
            for inner in ast.walk(parsed) if parsed is not None else ():
                if isinstance(inner, ast.expr):
                    self.reading.scopes[inner] = scope
            self._quoted[annotation] = parsed
        return self._quoted[annotation]

    def look_up(self, module: Module, key: Key, node: ast.AST) -> None:
        """Note that a variable of a module is read by a key."""
        if module.unit is not None:
            word = key if isinstance(key, str) else None
            self.looked_up[module.unit][word, node] = None

    def look_at_lookups(self) -> None:
        """Find the reads of variables by keys."""
        for call in self.index.called.get("getattr", ()):
            self.solver.at(("expression", call, None))
        for trace in self._traces_of_namespaces():
            for node in trace.attributes:
                parent = self.reading.scopes[node].unit.parents[node]
                if isinstance(parent, ast.Call):
                    self.solver.at(("expression", parent, None))
        for item in self.index.subscripts:
            if last_name(item.value) in NAMESPACES:
                self.solver.at(("expression", item, None))

    def set_from_outside(
        self, scope: Scope, name: str | None, items: Iterable[Object]
    ) -> None:
        """Let a variable of a module be something that code elsewhere sets it to."""
        if name is not None:
            scope.names.add(name)
        self.solver.add(("set from outside", scope, name), *items)

    # Calls

    def arguments(self, unit: Unit, call: ast.Call, frame: Frame | None) -> Arguments:
        """What a call gives, in one frame."""
        positional: list[Place] = []
        starred: int | None = None
        for index, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                starred = index if starred is None else starred
                positional.append(("expression", argument.value, frame))
            else:
                positional.append(("expression", argument, frame))
        keywords = tuple(
            (one.arg, ("expression", one.value, frame))
            for one in call.keywords
            if one.arg is not None
        )
        unpacked = tuple(
            ("expression", one.value, frame) for one in call.keywords if one.arg is None
        )
        return Arguments(
            unit, call, tuple(positional), keywords, starred, unpacked, (), frame
        )

    def frame(
        self,
        function: Function,
        arguments: Arguments | None,
        around: Frame | None,
        owner: Object | None,
    ) -> Frame | None:
        """A call of a function; None, which stands for any, if it is within too many others.

        Of a function that is called in very many ways, calls are told apart by where they stand,
        and no longer by the calls around them; and at last not at all.
        """
        frame = Frame(function, arguments, around, owner)
        if frame.depth > DEEPEST:
            return None
        known = self._frames[function]
        if frame in known or len(known) < MANY:
            known.add(frame)
            return frame
        frame = Frame(function, without_frames(arguments), around, plain(owner))  # type: ignore[arg-type]
        if frame in known or len(known) < MOST:
            known.add(frame)
            return frame
        return None

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
                own = self.frame_for(self.reading.scopes[node], frame)
                return ("expression", node, own)
            case ("each of", inner):
                return ("each of", self.within(inner, frame))
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

    def store(self, box: Object, places: Iterable[Place]) -> None:
        for place in places:
            self.solver.add(("stored", box), Stored(None, place))

    # Equations

    def _equation(self, place: Place) -> Equation | None:
        """The equation of a place; None if there is only what is added to it."""
        assert isinstance(place, tuple)
        word, *rest = place
        if word not in self._equations:
            found = getattr(self, f"_{word.replace(' ', '_')}", None)
            self._equations[word] = found
        equation = self._equations[word]
        return None if equation is None else equation(*rest)

    def _declared_by(self, annotation: ast.expr) -> Equation:
        return self.heap.declared(annotation)

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

    def _variable(
        self, scope: Scope, name: str, frame: Frame | None = None
    ) -> Equation:
        return self.names.variable(scope, name, frame)

    def _bound(self, binding: Binding, frame: Frame | None) -> Equation:
        return self.expressions.bound(binding, frame)

    def _attribute_of(self, place: Place, name: str) -> Equation:
        return self.heap.attribute(place, name)

    def _item_of(self, place: Place, key: Key) -> Equation:
        return self.heap.item(place, key)

    def _each_of(self, place: Place) -> Equation:
        return self.heap.each(place)

    def _entries_of(self, box: Object, word: str | None) -> Equation:
        return self.heap.entries(box, word)

    def _elements_at(self, place: Place) -> Equation:
        return self.heap.elements_at(place)

    def _keys_at(self, place: Place) -> Equation:
        return self.heap.keys_at(place)

    def _element_in(self, box: Object, key: Key) -> Equation:
        return self.heap.element(box, key, is_exact=True)

    def _item_in(self, box: Object, key: Key) -> Equation:
        return self.heap.element(box, key)

    def _sent_to(self, box: Object) -> Equation:
        return (yield from self.heap.element(box, "sent", is_exact=True))

    def _keys_of(self, box: Object) -> Equation:
        return self.heap.keys(box)

    def _rest_of(self, place: Place, node: ast.AST) -> Equation:
        yield from ()
        return (Layout(Container(node, "rest"), ((None, ("each of", place)),)),)

    def _entered(self, place: Place, method: str) -> Equation:
        return self.expressions.entered(place, method)

    def _either(self, places: tuple[Place, ...]) -> Equation:
        found: list[Object] = []
        for place in places:
            found += yield place
        return found

    def _part(self, behaviour: object, arguments: Arguments) -> Equation:
        return behaviour(self, arguments)  # type: ignore[operator, no-any-return]

    def _invoked(self, callee: Place, arguments: Arguments) -> Equation:
        return self.calls.invoked(callee, arguments)

    def _return(self, node: FunctionNode, frame: Frame | None = None) -> Equation:
        return self.calls.returned(node, frame)

    def _special(self, item: Object, name: str) -> Equation:
        return self.heap.member_of(item.cls, name, item)  # type: ignore[union-attr, arg-type]

    def _ancestry(self, cls: Class) -> Equation:
        return self.heap.ancestry(cls)

    def _bases(self, cls: Class) -> Equation:
        return self.heap.bases(cls)

    def _heirs(self, cls: Class) -> Equation:
        return self.heap.heirs(cls)

    def _field(self, owner: object, name: str) -> Equation:
        return self.heap.field(owner, name)  # type: ignore[arg-type]

    def _field_of(self, place: Place, cls: Class, name: str) -> Equation:
        return self.heap.field_of(place, cls, name)

    def _any_field(self, cls: Class) -> Equation:
        return self.heap.any_field(cls)

    def _some_field(self, cls: Class) -> Equation:
        """What fields of computed names, and elements, are set to."""
        yield ("set by computed names",)
        related = {cls, *(yield ("ancestry", cls)), *(yield ("heirs", cls))}
        for call in self.index.called.get("setattr", ()):
            if call.args and (yield from self._may_be_one(call.args[0], related)):
                yield ("site", call)
        if any(map(self._may_be_container, cls.node.bases)):
            changes: list[ast.Call | ItemStore] = [*self.index.changing]
            for change in (*changes, *self.index.item_stores):
                yield from self._changed_by(change)
        return ()

    def _may_be_one(
        self, node: ast.expr, classes: set[Object]
    ) -> Generator[Place, tuple[Object, ...], bool]:
        """Whether an expression may be an instance of some classes."""
        scope = (
            self.reading.scopes[node].binding(node.id)
            if isinstance(node, ast.Name)
            else None
        )
        function = self.functions.get(scope.node) if scope is not None else None
        cls = None if function is None else self.class_of_method(function)
        declared = [] if function is None else function.node.args.args
        # setattr(self, name, value)
        if cls is not None and declared and declared[0].arg == node.id:  # type: ignore[attr-defined]
            return cls in classes
        items = yield ("expression", node, None)
        return any(getattr(item, "cls", item) in classes for item in items)

    @staticmethod
    def _may_be_container(base: ast.expr) -> bool:
        return last_name(base) in CONTAINERS

    def _attribute(self, node: ast.AST, name: str) -> Equation:
        """What is set as an attribute of a function."""
        found: list[Object] = []
        for store in self.index.stores.get(name, ()):
            for item in (yield ("expression", store.target.value, None)):
                if getattr(plain(item), "node", None) is node:
                    found += yield self.bound(store.binding, None)
        return found

    def _variables_of(self, module: Module) -> Equation:
        return self.names.any_member(module)

    def _raised(self) -> Equation:
        found: list[Object] = []
        for node in self.index.raised:
            found += yield ("expression", node, None)
        return found

    def _target(self, obj: LegacyObject) -> Equation:
        if isinstance(obj.node, ast.expr) and obj.node in self.reading.scopes:
            yield ("expression", obj.node, None)
        for call in self.index.called.get("replace", ()):
            if any(word.arg == "target" for word in call.keywords):
                yield ("site", call)
        return ()

    # What is found by a look at the calls that may matter

    def _callers(self, node: FunctionNode) -> Equation:
        function = self.functions[node]
        yield from self._look_at(self.tracing.of_function(function))
        cls = self.class_of_method(function)
        is_special = getattr(node, "name", "").startswith("__")
        if cls is not None and is_special:
            for one in (cls, *(yield ("heirs", cls))):
                yield from self._look_at(self.tracing.of_class(one))  # type: ignore[arg-type]
        return ()

    def _instances(self, cls: Class) -> Equation:
        for one in (cls, *(yield ("heirs", cls))):
            yield from self._look_at(self.tracing.of_class(one))  # type: ignore[arg-type]
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

    def _look_at(self, trace: Trace) -> Equation:
        for call in trace.calls:
            yield ("site", call)
        for function in trace.decorated:
            around = function.scope.parent
            assert around is not None
            own = function.node.name  # type: ignore[union-attr]
            yield ("variable", around.binding(own) or around, own)
        return ()

    def _site(self, call: ast.Call) -> Equation:
        """Let whatever a call reaches know of it."""
        unit = self.reading.scopes[call].unit
        arguments = self.arguments(unit, call, None)
        for callee in (yield ("expression", call.func, None)):
            yield from self.calls.reach(callee, arguments)
            if self.calls.has_effect(callee, call):
                yield ("expression", call, None)
        return ()

    def _set_from_outside(self, scope: Scope, name: str | None) -> Equation:
        """What code that reaches a module by its name, or as a dict, sets there."""
        for store in self.index.stores.get(name or "", ()):
            if not self._may_be_module(store.target.value):
                continue
            for item in (yield ("expression", store.target.value, None)):
                if isinstance(item, Module) and item.unit is scope.unit:
                    items = yield self.bound(store.binding, None)
                    self.solver.add(("set from outside", scope, name), *items)
        yield ("set by computed names",)
        return ()

    def _may_be_module(self, node: ast.expr) -> bool:
        """Whether an expression is bound as modules are, as far as the text shows."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return True
        scope = self.reading.scopes[node].binding(node.id)
        if scope is None:
            return False
        return any(
            # import train; module = importlib.import_module(name); sys.modules[name]
            one.alias is not None
            or (one.source is not None and last_name(one.source) in MODULES)
            for one in self.bindings_of(scope, node.id)
        )

    def _set_by_computed_names(self) -> Equation:
        """Look at whatever may set variables of computed names."""
        if self.index.reflects:
            for change in self._changes_of_namespaces():
                yield from self._changed_by(change)
            for call in self.index.called.get("setattr", ()):
                if call.args and self._may_be_module(call.args[0]):
                    yield ("site", call)
        return ()

    def _changes_of_namespaces(self) -> dict[ast.Call | ItemStore, None]:
        """The changes of `globals()`, `vars(config)` and `config.__dict__`."""
        found: dict[ast.Call | ItemStore, None] = {}
        for trace in self._traces_of_namespaces():
            for change in trace.changes:
                if isinstance(change, ItemStore) or last_name(change.func) in SETTING:
                    found[change] = None
        return found

    def _traces_of_namespaces(self) -> Iterator[Trace]:
        nodes: list[ast.expr] = []
        for word in ("globals", "vars", "locals"):
            nodes += self.index.called.get(word, ())
        nodes += (node for _, node in self.index.attributes_read.get("__dict__", ()))
        for node in nodes:
            unit = self.reading.scopes[node].unit
            yield self.tracing.of(("value", unit, node), 2)

    def _changes(self, container: Container, word: str | None) -> Equation:
        """Look at what may change a container; with a word, what it has under this key."""
        for change in self._changes_of(container):
            if word is None or may_store(change, word):
                yield from self._changed_by(change)
        return ()

    @staticmethod
    def _changed_by(change: ast.Call | ItemStore) -> Equation:
        word = "change" if isinstance(change, ast.Call) else "item stored"
        yield (word, change)
        return ()

    def _changes_of(self, container: Container) -> Iterable[ast.Call | ItemStore]:
        node = container.node
        if isinstance(node, ast.arg):
            scope = self._of_parameter[node].scope
            return self.tracing.of(("variable", scope, node.arg)).changes
        if isinstance(node, FunctionNode):
            return self.tracing.of(("given by", self.functions[node])).changes
        is_fixed = isinstance(node, ast.Tuple) or container.role in FIXED
        unit = None if is_fixed else self.unit_of(node)
        return () if unit is None else self.tracing.of(("value", unit, node)).changes

    def fields_in_order(self, cls: Class) -> Iterable[object]:
        return self.solver.at(("fields in order", cls))

    def _fields_in_order(self, cls: Class) -> Equation:
        return (yield from self.heap.fields_in_order(cls))  # type: ignore[return-value]

    def stands(self, unit: Unit, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        return self._readers[unit].stands[node]

    def scope_of(self, unit: Unit, node: ast.AST) -> Scope | None:
        """The scope in which a statement stands."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.expr) and inner in self.reading.scopes:
                return self.reading.scopes[inner]
        return None

    def star_importers(self, scope: Scope) -> Iterable[Scope]:
        """The modules that take all names of a module."""
        return self._star_importers.get(scope.unit, ())

    @cached_property
    def _star_importers(self) -> dict[Unit, dict[Scope, None]]:
        found: dict[Unit, dict[Scope, None]] = defaultdict(dict)
        for contents in self._contents.values():
            for node in contents.stars:
                for unit in self._star_units(contents.unit, node):
                    found[unit][contents.scope] = None
        return found

    def unit_of(self, node: ast.AST) -> Unit | None:
        if isinstance(node, ast.expr) and node in self.reading.scopes:
            return self.reading.scopes[node].unit
        return next((unit for unit in self._contents if node in unit.parents), None)

    def _change(self, call: ast.Call) -> Equation:
        return self.heap.change(call)

    def _item_stored(self, store: object) -> Equation:
        return self.heap.store_item(store)  # type: ignore[arg-type]
