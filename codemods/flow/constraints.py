"""From syntax to constraints: what every statement and expression lets flow where."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from pathlib import PurePosixPath

from codemods.flow.annotations import TypeWithin, quoted_types, types_within
from codemods.flow.calls import Calls
from codemods.flow.containers import GENERATOR
from codemods.flow.containers import METHODS as CONTAINER_METHODS
from codemods.flow.derived import Derivation
from codemods.flow.dynamic import ANY as ANY_NAME
from codemods.flow.dynamic import named_module
from codemods.flow.exports import exported, open_stars, stars_of
from codemods.flow.objects import (
    Class,
    Container,
    Declared,
    External,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Place,
    Result,
)
from codemods.flow.reading import Annotation, Import, PassedOn, Reading, Store
from codemods.flow.scopes import Scope, first_bound, open_scope
from codemods.flow.sites import CallSite, Key
from codemods.sources.bindings import Comprehension
from codemods.sources.modules import Project, Unit, file_of, name_of

BUILTINS = frozenset(vars(builtins))

LAZY = "__getattr__"
RAISED = ("raised",)
"""The place of all exceptions: which `except` clause catches which of them is not analysed."""

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or",
    ast.BitAnd: "and",
    ast.BitXor: "xor",
}
"""The special method of each operator, without its underscores: `__add__` and `__radd__`."""

MANY = 50
"""If a computed name may be that of more modules, none of them is followed.

What they are given is lost, and comes back wherever such an object is read.
"""

UNARY: dict[type[ast.unaryop], str] = {
    ast.Invert: "__invert__",
    ast.UAdd: "__pos__",
    ast.USub: "__neg__",
}

JOINING = ("add", "mul", "or", "and", "sub", "xor")
"""The operators that make a container of two."""


class FromOutside(Enum):
    """What stands for the variables of a module that are set from outside, as if it were one."""

    ANY = auto()
    """Each that is set there."""

    UNNAMED = auto()
    """One whose name is not known."""


class TooDeepError(Exception):
    """Files have expressions that nest too deeply to be read."""

    def __init__(self, units: Sequence[Unit]) -> None:
        super().__init__(", ".join(unit.path for unit in units))
        self.units = units


class Constraints(Calls):
    """Reads all units of a project into one solver.

    A statement or expression within another is read by few calls in between, so that code which
    nests deeply can be read without a RecursionError.
    """

    def read(self, project: Project) -> None:
        """Read every unit; `solve` may follow.

        Raises:
          TooDeepError: if expressions nest too deeply.
        """
        self.project = project
        self.reading = Reading()
        self.derivation = Derivation(self)
        self._bound_in_class: dict[ast.ClassDef, dict[str, tuple[int, int]]] = {}
        self.modules: dict[Unit, Scope] = {
            unit: open_scope(unit, unit.tree, None) for unit in project.units
        }
        # To run a file in the place of a statement gives its names, as a star import would.
        self.runs = {
            ast.ImportFrom(names=[ast.alias("*")], level=0): unit
            for unit in project.units
            if project.run_by(unit)
        }
        stars: list[tuple[Unit, ast.ImportFrom]] = []
        for unit in project.units:
            stars += ((unit, node) for node in stars_of(unit))
        stars += ((unit, node) for node, unit in self.runs.items())
        open_stars(self.modules, stars, self._star_units, self.library.members)
        self._starred = self._unanalysed_stars(stars)
        self._read_bodies()
        for node, unit in self.runs.items():
            self._import_from(node, self.modules[unit])

    def _read_bodies(self) -> None:
        unread: list[Unit] = []
        for unit, scope in self.modules.items():
            try:
                self._body(unit.tree.body, scope)
            except RecursionError:
                unread.append(unit)
        if unread:
            raise TooDeepError(unread)

    def solve(self) -> None:
        """Run to the fixed point.

        A decorator of which nothing is known is taken to hand its function through.
        """
        self.solver.solve()
        for function, result in self.reading.decorated:
            is_unknown = all(
                isinstance(item, Result) for item in self.solver.at(result)
            )
            if is_unknown:
                self.solver.connect(function, result)
                self.solver.solve()
        while self.derivation.round():
            self.solver.solve()

    def _star_units(self, unit: Unit, node: ast.ImportFrom) -> list[Unit]:
        return [
            module.unit
            for module in self._sources(unit, node)
            if module.unit is not None
        ]

    def _unanalysed_stars(
        self, stars: Iterable[tuple[Unit, ast.ImportFrom]]
    ) -> dict[Scope, set[str]]:
        """The files that are not analysed and of which each module has all names.

        A module takes the names itself by a star import, or from another module that does.
        """
        found: dict[Scope, set[str]] = defaultdict(set)
        sources: dict[Scope, list[Scope]] = defaultdict(list)
        for unit, node in stars:
            scope = self.modules[unit]
            found[scope].update(self._others(unit, node))
            for source in self._star_units(unit, node):
                sources[scope].append(self.modules[source])
        changed = True
        while changed:
            before = sum(map(len, found.values()))
            for scope, taken in sources.items():
                found[scope].update(*(found[source] for source in taken))
            changed = sum(map(len, found.values())) > before
        return found

    def _by_star(self, scope: Scope, name: str) -> Iterator[External]:
        """What an unbound name may be, if star imports take names from files not analysed."""
        if scope.module.binding(name) is not None:
            return
        for file in sorted(self._starred.get(scope.module, ())):
            if self.project.may_have(file, name):
                yield External(f"{name_of(file)}.{name}")

    # Names

    def variable(self, name: str, scope: Scope) -> Place | None:
        """The place of a variable as seen from a scope; None for a builtin."""
        binding = scope.binding(name)
        return None if binding is None else ("variable", binding, name)

    def _bind(self, name: str, scope: Scope) -> Place:
        binding = scope.binding(name) or scope
        return ("variable", binding, name)

    # Statements

    def _body(self, statements: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in statements:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, scope)
            case ast.ClassDef():
                self._class(node, scope)
            case ast.Return(value=ast.expr() as value):
                self.solver.connect(
                    self.expression(value, scope), ("return", scope.node)
                )
            case ast.Assign(targets=targets, value=value):
                source = self.expression(value, scope)
                for target in targets:
                    self._assign(target, source, scope)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                self.annotate(annotation, scope, self._annotated_place(target, scope))
                if value is not None:
                    self._assign(target, self.expression(value, scope), scope)
            case ast.AugAssign():
                self._augment(node, scope)
            case ast.For() | ast.AsyncFor():
                self.iterate(self.expression(node.iter, scope), node)
                self._assign(node.target, node, scope)
                self._body([*node.body, *node.orelse], scope)
            case ast.With() | ast.AsyncWith():
                self._with_items(node, scope)
                self._body(node.body, scope)
            case ast.Import():
                self._import(node, scope)
            case ast.ImportFrom():
                self._import_from(node, scope)
            # raise Stop(optimizer)
            case ast.Raise(exc=ast.Call() as raised):
                self.solver.connect(self.expression(raised, scope), RAISED)
                if node.cause is not None:
                    self.expression(node.cause, scope)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target, scope)
            case ast.Match():
                self._match(node, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.stmt):
                        self._statement(child, scope)
                    elif isinstance(child, ast.expr):
                        self.expression(child, scope)
                    elif isinstance(child, ast.ExceptHandler):
                        self._handler(child, scope)

    def _with_items(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        method = "__aenter__" if isinstance(node, ast.AsyncWith) else "__enter__"
        for item in node.items:
            source = self.expression(item.context_expr, scope)
            if item.optional_vars is not None:
                # A function under `contextlib.contextmanager` yields what the name gets.
                self.iterate(source, item)
                self.solver.connect(source, item)
                self._enter_context(source, item, method)
                self._assign(item.optional_vars, item, scope)

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        place = self.expression(target, scope)
        if isinstance(target, ast.Subscript) and not isinstance(
            self.key(target.slice), str
        ):
            # `del states[0]`: the elements behind it move up.
            self.load(self.places[target.value], None, place, whole=True)

    def _match(self, node: ast.Match, scope: Scope) -> None:
        subject = self.expression(node.subject, scope)
        for case in node.cases:
            self._pattern(case.pattern, subject, scope)
            if case.guard is not None:
                self.expression(case.guard, scope)
            self._body(case.body, scope)

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.type is not None:
            self.expression(node.type, scope)
        if node.name is not None:
            self.solver.connect(RAISED, self._bind(node.name, scope))
        self._body(node.body, scope)

    def _enter_context(self, source: Place, target: Place, method: str) -> None:
        def arrive(item: Object) -> None:
            if isinstance(item, Instance):
                self.call_special(item, method, target)

        self.solver.watch(source, arrive)

    def _pattern(self, pattern: ast.pattern, source: Place, scope: Scope) -> None:
        """Let the parts of `source` reach the names that a pattern gives them."""
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                if name is not None:
                    self.solver.connect(source, self._bind(name, scope))
                if inner is not None:
                    self._pattern(inner, source, scope)
            case ast.MatchOr(patterns=patterns):
                for choice in patterns:
                    self._pattern(choice, source, scope)
            # case [first, *rest]:
            case ast.MatchSequence(patterns=patterns):
                for part in patterns:
                    self._part(part, source, None, scope)
            case ast.MatchStar(name=str(name)):
                self.store_element(Container(pattern), None, source)
                self.solver.add(self._bind(name, scope), Container(pattern))
            # case {"optimizer": optimizer, **rest}:
            case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
                for key, part in zip(keys, patterns, strict=True):
                    self._part(part, source, self.key(key), scope)
                if rest is not None:
                    self.solver.connect(source, self._bind(rest, scope))
            # case TrainState(step, optimizer=optimizer):
            case ast.MatchClass(
                cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=named
            ):
                self.expression(cls, scope)
                for index, part in enumerate(patterns):
                    self._part(part, source, index, scope)
                for name, part in zip(names, named, strict=True):
                    self.load_attribute(source, name, ("matched", part))
                    self._pattern(part, ("matched", part), scope)
            case _:
                pass

    def _part(
        self, pattern: ast.pattern, source: Place, key: Key, scope: Scope
    ) -> None:
        self.load(source, key, ("matched", pattern))
        self._pattern(pattern, ("matched", pattern), scope)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope
    ) -> None:
        inner = open_scope(scope.unit, node, scope)
        function = Function(scope.unit, node, inner)
        self.reading.functions.append(function)
        self._parameters(node.args, inner, scope)
        if node.returns is not None:
            self.annotate(node.returns, scope, ("return", node))
        if isinstance(scope.node, ast.ClassDef):
            self._bind_self(function, scope.node)
        place: Place = node
        self.solver.add(place, function)
        # Each decorator is called with what the one below it gave.
        for decorator in reversed(node.decorator_list):
            call = CallSite(
                scope.unit, decorator, (place,), {}, ("decorated", decorator)
            )
            self.call(self.expression(decorator, scope), call)
            self.reading.decorated.append((place, call.result))
            place = call.result
        self.solver.connect(place, self._bind(node.name, scope))
        self._body(node.body, inner)

    def _bind_self(self, function: Function, node: ast.ClassDef) -> None:
        """Let the first parameter of a method be an instance, or the class itself."""
        decorators = self.decorators(function)
        if "staticmethod" in decorators:
            return
        arguments = function.node.args
        first = next(iter((*arguments.posonlyargs, *arguments.args)), None)
        if first is None:
            return
        place = ("variable", function.scope, first.arg)
        if "classmethod" in decorators:
            self.solver.add(place, self.class_of(node))
        else:
            self.solver.connect(("self", self.class_of(node)), place)

    def _parameters(self, arguments: ast.arguments, inner: Scope, outer: Scope) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        without_default = len(positional) - len(arguments.defaults)
        defaults = [*([None] * without_default), *arguments.defaults]
        pairs = [
            *zip(positional, defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if default is not None:
                source = self.expression(default, outer)
                self.solver.connect(source, ("variable", inner, argument.arg))
        for argument in (*positional, *arguments.kwonlyargs):
            if argument.annotation is not None:
                self.annotate(
                    argument.annotation, outer, ("variable", inner, argument.arg)
                )
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                self.solver.add(("variable", inner, extra.arg), Container(extra))
                if extra.annotation is not None:
                    self.annotate(extra.annotation, outer, ("declared", extra))
                    self.store_element(Container(extra), None, ("declared", extra))

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        inner = open_scope(scope.unit, node, scope)
        self.reading.scopes[node] = inner
        cls = Class(scope.unit, node, inner)
        bases = [self.expression(base, scope) for base in node.bases]
        # class Agent(library.Agent[State])
        generic = (base.value for base in node.bases if isinstance(base, ast.Subscript))
        bases += (self.expression(base, scope) for base in generic)
        self.declare_class(cls, bases)
        self.reading.classes.append(cls)
        for keyword in node.keywords:
            self.expression(keyword.value, scope)
        for decorator in node.decorator_list:
            self.expression(decorator, scope)
        self.solver.add(self._bind(node.name, scope), cls)
        self._body(node.body, inner)

    # Imports

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            place = self._bind(bound, scope)
            paths = self._absolute(scope.unit, alias.name)
            if not paths:
                target = alias.name if alias.asname else bound
                self.solver.add(place, External(target))
                owner = scope.binding(bound) or scope
                self.reading.imports.append(
                    Import(scope.unit, node, alias, owner, bound, alias.name)
                )
            # `import package.module` binds the package, with `as` the module.
            dropped = 0 if alias.asname else alias.name.count(".")
            for path in paths:
                steps = path.split("/")
                self._bind_module(place, "/".join(steps[: len(steps) - dropped]))

    def _absolute(self, unit: Unit, name: str) -> tuple[str, ...]:
        return () if self.library.owns(name) else self.project.absolute(unit, name)

    def _bind_module(self, place: Place, path: str) -> None:
        found = self.project.at(path)
        file = self.project.left_out(path)
        if found is not None:
            self.solver.add(place, Module(*found))
        elif file is not None:
            self.solver.add(place, External(name_of(file)))

    def _sources(self, unit: Unit, node: ast.ImportFrom) -> list[Module]:
        """The modules of the project from which a statement may import."""
        if node in self.runs:
            return [Module(found) for found in self.project.run_by(unit)]
        found = map(self.project.at, self._paths(unit, node))
        return [Module(*one) for one in found if one is not None]

    def _paths(self, unit: Unit, node: ast.ImportFrom) -> tuple[str, ...]:
        """The paths, without ending, of the modules of the project that a statement may mean."""
        name = node.module or ""
        if node.level:
            return (self.project.relative(unit, node.level, name),)
        return self._absolute(unit, name)

    def _others(self, unit: Unit, node: ast.ImportFrom) -> list[str]:
        """The files that are not analysed from which a statement may import."""
        if node in self.runs:
            return []
        found = map(self.project.left_out, self._paths(unit, node))
        return [file for file in found if file is not None]

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        sources = self._sources(scope.unit, node)
        others = self._others(scope.unit, node)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                target = node.module or ""
                self._star(node, sources, scope)
            else:
                target = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                place = self._bind(name, scope)
                if not (sources or others):
                    self.solver.add(place, External(target))
                for file in others:
                    self.solver.add(place, External(f"{name_of(file)}.{alias.name}"))
                for module in sources:
                    self._member(module, alias.name, place)
            owner = scope.binding(name) or scope
            if sources:
                units = [module.unit for module in sources if module.unit is not None]
                scopes = tuple(self.modules[unit] for unit in units)
                self.reading.passed_on.append(
                    PassedOn(scope.unit, node, alias, owner, name, scopes)
                )
            elif not others:
                self.reading.imports.append(
                    Import(scope.unit, node, alias, owner, name, target)
                )

    def _star(self, node: ast.ImportFrom, sources: list[Module], scope: Scope) -> None:
        if not sources:
            for member in self.library.members(node.module or ""):
                self.solver.add(
                    ("variable", scope, member), External(f"{node.module}.{member}")
                )
        for module in sources:
            if module.unit is not None and module.unit is not scope.unit:
                for member in sorted(exported(self.modules[module.unit])):
                    self._member(module, member, ("variable", scope, member))

    def _member(self, module: Module, name: str, result: Place) -> None:
        """Let what a module has under a name reach `result`: a variable, or a module within."""
        if module.unit is not None:
            scope = self.modules[module.unit]
            self.solver.connect(("variable", scope, name), result)
            self.solver.connect(("variable", scope, FromOutside.UNNAMED), result)
            if name not in scope.names and LAZY in scope.names:
                self.solver.connect(self._made_lazily(scope), result)
            for item in self._by_star(scope, name):
                self.solver.add(result, item)
            # What a package binds itself is not looked for among its modules.
            if name in scope.names or not module.directory:
                return
        if module.directory:
            path = f"{module.directory}/{name}" if module.directory != "." else name
            self._bind_module(result, path)
            if module.unit is not None and self.project.at(path) is None:
                self._made_available(module, name, result)

    def _made_lazily(self, scope: Scope) -> Place:
        """What the function `__getattr__` of a module gives."""
        place = ("given", scope)
        if not self.solver.targets(place):
            self.call(
                ("variable", scope, LAZY),
                CallSite(scope.unit, scope.node, (), {}, place),
            )
        return place

    def _made_available(self, package: Module, name: str, result: Place) -> None:
        """Let a name that a package does not bind be that of any of its modules.

        A package may give out such names by a `__getattr__` or the like.
        """
        for unit in self.project.within(package.directory):
            if name in self.modules[unit].names or unit is package.unit:
                self.solver.connect(("variable", self.modules[unit], name), result)

    def module_attribute(self, module: Module, name: str, result: Place) -> None:
        if name == "__dict__":
            self.solver.add(result, module)
            return
        self._member(module, name, result)
        if name not in CONTAINER_METHODS or module.unit is None:
            return
        if name not in self.modules[module.unit].names:
            # `globals().update(…)`: the module stands for the dict of its variables.
            self.solver.add(result, Method(module, name))

    def load_from_module(self, module: Module, name: Key, result: Place) -> None:
        if module.unit is not None:
            key = name if isinstance(name, str) else None
            self.looked_up[module.unit][key, result] = None
        if isinstance(name, str):
            self._member(module, name, result)
        elif module.unit is not None:
            scope = self.modules[module.unit]
            for member in (*sorted(scope.names), *FromOutside):
                place = ("variable", scope, member)
                items = self.solver.at(place)
                if items and all(map(_is_unanalysed, items)):
                    # A module that imports a whole library: one name stands for all of it.
                    self.solver.add(result, External(f"{name_of(module.unit.path)}.*"))
                    self._load_analysed(place, result)
                else:
                    self.solver.connect(place, result)

    def _load_analysed(self, source: Place, result: Place) -> None:
        """Let all at `source` reach `result` that is defined in an analysed file."""

        def arrive(item: Object) -> None:
            if not _is_unanalysed(item):
                self.solver.add(result, item)

        self.solver.watch(source, arrive)

    def store_in_module(self, module: Module, name: str | None, source: Place) -> None:
        if module.unit is None:
            return
        scope = self.modules[module.unit]
        if name is None:
            members: list[str | FromOutside] = [
                *sorted(scope.names),
                FromOutside.UNNAMED,
            ]
        else:
            scope.names.add(name)
            members = [name, FromOutside.ANY]
        for member in members:
            self.solver.connect(source, ("variable", scope, member))

    def import_module(self, call: ast.Call, site: CallSite) -> None:
        directory = str(PurePosixPath(site.unit.path).parent)
        named = named_module(call, directory.replace("/", "."))
        if isinstance(named, str):
            # importlib.import_module("package.models")
            self._load_module(named, site.unit, site.result)
            return
        # importlib.import_module(f"package.configs.{name}")
        if named is not ANY_NAME:
            for name in self.library.modules:
                if named.fullmatch(name):
                    self.solver.add(site.result, External(name))
        units = self.project.matching(named)
        others = self.project.others_matching(named)
        if len(units) + len(others) > MANY:
            units, others = [], ["*.py"]
        for unit in units:
            inner = str(PurePosixPath(unit.path).parent) if unit.is_package else ""
            self.solver.add(site.result, Module(unit, inner))
        for file in others:
            self.solver.add(site.result, External(name_of(file)))

    def _load_module(self, name: str, importer: Unit, result: Place) -> None:
        """Let the module of a dotted name reach `result`."""
        paths = self._absolute(importer, name)
        for path in paths:
            self._bind_module(result, path)
        if not paths:
            self.solver.add(result, External(name))

    # Assignment

    def _assign(self, target: ast.expr, source: Place, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self.solver.connect(source, self._bind(name, scope))
            case ast.Starred(value=value):
                self.solver.add(target, Container(target))
                self.store_element(Container(target), None, source)
                self._assign(value, target, scope)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                is_exact = True
                for index, element in enumerate(elements):
                    # first, *rest, last = values: from the star on, any element may come.
                    is_exact = is_exact and not isinstance(element, ast.Starred)
                    self.load(
                        source, index if is_exact else None, ("unpacked", element)
                    )
                    self._assign(element, ("unpacked", element), scope)
            case ast.Attribute(value=value, attr=name):
                self.reading.attributes.append((scope.unit, target))
                owner = self.expression(value, scope)
                self.derivation.add_store(Store(scope.unit, target, owner, source))
                self.store_attribute(owner, name, source)
            case ast.Subscript(value=value, slice=key):
                owner = self.expression(value, scope)
                if isinstance(key, ast.Slice):  # values[1:3] = others
                    source = self._sliced(target, owner, source)
                self.derivation.add_store(Store(scope.unit, target, owner, source))
                self.store(owner, self.key(key), source)
                self._store_key(owner, self.expression(key, scope))
            case _:
                self.expression(target, scope)

    def _sliced(self, target: ast.expr, owner: Place, source: Place) -> Place:
        """The elements that a slice is set to; those behind it may move to any index."""

        def arrive(item: Object) -> None:
            if isinstance(item, Container):
                self.scramble(item)

        self.solver.watch(owner, arrive)
        self.iterate(source, ("sliced", target))
        return ("sliced", target)

    def _store_key(self, owner: Place, key: Place) -> None:
        """Let a dict have what is at `key` as one of its keys."""

        def arrive(item: Object) -> None:
            if isinstance(item, Container):
                self.solver.connect(key, ("keys", item))

        self.solver.watch(owner, arrive)

    def _annotated_place(self, target: ast.expr, scope: Scope) -> Place:
        match target:
            case ast.Name(id=name) if isinstance(scope.node, ast.ClassDef):
                return self.annotated_field(self.class_of(scope.node), name)
            case ast.Name(id=name):
                return self._bind(name, scope)
            case ast.Attribute(value=value, attr=name):
                place = ("annotated", target)
                self.expression(value, scope)
                self.store_attribute(self.places[value], name, place)
                return place
            case _:
                self._assign(target, ("annotated", target), scope)
                return ("annotated", target)

    def annotate(self, node: ast.expr, scope: Scope, target: Place) -> None:
        expression: ast.expr = node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                expression = ast.parse(node.value.strip(), mode="eval").body
            except SyntaxError:
                return
            for inner in ast.walk(expression):
                ast.copy_location(inner, node)
        self.expression(expression, scope)
        self.reading.annotations.append(
            Annotation(scope.unit, node, expression, scope, target)
        )
        others = dict.fromkeys(quoted_types(expression))
        for named in types_within(expression):
            match named.type:
                case ast.Constant() as quoted:
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, self.inside(target, named))
                case ast.Subscript(
                    slice=ast.Constant(value=str()) as quoted
                ):  # Type["Model"]
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, ("class", quoted))
                case _:
                    self._declare(named, target)
        # Quoted types of which the value has no part: the parameters of a Callable.
        for quoted in others:
            self.annotate(quoted, scope, ("declared", quoted))

    def _declare(self, named: TypeWithin, target: Place) -> None:
        def arrive(item: Object) -> None:
            if isinstance(item, Class):
                self.solver.add(self.inside(target, named), Instance(item))

        self.solver.watch(self.places[named.type], arrive)

    def inside(self, place: Place, named: TypeWithin) -> Place:
        """The place of the part of an annotated value that is of a type within its annotation."""
        for node, step in named.path:
            if step == "returned":
                self.solver.add(place, Declared(node))
                place = ("returned", node)
            else:
                container = Container(node, "declared")
                self.solver.add(place, container)
                place = ("declared", node, step)
                self.store_element(
                    container, step if isinstance(step, int) else None, place
                )
        return place

    # Expressions

    def expression(self, node: ast.expr, scope: Scope) -> Place:
        """The place of an expression's value; the expression is read the first time."""
        if node not in self.places:
            self.places[node] = node
            if isinstance(node, ast.Name) and isinstance(scope.node, ast.ClassDef):
                scope = self._seen_from_class(node, scope, scope.node)
            self.reading.scopes[node] = scope
            self.places[node] = self._expression(node, scope)
        return self.places[node]

    def _seen_from_class(
        self, name: ast.Name, scope: Scope, cls: ast.ClassDef
    ) -> Scope:
        """The scope from which a name in the body of a class is seen.

        Until the class binds it, that is the one around: `class Library: optim = optim`.
        """
        if cls not in self._bound_in_class:
            self._bound_in_class[cls] = first_bound(cls)
        bound = self._bound_in_class[cls].get(name.id)
        is_before = bound is not None and (name.lineno, name.col_offset) < bound
        is_read = isinstance(name.ctx, ast.Load)
        return scope.parent if is_before and is_read and scope.parent else scope

    def _expression(self, node: ast.expr, scope: Scope) -> Place:
        match node:
            case ast.Name(id=name):
                place = self.variable(name, scope)
                if place is not None:
                    return place
                self._unbound(node, name, scope)
            case ast.Attribute(value=value, attr=name):
                self.reading.attributes.append((scope.unit, node))
                self.load_attribute(self.expression(value, scope), name, node)
            case ast.Call():
                self._call(node, scope)
            case (
                ast.Tuple(elts=elements)
                | ast.List(elts=elements)
                | ast.Set(elts=elements)
            ):
                self._display(node, elements, scope)
            case ast.Dict(keys=keys, values=values):
                self._dict(node, keys, values, scope)
            case ast.Subscript(value=value, slice=key):
                self.expression(key, scope)
                source = self.expression(value, scope)
                self.load(source, self.key(key), node, whole=isinstance(key, ast.Slice))
                self._load_from_namespace(source, key, node, scope.unit)
            # a if test else b: either
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.expression(test, scope)
                for branch in (body, orelse):
                    self.solver.connect(self.expression(branch, scope), node)
            case ast.BoolOp(values=values):
                for value in values:
                    self.solver.connect(self.expression(value, scope), node)
            case ast.BinOp():
                self._binary(node, scope)
            case ast.NamedExpr(target=target, value=value):
                source = self.expression(value, scope)
                self._assign(target, source, scope)
                return source
            case ast.Lambda():
                self._lambda(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scope)
            # await function(): what a coroutine gives is what its function returns.
            case ast.Await(value=value):
                return self.expression(value, scope)
            case ast.UnaryOp(op=operator, operand=value):
                source = self.expression(value, scope)
                self.solver.connect(source, node)
                if type(operator) in UNARY:
                    method = UNARY[type(operator)]
                    self.solver.watch(source, partial(self._operate_on, method, node))
            case ast.Yield(value=value) | ast.YieldFrom(value=value):
                self._yield(node, value, scope)
                # state = yield metrics, where a caller has `generator.send(state)`
                self.solver.connect(
                    ("element", Container(scope.node, GENERATOR), "sent"), node
                )
            case ast.Starred(value=value):
                self.iterate(self.expression(value, scope), node)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, scope)
        return node

    def _unbound(self, place: Place, name: str, scope: Scope) -> None:
        """Let what a name means that its file does not bind reach a place."""
        if name in BUILTINS:
            self.solver.add(place, External(f"builtins.{name}"))
        elif (
            name == "flax"
        ):  # bound elsewhere: by a star import, or in another notebook
            self.solver.add(place, External(name))
        for item in self._by_star(scope, name):
            self.solver.add(place, item)

    def _binary(self, node: ast.BinOp, scope: Scope) -> None:
        """`left op right`: an operand, a container of both, or what a special method gives."""
        left = self.expression(node.left, scope)
        right = self.expression(node.right, scope)
        name = OPERATORS.get(type(node.op), "")
        for side, other in ((left, right), (right, left)):
            self.solver.watch(side, partial(self._operate, name, other, node))
            if name in JOINING:
                self.concatenate(side, node, node)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        """`target op= value`: what is added, or what a special method of either gives."""
        source = self.expression(node.value, scope)
        current = self._current(node.target, scope)
        result = ("augmented", node)
        self.solver.connect(source, result)
        name = OPERATORS.get(type(node.op), "")
        of_target = [f"__i{name}__", f"__{name}__"]
        self.solver.watch(
            current, partial(self._call_methods, of_target, source, result)
        )
        of_value = [f"__r{name}__"]
        self.solver.watch(
            source, partial(self._call_methods, of_value, current, result)
        )
        self._assign(node.target, result, scope)

    def _call_methods(
        self, names: list[str], given: Place, result: Place, item: Object
    ) -> None:
        if isinstance(item, Instance):
            for name in names:
                self.call_special(item, name, result, given)

    def _current(self, target: ast.expr, scope: Scope) -> Place:
        """What is at the target of an assignment before that."""
        match target:
            case ast.Name(id=name):
                return self._bind(name, scope)
            case ast.Attribute(value=value, attr=name):
                self.load_attribute(
                    self.expression(value, scope), name, ("augmented", target)
                )
            case ast.Subscript(value=value, slice=key):
                self.load(
                    self.expression(value, scope), self.key(key), ("augmented", target)
                )
        return ("augmented", target)

    def _operate_on(self, name: str, node: ast.UnaryOp, item: Object) -> None:
        if isinstance(item, Instance):
            self.call_special(item, name, node)

    def _operate(self, name: str, other: Place, node: ast.BinOp, item: Object) -> None:
        if isinstance(item, Instance):
            for prefix in ("__", "__r"):
                self.call_special(item, f"{prefix}{name}__", node, other)
        if not isinstance(item, Container):
            self.solver.add(node, item)

    def _load_from_namespace(
        self, source: Place, key: ast.expr, result: Place, unit: Unit
    ) -> None:
        """What a subscript of a table of modules or of variables gives."""
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            self._load_by_name(source, key.value, result, unit)
        if isinstance(key, ast.Name) and key.id == "__name__":
            self._load_own_module(source, unit, result)

    def _load_by_name(
        self, source: Place, name: str, result: Place, unit: Unit
    ) -> None:
        """What a namespace has under a name: `sys.modules[name]`, `vars(module)[name]`."""

        def arrive(item: Object) -> None:
            if isinstance(item, Module):
                self._member(item, name, result)
            elif item == External("sys.modules"):
                self._load_module(name, unit, result)
            elif isinstance(item, External):
                member = f"{item.name}.{name}"
                if self.library.follows(member):
                    self.solver.add(result, External(member))

        self.solver.watch(source, arrive)

    def _load_own_module(self, source: Place, unit: Unit, result: Place) -> None:
        """`sys.modules[__name__]`."""

        def arrive(item: Object) -> None:
            if item == External("sys.modules"):
                self.solver.add(result, Module(unit))

        self.solver.watch(source, arrive)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        self.reading.calls.append((scope.unit, node))
        positional: list[Place] = []
        starred: int | None = None
        for index, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                starred = index if starred is None else starred
                positional.append(self.expression(argument.value, scope))
                self.expression(argument, scope)
            else:
                positional.append(self.expression(argument, scope))
        named = [keyword for keyword in node.keywords if keyword.arg]
        keywords = {str(one.arg): self.expression(one.value, scope) for one in named}
        starred_twice = [keyword for keyword in node.keywords if keyword.arg is None]
        unpacked = [self.expression(one.value, scope) for one in starred_twice]
        call = CallSite(
            scope.unit,
            node,
            tuple(positional),
            keywords,
            node,
            starred,
            tuple(unpacked),
            scope,
        )
        callee = self.expression(node.func, scope)
        self.derivation.add(callee, call)
        self.call(callee, call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__new__":
            for place in positional[:1]:
                self.solver.watch(place, partial(self._make_instance, node))

    def _make_instance(self, call: ast.Call, item: Object) -> None:
        """`super().__new__(cls)` gives an instance of `cls`."""
        if isinstance(item, Class):
            self.solver.add(call, Instance(item))

    def _display(self, node: ast.expr, elements: list[ast.expr], scope: Scope) -> None:
        """`(a, b)`, `[a, b]`, `{a, b}`: elements behind a star may be at any index."""
        self.solver.add(node, Container(node))
        is_exact = True
        for index, element in enumerate(elements):
            is_exact = is_exact and not isinstance(element, ast.Starred)
            source = self.expression(element, scope)
            self.store_element(Container(node), index if is_exact else None, source)

    def _dict(
        self,
        node: ast.Dict,
        keys: list[ast.expr | None],
        values: list[ast.expr],
        scope: Scope,
    ) -> None:
        self.solver.add(node, Container(node))
        for key, value in zip(keys, values, strict=True):
            source = self.expression(value, scope)
            if key is None:  # {**others}
                self.merge(source, Container(node))
            else:
                written = self.expression(key, scope)
                if not isinstance(written, ast.Constant):
                    self.solver.connect(written, ("keys", Container(node)))
                self.store_element(Container(node), self.key(key), source)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = open_scope(scope.unit, node, scope)
        self._parameters(node.args, inner, scope)
        function = Function(scope.unit, node, inner)
        self.reading.functions.append(function)
        self.solver.add(node, function)
        self.solver.connect(self.expression(node.body, inner), ("return", node))

    def _comprehension(self, node: Comprehension, scope: Scope) -> None:
        inner = open_scope(scope.unit, node, scope)
        for generator in node.generators:
            self.iterate(self.expression(generator.iter, inner), generator)
            self._assign(generator.target, generator, inner)
            for condition in generator.ifs:
                self.expression(condition, inner)
        if isinstance(node, ast.DictComp):
            self.solver.connect(
                self.expression(node.key, inner), ("keys", Container(node))
            )
            element = self.expression(node.value, inner)
        else:
            element = self.expression(node.elt, inner)
        self.solver.add(node, Container(node))
        self.store_element(Container(node), None, element)

    def _yield(
        self, node: ast.Yield | ast.YieldFrom, value: ast.expr | None, scope: Scope
    ) -> None:
        if value is None:
            return
        source = self.expression(value, scope)
        function = scope.node
        self.solver.add(("return", function), Container(function, GENERATOR))
        if isinstance(node, ast.YieldFrom):
            self.merge(source, Container(function, GENERATOR))
            # The value of `yield from` is what the other generator returns.
            self.solver.connect(source, node)
        else:
            self.store_element(Container(function, GENERATOR), None, source)

    @staticmethod
    def key(node: ast.expr) -> int | str | None:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, int | str)):
            return None
        # values[-1] is not followed: lengths are not known.
        is_negative = isinstance(node.value, int) and node.value < 0
        return None if is_negative else node.value


def _is_unanalysed(item: Object) -> bool:
    """Whether something is defined in a file that is not analysed."""
    return isinstance(item, External) and file_of(item.name) is not None
