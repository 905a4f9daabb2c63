"""From syntax to constraints: what every statement and expression lets flow where."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
from codemods.flow.scopes import Comprehension, Scope, open_scope
from codemods.flow.sites import CallSite, Key
from codemods.sources.modules import Project, Unit, file_of, name_of

BUILTINS = frozenset(vars(builtins))
ANY, UNNAMED = "*", "?"
"""Stand for a variable of a module that is set from outside, and for one that is set so under a name that is not known."""

LAZY = "__getattr__"
RAISED = ("raised",)
"""The place of all exceptions."""

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
"""The words of the special methods of operators."""

MANY = 50
"""If a computed name may be that of more modules, none of them is followed: what they are given is lost, and comes back wherever
such a thing is read."""

UNARY: dict[type[ast.unaryop], str] = {
    ast.Invert: "__invert__",
    ast.UAdd: "__pos__",
    ast.USub: "__neg__",
}

JOINING = ("add", "mul", "or", "and", "sub", "xor")
"""The operators that make a container of two."""


class TooDeepError(Exception):
    """Files have expressions that nest too deeply to be read."""

    def __init__(self, units: Sequence[Unit]) -> None:
        super().__init__(", ".join(unit.path for unit in units))
        self.units = units


class Constraints(Calls):
    """Reads all units of a project into one solver."""

    def read(self, project: Project) -> None:
        """Read every unit; `solve` may follow.

        Raises:
          TooDeepError: if expressions nest too deeply.
        """
        self.project = project
        self.reading = Reading()
        self.derivation = Derivation(self)
        self.modules: dict[Unit, Scope] = {
            unit: open_scope(unit, unit.tree, None) for unit in project.units
        }
        # To run a file in the place of a statement gives its names, as a star import would.
        self.runs = {
            ast.ImportFrom(names=[ast.alias("*")], level=0): unit
            for unit in project.units
            if project.run_by(unit)
        }
        stars = [(unit, node) for unit in project.units for node in stars_of(unit)]
        stars += [(unit, node) for node, unit in self.runs.items()]
        open_stars(self.modules, stars, self._star_units, self.library.members)
        self._starred = self._left_stars(stars)
        unread: list[Unit] = []
        for unit, scope in self.modules.items():
            try:
                self._body(unit.tree.body, scope)
            except RecursionError:
                unread.append(unit)
        if unread:
            raise TooDeepError(unread)
        for node, unit in self.runs.items():
            self._import_from(node, self.modules[unit])

    def solve(self) -> None:
        """Run to the fixed point. A decorator of which nothing is known is taken to hand its function through."""
        self.solver.solve()
        for function, result in self.reading.decorated:
            if all(isinstance(item, Result) for item in self.solver.at(result)):
                self.solver.connect(function, result)
                self.solver.solve()
        while self.derivation.round():
            self.solver.solve()

    def _star_units(self, unit: Unit, node: ast.ImportFrom) -> list[Unit]:
        return [module.unit for module in self._sources(unit, node) if module.unit is not None]

    def _left_stars(self, stars: Iterable[tuple[Unit, ast.ImportFrom]]) -> dict[Scope, set[str]]:
        """The files that are not analysed from which each module takes all names, through others or not."""
        found: dict[Scope, set[str]] = defaultdict(set)
        sources: dict[Scope, list[Scope]] = defaultdict(list)
        for unit, node in stars:
            found[self.modules[unit]].update(self._others(unit, node))
            sources[self.modules[unit]] += (
                self.modules[source] for source in self._star_units(unit, node)
            )
        changed = True
        while changed:
            before = sum(map(len, found.values()))
            for scope, taken in sources.items():
                found[scope].update(*(found[source] for source in taken))
            changed = sum(map(len, found.values())) > before
        return found

    def _by_star(self, scope: Scope, name: str) -> Iterator[External]:
        """What a name may be that a module takes by a star import from a file that is not analysed."""
        for file in (
            sorted(self._starred.get(scope.module, ()))
            if scope.module.binding(name) is None
            else ()
        ):
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
                self.solver.connect(self.expression(value, scope), ("return", scope.node))
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
                for item in node.items:
                    source = self.expression(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.iterate(source, item)
                        self.solver.connect(source, item)
                        self._enter_context(
                            source,
                            item,
                            "__aenter__" if isinstance(node, ast.AsyncWith) else "__enter__",
                        )
                        self._assign(item.optional_vars, item, scope)
                self._body(node.body, scope)
            case ast.Import():
                self._import(node, scope)
            case ast.ImportFrom():
                self._import_from(node, scope)
            case ast.Raise(exc=ast.Call() as raised):
                self.solver.connect(self.expression(raised, scope), RAISED)
                if node.cause is not None:
                    self.expression(node.cause, scope)
            case ast.Delete(targets=targets):
                for target in targets:
                    place = self.expression(target, scope)
                    if isinstance(target, ast.Subscript) and not isinstance(
                        self.key(target.slice), str
                    ):
                        self.load(
                            self.places[target.value], None, place, whole=True
                        )  # what is behind it moves up
            case ast.Match():
                subject = self.expression(node.subject, scope)
                for case in node.cases:
                    self._pattern(case.pattern, subject, scope)
                    if case.guard is not None:
                        self.expression(case.guard, scope)
                    self._body(case.body, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.stmt):
                        self._statement(child, scope)
                    elif isinstance(child, ast.expr):
                        self.expression(child, scope)
                    elif isinstance(child, ast.ExceptHandler):
                        self._handler(child, scope)

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
            case ast.MatchSequence(patterns=patterns):
                for part in patterns:
                    self._part(part, source, None, scope)
            case ast.MatchStar(name=str(name)):
                self.store_element(Container(pattern), None, source)
                self.solver.add(self._bind(name, scope), Container(pattern))
            case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
                for key, part in zip(keys, patterns, strict=True):
                    self._part(part, source, self.key(key), scope)
                if rest is not None:
                    self.solver.connect(source, self._bind(rest, scope))
            case ast.MatchClass(cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=named):
                self.expression(cls, scope)
                for index, part in enumerate(patterns):
                    self._part(part, source, index, scope)
                for name, part in zip(names, named, strict=True):
                    self.load_attribute(source, name, ("matched", part))
                    self._pattern(part, ("matched", part), scope)
            case _:
                pass

    def _part(self, pattern: ast.pattern, source: Place, key: Key, scope: Scope) -> None:
        self.load(source, key, ("matched", pattern))
        self._pattern(pattern, ("matched", pattern), scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        inner = open_scope(scope.unit, node, scope)
        function = Function(scope.unit, node, inner)
        self.reading.functions.append(function)
        self._parameters(node.args, inner, scope)
        if node.returns is not None:
            self.annotate(node.returns, scope, ("return", node))
        if isinstance(scope.node, ast.ClassDef) and "staticmethod" not in self.decorators(function):
            first = next(iter((*node.args.posonlyargs, *node.args.args)), None)
            if first is not None and "classmethod" in self.decorators(function):
                self.solver.add(("variable", inner, first.arg), self.class_of(scope.node))
            elif first is not None:
                self.solver.connect(
                    ("self", self.class_of(scope.node)), ("variable", inner, first.arg)
                )
        place: Place = node
        self.solver.add(place, function)
        for decorator in reversed(node.decorator_list):
            call = CallSite(scope.unit, decorator, (place,), {}, ("decorated", decorator))
            self.call(self.expression(decorator, scope), call)
            self.reading.decorated.append((place, call.result))
            place = call.result
        self.solver.connect(place, self._bind(node.name, scope))
        self._body(node.body, inner)

    def _parameters(self, arguments: ast.arguments, inner: Scope, outer: Scope) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
        for argument, default in [
            *zip(positional, defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]:
            if default is not None:
                self.solver.connect(
                    self.expression(default, outer), ("variable", inner, argument.arg)
                )
        for argument in (*positional, *arguments.kwonlyargs):
            if argument.annotation is not None:
                self.annotate(argument.annotation, outer, ("variable", inner, argument.arg))
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
        self.declare_class(cls, [self.expression(base, scope) for base in node.bases])
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
            for path in paths:
                steps = path.split("/")
                self._bind_module(
                    place,
                    path if alias.asname else "/".join(steps[: len(steps) - alias.name.count(".")]),
                )

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
        """The modules of the project from which a statement may import; none if it is from outside."""
        if node in self.runs:
            return [Module(found) for found in self.project.run_by(unit)]
        return [
            Module(*found)
            for path in self._paths(unit, node)
            if (found := self.project.at(path)) is not None
        ]

    def _paths(self, unit: Unit, node: ast.ImportFrom) -> tuple[str, ...]:
        """The paths, without ending, of the modules of the project that a statement may mean."""
        name = node.module or ""
        return (
            (self.project.relative(unit, node.level, name),)
            if node.level
            else self._absolute(unit, name)
        )

    def _others(self, unit: Unit, node: ast.ImportFrom) -> list[str]:
        """The files that are not analysed from which a statement may import."""
        found = map(self.project.left_out, () if node in self.runs else self._paths(unit, node))
        return [file for file in found if file is not None]

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        sources = self._sources(scope.unit, node)
        others = self._others(scope.unit, node)
        for alias in node.names:
            target = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            name = alias.asname or alias.name
            if alias.name == "*":
                self._star(node, sources, scope)
                target = node.module or ""
            elif not (sources or others):
                self.solver.add(self._bind(name, scope), External(target))
            for file in others if alias.name != "*" else ():
                self.solver.add(self._bind(name, scope), External(f"{name_of(file)}.{alias.name}"))
            for module in sources:
                if alias.name != "*":
                    self._member(module, alias.name, self._bind(name, scope))
            owner = scope.binding(name) or scope
            if sources:
                scopes = tuple(
                    self.modules[module.unit] for module in sources if module.unit is not None
                )
                self.reading.passed_on.append(
                    PassedOn(scope.unit, node, alias, owner, name, scopes)
                )
            elif not others:
                self.reading.imports.append(Import(scope.unit, node, alias, owner, name, target))

    def _star(self, node: ast.ImportFrom, sources: list[Module], scope: Scope) -> None:
        if not sources:
            for member in self.library.members(node.module or ""):
                self.solver.add(("variable", scope, member), External(f"{node.module}.{member}"))
        for module in sources:
            if module.unit is not None and module.unit is not scope.unit:
                for member in sorted(exported(self.modules[module.unit])):
                    self._member(module, member, ("variable", scope, member))

    def _member(self, module: Module, name: str, result: Place) -> None:
        if module.unit is not None:
            scope = self.modules[module.unit]
            self.solver.connect(("variable", scope, name), result)
            self.solver.connect(("variable", scope, UNNAMED), result)
            if name not in scope.names and LAZY in scope.names:
                self.solver.connect(self._made_lazily(scope), result)
            for item in self._by_star(scope, name):
                self.solver.add(result, item)
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
            self.call(("variable", scope, LAZY), CallSite(scope.unit, scope.node, (), {}, place))
        return place

    def _made_available(self, package: Module, name: str, result: Place) -> None:
        """What a package gives out that it does not bind, by a `__getattr__` or the like, is from one of its modules."""
        for unit in self.project.within(package.directory):
            if name in self.modules[unit].names or unit is package.unit:
                self.solver.connect(("variable", self.modules[unit], name), result)

    def module_attribute(self, module: Module, name: str, result: Place) -> None:
        if name == "__dict__":
            self.solver.add(result, module)
            return
        self._member(module, name, result)
        if (
            name in CONTAINER_METHODS
            and module.unit is not None
            and name not in self.modules[module.unit].names
        ):
            self.solver.add(result, Method(module, name))  # of `globals()`

    def load_from_module(self, module: Module, name: Key, result: Place) -> None:
        if isinstance(name, str):
            self._member(module, name, result)
        elif module.unit is not None:
            scope = self.modules[module.unit]
            for member in (*sorted(scope.names), ANY, UNNAMED):
                place = ("variable", scope, member)
                items = self.solver.at(place)
                if items and all(
                    map(_is_left_out, items)
                ):  # a table of a whole library: one name for all
                    self.solver.add(result, External(f"{name_of(module.unit.path)}.{ANY}"))
                    self.solver.watch(
                        place, lambda item: _is_left_out(item) or self.solver.add(result, item)
                    )
                else:
                    self.solver.connect(place, result)

    def store_in_module(self, module: Module, name: str | None, source: Place) -> None:
        if module.unit is None:
            return
        scope = self.modules[module.unit]
        if name is None:
            members = [*sorted(scope.names), UNNAMED]
        else:
            scope.names.add(name)
            members = [name, ANY]
        for member in members:
            self.solver.connect(source, ("variable", scope, member))

    def import_module(self, call: ast.Call, site: CallSite) -> None:
        named = named_module(call, str(PurePosixPath(site.unit.path).parent).replace("/", "."))
        if isinstance(named, str):
            paths = self._absolute(site.unit, named)
            for path in paths:
                self._bind_module(site.result, path)
            if not paths:
                self.solver.add(site.result, External(named))
            return
        for name in self.library.modules if named is not ANY_NAME else ():
            if named.fullmatch(name):
                self.solver.add(site.result, External(name))
        units, others = self.project.matching(named), self.project.others_matching(named)
        if len(units) + len(others) > MANY:
            units, others = [], ["*.py"]
        for unit in units:
            self.solver.add(
                site.result,
                Module(unit, str(PurePosixPath(unit.path).parent) if unit.is_package else ""),
            )
        for file in others:
            self.solver.add(site.result, External(name_of(file)))

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
                starred = next(
                    (i for i, element in enumerate(elements) if isinstance(element, ast.Starred)),
                    len(elements),
                )
                for index, element in enumerate(elements):
                    self.load(source, index if index < starred else None, ("unpacked", element))
                    self._assign(element, ("unpacked", element), scope)
            case ast.Attribute(value=value, attr=name):
                self.reading.attributes.append((scope.unit, target))
                owner = self.expression(value, scope)
                self.derivation.add_store(Store(scope.unit, target, owner, source))
                self.store_attribute(owner, name, source)
            case ast.Subscript(value=value, slice=key):
                owner = self.expression(value, scope)
                if isinstance(key, ast.Slice):
                    source = self._sliced(target, owner, source)
                self.derivation.add_store(Store(scope.unit, target, owner, source))
                self.store(owner, self.key(key), source)
                self._store_key(owner, self.expression(key, scope))
            case _:
                self.expression(target, scope)

    def _sliced(self, target: ast.expr, owner: Place, source: Place) -> Place:
        """The elements that a slice is given; all others may be elsewhere behind it."""

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
                return ("field", self.class_of(scope.node), name)
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
        self.reading.annotations.append(Annotation(scope.unit, node, expression, scope, target))
        others = dict.fromkeys(quoted_types(expression))
        for named in types_within(expression):
            match named.type:
                case ast.Constant() as quoted:
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, self.inside(target, named))
                case ast.Subscript(slice=ast.Constant(value=str()) as quoted):  # Type["X"]
                    others.pop(quoted, None)
                    self.annotate(quoted, scope, ("class", quoted))
                case _:
                    self._declare(named, target)
        for quoted in others:  # of which the value has no part
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
                self.store_element(container, step if isinstance(step, int) else None, place)
        return place

    # Expressions

    def expression(self, node: ast.expr, scope: Scope) -> Place:
        """The place of an expression's value; the expression is read when it is met first."""
        if node not in self.places:
            self.places[node] = node
            self.reading.scopes[node] = scope
            self.places[node] = self._expression(node, scope)
        return self.places[node]

    def _expression(self, node: ast.expr, scope: Scope) -> Place:
        match node:
            case ast.Name(id=name):
                place = self.variable(name, scope)
                if place is not None:
                    return place
                if name in BUILTINS:
                    self.solver.add(node, External(f"builtins.{name}"))
                elif name == "flax":  # bound elsewhere: by a star import, or in another notebook
                    self.solver.add(node, External(name))
                for item in self._by_star(scope, name):
                    self.solver.add(node, item)
            case ast.Attribute(value=value, attr=name):
                self.reading.attributes.append((scope.unit, node))
                self.load_attribute(self.expression(value, scope), name, node)
            case ast.Call():
                self._call(node, scope)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                self._display(node, elements, scope)
            case ast.Dict(keys=keys, values=values):
                self._dict(node, keys, values, scope)
            case ast.Subscript(value=value, slice=key):
                self.expression(key, scope)
                self.load(
                    self.expression(value, scope),
                    self.key(key),
                    node,
                    whole=isinstance(key, ast.Slice),
                )
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self._load_by_name(self.expression(value, scope), key.value, node)
                if isinstance(key, ast.Name) and key.id == "__name__":
                    self._load_own_module(self.expression(value, scope), scope.unit, node)
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
            case ast.Await(value=value):
                return self.expression(value, scope)
            case ast.UnaryOp(op=operator, operand=value):
                source = self.expression(value, scope)
                self.solver.connect(source, node)
                if type(operator) in UNARY:
                    self.solver.watch(
                        source, partial(self._operate_on, UNARY[type(operator)], node)
                    )
            case ast.Yield(value=value) | ast.YieldFrom(value=value):
                self._yield(node, value, scope)
                self.solver.connect(("element", Container(scope.node, GENERATOR), "sent"), node)
            case ast.Starred(value=value):
                self.iterate(self.expression(value, scope), node)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, scope)
        return node

    def _binary(self, node: ast.BinOp, scope: Scope) -> None:
        """`left op right`: either operand, one container of what both hold, or what a special method gives."""
        sides = (self.expression(node.left, scope), self.expression(node.right, scope))
        name = OPERATORS.get(type(node.op), "")
        for side, other in (sides, sides[::-1]):
            self.solver.watch(side, partial(self._operate, name, other, node))
            if name in JOINING:
                self.concatenate(side, node, node)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        """`target op= value`: what is added, or what a special method of either gives."""
        source, result = self.expression(node.value, scope), ("augmented", node)
        current = self._current(node.target, scope)
        name = OPERATORS.get(type(node.op), "")
        self.solver.connect(source, result)
        for side, other, prefixes in (
            (current, source, ("__i", "__")),
            (source, current, ("__r",)),
        ):
            methods = [f"{prefix}{name}__" for prefix in prefixes]
            self.solver.watch(side, partial(self._call_methods, methods, other, result))
        self._assign(node.target, result, scope)

    def _call_methods(self, names: list[str], given: Place, result: Place, item: Object) -> None:
        if isinstance(item, Instance):
            for name in names:
                self.call_special(item, name, result, given)

    def _current(self, target: ast.expr, scope: Scope) -> Place:
        """What is at the target of an assignment before that."""
        match target:
            case ast.Name(id=name):
                return self._bind(name, scope)
            case ast.Attribute(value=value, attr=name):
                self.load_attribute(self.expression(value, scope), name, ("augmented", target))
            case ast.Subscript(value=value, slice=key):
                self.load(self.expression(value, scope), self.key(key), ("augmented", target))
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

    def _load_by_name(self, source: Place, name: str, result: Place) -> None:
        """What a namespace has under a name: `sys.modules[name]`, `vars(module)[name]`."""

        def arrive(item: Object) -> None:
            if isinstance(item, External) and item.name == "sys.modules":
                self.solver.add(result, External(name))
            elif isinstance(item, External) and self.library.follows(f"{item.name}.{name}"):
                self.solver.add(result, External(f"{item.name}.{name}"))
            elif isinstance(item, Module):
                self._member(item, name, result)

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
        keywords = {
            keyword.arg: self.expression(keyword.value, scope)
            for keyword in node.keywords
            if keyword.arg
        }
        unpacked = [
            self.expression(keyword.value, scope)
            for keyword in node.keywords
            if keyword.arg is None
        ]
        call = CallSite(
            scope.unit, node, tuple(positional), keywords, node, starred, tuple(unpacked), scope
        )
        self.derivation.add(self.expression(node.func, scope), call)
        self.call(self.expression(node.func, scope), call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__new__":
            for place in positional[:1]:
                self.solver.watch(place, partial(self._make_instance, node))

    def _make_instance(self, call: ast.Call, item: Object) -> None:
        """`super().__new__(cls)`."""
        if isinstance(item, Class):
            self.solver.add(call, Instance(item))

    def _display(self, node: ast.expr, elements: list[ast.expr], scope: Scope) -> None:
        self.solver.add(node, Container(node))
        exact = True
        for index, element in enumerate(elements):
            exact = exact and not isinstance(element, ast.Starred)
            self.store_element(
                Container(node), index if exact else None, self.expression(element, scope)
            )

    def _dict(
        self, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr], scope: Scope
    ) -> None:
        self.solver.add(node, Container(node))
        for key, value in zip(keys, values, strict=True):
            source = self.expression(value, scope)
            if key is None:
                self.merge(source, Container(node))
            else:
                self.solver.connect(self.expression(key, scope), ("keys", Container(node)))
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
            self.solver.connect(self.expression(node.key, inner), ("keys", Container(node)))
            element = self.expression(node.value, inner)
        else:
            element = self.expression(node.elt, inner)
        self.solver.add(node, Container(node))
        self.store_element(Container(node), None, element)

    def _yield(self, node: ast.Yield | ast.YieldFrom, value: ast.expr | None, scope: Scope) -> None:
        if value is None:
            return
        source = self.expression(value, scope)
        function = scope.node
        self.solver.add(("return", function), Container(function, GENERATOR))
        if isinstance(node, ast.YieldFrom):
            self.merge(source, Container(function, GENERATOR))
            self.solver.connect(source, node)  # which brings what the other generator returns
        else:
            self.store_element(Container(function, GENERATOR), None, source)

    @staticmethod
    def key(node: ast.expr) -> int | str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
            return node.value if not isinstance(node.value, int) or node.value >= 0 else None
        return None


def _is_left_out(item: Object) -> bool:
    """Whether something is defined in a file that is not analysed."""
    return isinstance(item, External) and file_of(item.name) is not None
