"""The effects of each evaluation, and of calls of functions in view."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.dataflow import pure
from codemods.dataflow.definitions import Definitions, names_set
from codemods.dataflow.effects import Cell, Effects, Field, Variable
from codemods.dataflow.kinds import Kinds
from codemods.dataflow.order import FunctionNode, Owner
from codemods.dataflow.program import Program, behind, functions_in, is_any
from codemods.flow.binding import values_of
from codemods.flow.objects import (
    Class,
    Container,
    External,
    Instance,
    Method,
    Module,
    Object,
    Record,
    Result,
    Thing,
)
from codemods.flow.scopes import Comprehension
from codemods.sources.modules import Unit

STATES = (Instance, Container, Class)
PLAIN_SPECIALS = (
    "__init__",
    "__post_init__",
    "__repr__",
    "__call__",
    "__enter__",
    "__exit__",
    "__iter__",
    "__next__",
)
FROZEN = (
    "flax.struct.dataclass",
    "flax.struct.PyTreeNode",
    "typing.NamedTuple",
    "collections.namedtuple",
    "enum.Enum",
)
BASES = (*FROZEN, "builtins.object", "typing.Generic", "typing.Protocol", "abc.ABC")
LISTED = ("dataclasses.dataclass", *FROZEN)


class Evaluations:
    """Finds the effects of evaluations; each is looked at once."""

    def __init__(self, program: Program, definitions: Definitions) -> None:
        self.program = program
        self.kinds = Kinds(program, definitions)
        self._own: dict[ast.AST, Effects] = {}
        self._bodies: dict[Owner, Effects] = {}
        self._summaries: dict[FunctionNode, Effects] = {}
        self._called: dict[Owner, dict[FunctionNode, None]] = {}

    # Several evaluations

    def whole(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of all that is evaluated within a node, calls included, on what is not its own.

        Those of a definition are none of what it defines.
        """
        found = Effects()
        for inner in evaluated(node):
            found.add(self.at(unit, inner))
        return found.outside(node)

    def at(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of an evaluation, with those of the functions in view that it calls."""
        found = Effects()
        found.add(self.own(unit, node))
        for function in self.called(node):
            found.add(self.summary(function))
        return found

    def called(self, node: ast.AST) -> Iterable[FunctionNode]:
        """The functions in view that an evaluation calls."""
        if isinstance(node, ast.Call):
            given = () if self._is_wrapping(node) else values_of(node)
            handed = [found for one in given for found in self._functions(one)]
            return dict.fromkeys(
                (*self.program.callees.get(node, ()), *self._functions(node.func), *handed)
            )
        if isinstance(node, ast.Attribute):
            return [
                found
                for item in self.program.objects(node.value)
                for found in self._getters(item, node.attr)
            ]
        return self.program.callees.get(node, ())

    def _functions(self, node: ast.expr) -> list[FunctionNode]:
        return [function.node for function in functions_in(self.program.objects(node))]

    def _is_wrapping(self, call: ast.Call) -> bool:
        """Whether a call does not call the functions that it is given there and then, unless the calls in view say so."""
        name = self.program.full_name(call.func)
        return bool(name) and (
            name not in pure.ITERATING and pure.is_pure(name) and not name.startswith("builtins.")
        )

    def summary(self, function: FunctionNode) -> Effects:
        """The effects of a call of a function, on what is not its own."""
        if function not in self._summaries:
            self._summaries[function] = self.of_all([function]).outside(function)
        return self._summaries[function]

    def of_all(self, functions: Iterable[FunctionNode]) -> Effects:
        """The effects of calls of functions, and of those that these call, on what is not their own."""
        reached = dict.fromkeys(functions)
        found = Effects()
        pending = [*reached]
        while pending:
            current = pending.pop()
            found.add(self._body(current).outside(current))
            for other in self._called_in(current):
                if other not in reached:
                    reached[other] = None
                    pending.append(other)
        return found

    def _body(self, owner: Owner) -> Effects:
        """The effects of all evaluations of an owner itself."""
        if owner not in self._bodies:
            found, unit = Effects(), self.program.unit_of(owner)
            for node in self.program.order(owner).nodes[2:]:
                found.add(self.own(unit, node))
            self._bodies[owner] = found
        return self._bodies[owner]

    def _called_in(self, owner: Owner) -> Iterable[FunctionNode]:
        if owner not in self._called:
            nodes = self.program.order(owner).nodes[2:]
            self._called[owner] = dict.fromkeys(
                function for node in nodes for function in self.called(node)
            )
        return self._called[owner]

    # One evaluation

    def own(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of an evaluation itself, without those of the functions in view that it calls."""
        if node not in self._own:
            self._own[node] = Effects()  # what asks for itself again adds nothing
            self._own[node] = self._of(unit, node)
        return self._own[node]

    def _of(self, unit: Unit, node: ast.AST) -> Effects:
        match node:
            case ast.Name():
                return self._name(unit, node)
            case ast.Attribute():
                return self._attribute(unit, node)
            case ast.Subscript(value=value, slice=key):
                return self._element(value, _constant(key), node)
            case ast.Call():
                return self._call(node)
            case ast.For(iter=source) | ast.AsyncFor(iter=source) | ast.comprehension(iter=source):
                return self._taken(source)
            case ast.Starred(value=source, ctx=ast.Load()):
                return self._taken(source)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                return Effects(
                    acts=any(self._is_special(child) for child in ast.iter_child_nodes(node))
                )
            case (
                ast.Await()
                | ast.Yield()
                | ast.YieldFrom()
                | ast.withitem()
                | ast.With()
                | ast.AsyncWith()
            ):
                return Effects(acts=True)
            case _:
                return self._binding(unit, node)

    def _binding(self, unit: Unit, node: ast.AST) -> Effects:
        """What binds a name in another way than by assignment."""
        aliases = node.names if isinstance(node, ast.Import | ast.ImportFrom) else ()
        names = [name for one in (node, *aliases) for name in names_set(one)]
        acts = any(self.is_unknown_decorator(one) for one in getattr(node, "decorator_list", ()))
        around = self.program.scope(unit, node) if names else self.program.flow.modules[unit]
        return Effects(
            writes={Variable(around.binding(name) or around, name) for name in names}, acts=acts
        )

    def _name(self, unit: Unit, node: ast.Name) -> Effects:
        scope = self.program.scope(unit, node)
        while (
            isinstance(node.ctx, ast.Store)
            and isinstance(scope.node, Comprehension)
            and scope.parent is not None
        ):
            if node.id in scope.names:
                break
            scope = scope.parent
        bound = scope.binding(node.id)
        if bound is None:
            return Effects()
        cell = Variable(bound, node.id)
        if isinstance(node.ctx, ast.Load):
            return Effects(reads={cell})
        if not isinstance(unit.parents.get(node), ast.AugAssign):
            return Effects(writes={cell})
        changed = self._states(self.program.objects_at(bound, node.id))
        return Effects({cell}, {cell, Field(None, changed)} if changed else {cell})

    def _attribute(self, unit: Unit, node: ast.Attribute) -> Effects:
        items = self.program.objects(node.value)
        parent = unit.parents.get(node)
        is_method = isinstance(parent, ast.Call) and parent.func is node
        if isinstance(node.ctx, ast.Load):
            if is_method or self._is_fixed(node, items):
                return Effects()
            if node.attr == "__dict__":
                return Effects(acts=True)
            return Effects(reads=self._fields(items, node.attr))
        acts = any(self._sets_specially(item, node.attr) for item in items)
        return Effects(writes=self._fields(items, node.attr), acts=acts)

    def _is_fixed(self, node: ast.Attribute, items: tuple[Object, ...]) -> bool:
        """Whether an attribute is never set to something else."""
        name = self.program.full_name(node)
        if name:
            return pure.is_constant(name)
        return bool(items) and all(
            isinstance(item, Thing | Result)
            or (isinstance(item, Instance) and self._is_frozen(item.cls))
            for item in items
        )

    def _is_frozen(self, cls: Class) -> bool:
        """Whether the instances of a class cannot be changed."""
        if any(
            isinstance(item, External) and item.name in FROZEN
            for item in self.program.flow.ancestry(cls)
        ):
            return True
        for decorator in cls.node.decorator_list:
            name = self.program.full_name(_called(decorator))
            words = decorator.keywords if isinstance(decorator, ast.Call) else []
            frozen = any(
                word.arg == "frozen" and ast.unparse(word.value) == "True" for word in words
            )
            if name in FROZEN or (name == "dataclasses.dataclass" and frozen):
                return True
        return False

    def _fields(self, items: Iterable[Object], name: object) -> set[Cell]:
        """The cells for an attribute or element of some objects; the variables of modules are such."""
        found: set[Cell] = set()
        owners: set[Object] = set()
        for item in items:
            if not isinstance(item, Module):
                owners.add(item)
            elif item.unit is not None:
                found.add(Variable(self.program.flow.modules[item.unit], str(name)))
        if owners or not found:
            found.add(Field(name, self._states(owners)))
        return found

    @staticmethod
    def _states(items: Iterable[Object]) -> frozenset[Object]:
        """The objects, if it is known of all what they are."""
        found = frozenset(items)
        known = all(isinstance(item, STATES) and not is_any(item) for item in found)
        return found if known else frozenset()

    def _element(self, value: ast.expr, name: object, node: ast.Subscript) -> Effects:
        if self.program.full_name(value):
            return Effects()  # a type, such as `typing.List[int]`
        fields = self._fields(self.program.objects(value), name)
        if not isinstance(node.ctx, ast.Load):
            return Effects(writes=fields, acts=self._is_special(value))
        return (
            Effects()
            if self.kinds.is_immutable(value)
            else Effects(reads=fields, acts=self._is_special(value))
        )

    def _taken(self, source: ast.expr) -> Effects:
        """The effects of taking elements, which uses up what is no container."""
        owners = self._states(self.program.objects(source))
        reads: set[Cell] = {Field(None, owners)} if owners else set()
        return Effects(reads) if self.kinds.is_again(source) else Effects(acts=True)

    # Classes of the project

    def _is_special(self, node: ast.AST) -> bool:
        """Whether an expression may be of a class of the project that says itself what operators do."""
        return any(
            any(
                name.startswith("__") and name not in PLAIN_SPECIALS
                for name in self.program.members(item.cls)
            )
            for item in self.program.objects(node)
            if isinstance(item, Instance)
        )

    def _sets_specially(self, item: Object, name: str) -> bool:
        members = self.program.members(item.cls) if isinstance(item, Instance) else {}
        return "__setattr__" in members or name in members

    def _getters(self, item: Object, name: str) -> Iterator[FunctionNode]:
        """The functions that are called where an attribute is read."""
        members = self.program.members(item.cls) if isinstance(item, Instance) else {}
        for function in (
            *members.get(name, ()),
            *members.get("__getattribute__", ()),
            *members.get("__getattr__", ()),
        ):
            if function.node.decorator_list or function.node.name.startswith("__get"):
                yield function.node

    def is_unknown_decorator(self, node: ast.expr) -> bool:
        """Whether nothing is known of what a decorator does with its function."""
        if self.program.callees.get(node):
            return False
        name = self.program.full_name(_called(node))
        return not (pure.is_pure(name) or self.program.flow.library.function(name) is not None)

    # Calls

    def _call(self, node: ast.Call) -> Effects:
        """A call without what functions in view do."""
        name = self.program.full_name(node.func)
        match name, node.args:
            case "builtins.getattr", [owner, key, *_]:
                return Effects(reads=self._fields(self.program.objects(owner), _constant(key)))
            case "builtins.setattr", [owner, key, _]:
                return Effects(writes=self._fields(self.program.objects(owner), _constant(key)))
            case "builtins.next" | "builtins.iter", _:
                return Effects(acts=True)
        found = Effects()
        items = self.program.objects(node.func)
        known = [
            item for item in items if not is_any(item.owner if isinstance(item, Method) else item)
        ]
        for item in known:
            found.add(self._callee(item, node))
        if not items or len(known) < len(items):
            found.add(self._external(name, node) if name else self._method(node))
        for argument in values_of(node):
            owners = self._states(self.program.objects(argument))
            if owners:
                found.reads.add(Field(None, owners))
        return found

    def _callee(self, item: Object, node: ast.Call) -> Effects:
        match inner := behind(item):
            case External(name=name):
                return self._external(name, node)
            case Method(function=None, owner=owner, name=name):
                return self._method_of(owner, name)
            case Class():
                return Effects(acts=not self._is_plain(inner))
            case Instance():
                return Effects(acts="__call__" not in self.program.members(inner.cls))
            case Result(name=name):
                return Effects(acts=not pure.is_pure(name))
            case Record() | Thing():
                return Effects()
        return Effects(acts=not list(functions_in([inner])))

    def _is_plain(self, cls: Class) -> bool:
        """Whether making an instance of a class does no more than its functions in view do."""
        outside = [
            item.name for item in self.program.flow.ancestry(cls) if isinstance(item, External)
        ]
        names = [self.program.full_name(_called(one)) for one in cls.node.decorator_list]
        known = all(name in BASES or name.startswith("flax.optim.") for name in outside)
        is_made_so = {"__new__", "__post_init__", "__setattr__"}.isdisjoint(
            self.program.members(cls)
        )
        return (
            known and all(name in LISTED for name in names) and not cls.node.keywords and is_made_so
        )

    def _external(self, name: str, node: ast.Call) -> Effects:
        if name.startswith(pure.LOGGING):
            return Effects()
        given = values_of(node)
        if name in pure.CALLING:
            known = all(self._is_known_function(one) for one in node.args[:1])
            again = all(self.kinds.is_again(one) for one in node.args[1:] if name in pure.ITERATING)
            return Effects(acts=not (known and again))
        if name.startswith(pure.OUTSIDE) and not pure.is_pure(name):
            held = {owner for one in given for owner in self._states(self.program.objects(one))}
            return Effects(writes={Field(None, frozenset((owner,))) for owner in held}, world=True)
        if not pure.is_pure(name):
            return Effects(acts=True)
        several = name in ("builtins.max", "builtins.min") and len(node.args) > 1
        if (
            name in pure.ITERATING
            and not several
            and any(not self.kinds.is_again(one) for one in node.args)
        ):
            return Effects(acts=True)
        looked_into = name in pure.LOOKING_IN and not several
        return Effects(
            reads={
                Field(None, self._states(self.program.objects(one))) for one in given if looked_into
            }
        )

    def _is_known_function(self, node: ast.expr) -> bool:
        """Whether a function that is called is in view, or changes nothing."""
        items = self.program.objects(node)
        name = self.program.full_name(node)
        return (bool(items) and len(list(functions_in(items))) == len(items)) or pure.is_pure(name)

    def _method(self, node: ast.Call) -> Effects:
        """A call of a method of which points-to knows nothing."""
        if not isinstance(node.func, ast.Attribute):
            return Effects(acts=not self.kinds.is_schedule(node.func))
        return Effects(acts=not self.kinds.has_method(node.func.value, node.func.attr))

    def _method_of(self, owner: Object, name: str) -> Effects:
        if isinstance(owner, Thing):
            return Effects(reads={Field(None)})
        cells: set[Cell] = {Field(None, frozenset((owner,)))}
        if isinstance(owner, Container):
            return Effects(reads=cells) if name in pure.CONTAINER_READING else Effects(writes=cells)
        is_copy = isinstance(owner, Instance) and name in ("replace", "_replace")
        return Effects(reads=cells) if is_copy else Effects(acts=True)


def _constant(node: ast.expr) -> object:
    """The value of a constant; None for all else."""
    return node.value if isinstance(node, ast.Constant) else None


def _called(decorator: ast.expr) -> ast.expr:
    """What a decorator is or, if it is given arguments, what it calls."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated within a node, when it is: not the body of a function."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, ast.Lambda):
            pending += [
                *current.args.defaults,
                *(one for one in current.args.kw_defaults if one is not None),
            ]
        elif isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [*current.decorator_list, *current.args.defaults]
        else:
            pending += ast.iter_child_nodes(current)
