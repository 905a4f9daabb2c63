"""What a name stands for: variables, parameters, imports, the members of modules."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Generator, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.dynamic import ANY, named_module
from codemods.inference.imports import exported
from codemods.inference.objects import (
    UNKNOWN,
    Arguments,
    Called,
    Container,
    External,
    Frame,
    Function,
    InFrame,
    Instance,
    Made,
    Module,
    Object,
    Place,
)
from codemods.inference.reading import Binding, FunctionNode, last_name, parameters
from codemods.inference.scopes import Scope, first_bound
from codemods.sources.modules import Unit, name_of
from codemods.vocabulary import CUSTOMARY

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]

BUILTINS = frozenset(vars(builtins))
LAZY = "__getattr__"

MANY = 50
"""If a computed name may be that of more modules, none of them is followed."""


class Names:
    """Equations of variables."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self._first_bound: dict[ast.ClassDef, dict[str, tuple[int, int]]] = {}

    def seen_from(self, name: ast.Name, scope: Scope) -> Scope:
        """The scope from which a name is seen.

        Until a class binds a name, that is the one around it: `class Library: optim = optim`.
        """
        cls = scope.node
        if not isinstance(cls, ast.ClassDef) or scope.parent is None:
            return scope
        if cls not in self._first_bound:
            self._first_bound[cls] = first_bound(scope.unit, cls)
        bound = self._first_bound[cls].get(name.id)
        is_before = bound is not None and (name.lineno, name.col_offset) < bound
        is_read = isinstance(name.ctx, ast.Load)
        return scope.parent if is_before and is_read else scope

    def meant(self, node: ast.Name, frame: Frame | None) -> Place | None:
        """The variable that a name stands for, if any of its values may reach it."""
        scope = self.seen_from(node, self.engine.scopes[node])
        bound = scope.binding(node.id)
        if bound is None or self.engine.reaching.bindings(node) is not None:
            return None
        return self.engine.variable(bound, node.id, frame)

    def read(self, node: ast.Name, frame: Frame | None) -> Answer:
        """What a name is where it is read, if it is not all that its variable may be."""
        scope = self.seen_from(node, self.engine.scopes[node])
        bound = scope.binding(node.id)
        if bound is None:
            return (yield from self._unbound(node.id, scope))
        reaching = self.engine.reaching.bindings(node)
        assert reaching is not None
        own = self.engine.frame_for(bound, frame)
        return (yield from self._of_bindings(reaching, bound, node.id, own))

    def _unbound(self, name: str, scope: Scope) -> Answer:
        found: list[Object] = []
        # store.current = state, in another file
        if name not in BUILTINS:
            found += yield from self._in_module(scope.module, name, is_bound=True)
        if name in BUILTINS:
            found.append(External(f"builtins.{name}"))
        # bound elsewhere: by a star import, or in another notebook
        elif name in CUSTOMARY:
            found.append(External(CUSTOMARY[name]))
        return [*found, *self.engine.imports.by_star(scope, name)]

    def variable(self, scope: Scope, name: str, frame: Frame | None = None) -> Answer:
        """What a variable may be, whatever part of its scope runs."""
        bindings = self.engine.bindings_of(scope, name)
        return (yield from self._of_bindings(bindings, scope, name, frame))

    def _of_bindings(
        self, bindings: list[Binding], scope: Scope, name: str, frame: Frame | None
    ) -> Answer:
        found: list[Object] = [*(yield ("seeded", scope, name))]
        for binding in bindings:
            if binding.alias is not None:
                found += yield from self._imported(binding, name)
            elif isinstance(binding.node, ast.arg):
                found += yield from self._parameter(binding, frame)
            else:
                found += yield self.engine.bound(binding, frame)
                if not found and isinstance(binding.node, ast.AnnAssign):
                    found += yield ("declared by", binding.node.annotation)
        if scope.parent is None:
            found += yield from self._in_module(scope, name, bool(bindings))
        return found

    def _in_module(self, scope: Scope, name: str, is_bound: bool) -> Answer:
        """What else a variable of a module may be: by stars, or set from outside."""
        found: list[Object] = [*(yield ("set from outside", scope, name))]
        if is_bound:
            return found
        for node in self.engine.imports.stars_of(scope):
            for module in self.engine.imports.sources(scope.unit, node):
                if module.unit is None or module.unit is scope.unit:
                    continue
                other = self.engine.module(module.unit)
                if name in exported(other):
                    found += yield from self.member(module, name)
            if not self.engine.imports.sources(scope.unit, node):
                members = self.engine.library.members(node.module or "")
                if name in members:
                    found.append(External(f"{node.module}.{name}"))
        return found

    # Parameters

    def _parameter(self, binding: Binding, frame: Frame | None) -> Answer:
        argument = binding.node
        assert isinstance(argument, ast.arg)
        function = self.engine.functions[binding.scope.node]
        declared = function.node.args
        if argument is declared.vararg or argument is declared.kwarg:
            box = Container(argument)
            return [box if frame is None else InFrame(box, frame)]
        index = self._index_of(function.node, argument)
        if frame is not None and frame.owner is not None and index == 0:
            return [frame.owner]
        if frame is None or frame.arguments is None:
            return (yield from self._of_any_call(function, argument, index, frame))
        found: list[Object] = []
        if frame.arguments is not UNKNOWN:
            offset = 0 if frame.owner is None else 1
            found += yield from self._given(argument, index, frame.arguments, offset)
        return found or (yield from self._default(function, argument, frame.around))

    def _of_any_call(
        self,
        function: Function,
        argument: ast.arg,
        index: int | None,
        frame: Frame | None,
    ) -> Answer:
        """What any call gives to a parameter, and its default."""
        around = None if frame is None else frame.around
        found = yield from self._default(function, argument, around)
        itself = yield from self._itself(function, index)
        if itself:
            return found + itself
        for call in (yield ("callers", function.node)):
            assert isinstance(call, Called)
            found += yield from self._given(
                argument, index, call.arguments, call.offset
            )
        if not found:
            found += yield from self._given_by_tests(function, argument, index)
            found += yield from self._set(function, index)
        if not found and argument.annotation is not None:
            found += yield ("declared by", argument.annotation)
        return found

    def _given_by_tests(
        self, function: Function, argument: ast.arg, index: int | None
    ) -> Answer:
        """What a test gets for a parameter: from its table, or the fixture of that name."""
        name = getattr(function.node, "name", "")
        if not (name.startswith("test") or _is_fixture(function)):
            return []
        found: list[Object] = []
        is_method = self.engine.class_of_method(function) is not None
        at = None if index is None else index - is_method
        for decorator in getattr(function.node, "decorator_list", ()):
            for place in _in_table(decorator, argument.arg, at):
                found += yield place
        for fixture in self.engine.index.defined.get(argument.arg, ()):
            if isinstance(fixture, Function) and _is_fixture(fixture):
                place = self.engine.returned(fixture.node, None)
                is_generator = bool(self.engine.yielded(fixture.node))
                found += yield ("each of", place) if is_generator else place
        return found

    def _set(self, function: Function, index: int | None) -> Answer:
        """What a setter gets: what the property is set to."""
        cls = self.engine.class_of_method(function)
        is_setter = "setter" in self.engine.decorators(function.node)
        if cls is None or index != 1 or not is_setter:
            return []
        found: list[Object] = []
        name = getattr(function.node, "name", "")
        for store in self.engine.index.stores.get(name, ()):
            for owner in (yield ("expression", store.owner, None)):
                one = owner.cls if isinstance(owner, Instance | Made) else None
                if one is not None and cls in (yield ("ancestry", one)):
                    found += yield self.engine.bound(store.binding, None)
        return found

    def _itself(self, function: Function, index: int | None) -> Answer:
        """The first parameter of a method: an instance, or the class."""
        cls = self.engine.class_of_method(function)
        if index != 0 or cls is None or isinstance(function.node, ast.Lambda):
            return []
        decorators = self.engine.decorators(function.node)
        if "staticmethod" in decorators:
            return []
        if "classmethod" in decorators or function.node.name == "__new__":
            yield ("callers", function.node)
            return [cls, *(yield ("owners", function.node))]
        heirs = yield ("heirs", cls)
        if function.node.name == "__init_subclass__":
            return [*heirs]
        return [Instance(cls), *(Instance(heir) for heir in heirs)]  # type: ignore[arg-type]

    def _default(
        self, function: Function, argument: ast.arg, around: Frame | None
    ) -> Answer:
        for one, default in parameters(function.node):
            if one is argument and default is not None:
                return [*(yield ("expression", default, around))]
        return []

    @staticmethod
    def _index_of(node: FunctionNode, argument: ast.arg) -> int | None:
        """The position of a parameter; None if it is given by name alone."""
        positional = [*node.args.posonlyargs, *node.args.args]
        return positional.index(argument) if argument in positional else None

    @staticmethod
    def _given(
        argument: ast.arg, index: int | None, call: Arguments, offset: int
    ) -> Answer:
        """What a call gives to a parameter."""
        found: list[Object] = []
        at = None if index is None else index - offset
        for place in call.given(at, argument.arg):
            found += yield place
        return found

    # Imports

    def _imported(self, binding: Binding, name: str) -> Answer:
        alias, node, unit = binding.alias, binding.node, binding.scope.unit
        assert alias is not None
        if isinstance(node, ast.Import):
            return self._module_imported(alias, unit)
        assert isinstance(node, ast.ImportFrom)
        sources = self.engine.imports.sources(unit, node)
        others = self.engine.imports.others(unit, node)
        found: list[Object] = [
            External(f"{name_of(file)}.{alias.name}") for file in others
        ]
        if not (sources or others):
            found.append(
                External(f"{'.' * node.level}{node.module or ''}.{alias.name}")
            )
        for module in sources:
            # from . import module, in the file of the package itself
            is_own = module.unit is unit
            own = self._within(module, alias.name) if is_own else []
            if own:
                found += own
            else:
                found += yield from self.member(module, alias.name)
        return found

    def _module_imported(self, alias: ast.alias, unit: Unit) -> list[Object]:
        paths = self.engine.imports.absolute(unit, alias.name)
        if not paths:
            root = alias.name.partition(".")[0]
            return [External(alias.name if alias.asname else root)]
        # `import package.module` binds the package, with `as` the module
        dropped = 0 if alias.asname else alias.name.count(".")
        found: list[Object] = []
        for path in paths:
            steps = path.split("/")
            found += self.module_at("/".join(steps[: len(steps) - dropped]))
        return found

    def module_at(self, path: str) -> list[Object]:
        found = self.engine.project.at(path)
        if found is not None:
            return [Module(*found)]
        file = self.engine.project.left_out(path)
        return [] if file is None else [External(name_of(file))]

    def module_named(self, name: str, unit: Unit) -> list[Object]:
        """The module of a dotted name."""
        paths = self.engine.imports.absolute(unit, name)
        if not paths:
            return [External(name)]
        found: list[Object] = []
        for path in paths:
            found += self.module_at(path)
        return found

    def member(self, module: Module, name: str) -> Answer:
        """What a module has under a name: a variable, or a module within."""
        found: list[Object] = []
        if module.unit is not None:
            scope = self.engine.module(module.unit)
            found += yield ("variable", scope, name)
            if name not in scope.names and LAZY in scope.names:
                arguments = Arguments(module.unit, scope.node)
                found += yield ("invoked", ("variable", scope, LAZY), arguments)
            found += self.engine.imports.by_star(scope, name)
            # what a package binds itself is not looked for among its modules
            if name in scope.names or not module.directory:
                return found
        if module.directory:
            within = self._within(module, name)
            found += within
            if module.unit is not None and not any(
                isinstance(one, Module) for one in within
            ):
                found += yield from self._made_available(module, name)
        return found

    def _within(self, package: Module, name: str) -> list[Object]:
        """The module of a package that has a name."""
        directory = package.directory
        return self.module_at(f"{directory}/{name}" if directory != "." else name)

    def _made_available(self, package: Module, name: str) -> Answer:
        """A name that a package does not bind may be that of any of its modules.

        A package may give out such names by a `__getattr__` or the like.
        """
        found: list[Object] = []
        for unit in self.engine.project.within(package.directory):
            if name in self.engine.module(unit).names and unit is not package.unit:
                found += yield ("variable", self.engine.module(unit), name)
        return found

    def import_module(self, call: ast.Call, unit: Unit) -> list[Object]:
        """The modules that may be imported by a name."""
        own = PurePosixPath(unit.path).with_suffix("")
        named = named_module(call, ".".join(own.parts))
        if isinstance(named, str):
            return self.module_named(named, unit)
        found: list[Object] = []
        # importlib.import_module(f"package.configs.{name}")
        if named is not ANY:
            modules = self.engine.library.modules
            found += (External(name) for name in modules if named.fullmatch(name))
        units = self.engine.project.matching(named)
        others = self.engine.project.others_matching(named)
        if named is ANY or len(units) + len(others) > MANY:
            units, others = [], ["*.py"]
        for one in units:
            inner = str(PurePosixPath(one.path).parent) if one.is_package else ""
            found.append(Module(one, inner))
        return [*found, *(External(name_of(file)) for file in others)]


def _is_fixture(function: Function) -> bool:
    """Whether a function is a fixture of pytest."""
    return any(
        last_name(one.func if isinstance(one, ast.Call) else one) == "fixture"
        for one in getattr(function.node, "decorator_list", ())
    )


def _in_table(decorator: ast.expr, name: str, index: int | None) -> Iterator[Place]:
    """Where a decorator has what it gives to a parameter of a test."""
    match decorator:
        # @pytest.mark.parametrize("definition, rate", [(optim.Adam(0.1), 0.1)])
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, values, *_]):
            words = [
                word.strip()
                for one in ast.walk(names)
                if isinstance(one, ast.Constant)
                for word in str(one.value).split(",")
            ]
            rows = ("each of", ("expression", values, None))
            if words == [name]:
                yield rows
            elif name in words:
                yield ("item of", rows, words.index(name))
        # @parameterized.parameters((optim.Adam(0.1), 0.1)), or rows that begin with a name
        case ast.Call(
            func=ast.Attribute(attr="parameters" | "named_parameters" as kind),
            args=written,
        ):
            for row in written:
                place = ("expression", row, None)
                yield ("item of", place, name)
                if index is not None:
                    yield ("item of", place, index + (kind == "named_parameters"))
                if index == 0 and not isinstance(row, ast.Tuple | ast.List | ast.Dict):
                    yield place
