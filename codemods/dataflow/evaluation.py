"""The effects of each evaluation, and of calls of functions in view."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.dataflow import pure
from codemods.dataflow.definitions import Definitions
from codemods.dataflow.effects import Cell, Effects, Field, Variable
from codemods.dataflow.kinds import Kinds
from codemods.dataflow.program import Members, Program, behind, functions_in, states_of
from codemods.inference.binding import values_of
from codemods.inference.control_flow import EXIT
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Instance,
    LegacyObject,
    Method,
    Module,
    Object,
    Record,
    Result,
)
from codemods.inference.reading import FunctionNode
from codemods.sources.bindings import bound_by
from codemods.sources.modules import Unit
from codemods.vocabulary import full_names, words

PLAIN_SPECIALS = frozenset(
    words(
        "__init__ __post_init__ __repr__ __call__ __enter__ __exit__ __iter__ __next__"
    )
)
BASES = full_names("typing", "Generic Protocol NamedTuple") | {
    "abc.ABC",
    "builtins.object",
    "collections.namedtuple",
    "enum.Enum",
    "flax.struct.PyTreeNode",
}

Body = tuple[Effects, dict[FunctionNode, None]]
"""The effects of a function's own evaluations, and the functions in view that these call."""


class Evaluations:
    """Finds the effects of evaluations; each is looked at once."""

    def __init__(self, program: Program, definitions: Definitions) -> None:
        self.program = program
        self.flow = program.flow
        self.kinds = Kinds(program, definitions)
        self._own: dict[ast.AST, Effects] = {}
        self._bodies: dict[FunctionNode, Body] = {}
        self._summaries: dict[FunctionNode, Effects] = {}

    # Several evaluations

    def whole(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of all that is evaluated within a node, calls included.

        Those on variables of its own are left out. What a function does is no effect of its
        definition.
        """
        found = Effects()
        for inner in evaluated(node):
            found.add(self.at(unit, inner))
        return found.outside(node)

    def at(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of an evaluation, with those of the functions in view that it calls."""
        found = Effects()
        found.add(self.own(unit, node))
        for function in self._called(node):
            found.add(self.summary(function))
        return found

    def _called(self, node: ast.AST) -> Iterable[FunctionNode]:
        """The functions in view that an evaluation calls."""
        if isinstance(node, ast.Call):
            found = dict.fromkeys(self.program.callees(node))
            # A function that is an argument may be called, too.
            arguments = [] if self._is_wrapping(node) else values_of(node)
            for called in (node.func, *arguments):
                items = self.program.objects(called)
                found |= dict.fromkeys(one.node for one in functions_in(items))
                # plateau(loss), an instance
                for item in items:
                    members = self._members(behind(item))
                    found |= dict.fromkeys(members.get("__call__", ()))
            return found
        if isinstance(node, ast.Attribute):
            owners = self.program.objects(node.value)
            return [one for item in owners for one in self._getters(item, node.attr)]
        return self.program.callees(node)

    def _is_wrapping(self, call: ast.Call) -> bool:
        """Whether a call only wraps its functions, as `jax.jit(step)` does, and calls none yet.

        The call graph has those that it does call.
        """
        name = self.program.full_name(call.func)
        # jax.tree_util.tree_map(halve, params)
        calls = name in pure.ITERATING or name in pure.CALLING
        return not calls and not name.startswith("builtins.") and pure.is_pure(name)

    def summary(self, function: FunctionNode) -> Effects:
        """The effects of a call of a function, on what is not its own."""
        if function not in self._summaries:
            found = self.of_all([function])
            self._summaries[function] = found.outside(function)
        return self._summaries[function]

    def of_all(self, functions: Iterable[FunctionNode]) -> Effects:
        """The effects of calls of functions, and of those they call, on what is not their own."""
        reached = dict.fromkeys(functions)
        found = Effects()
        pending = [*reached]
        while pending:
            current = pending.pop()
            effects, called = self._body(current)
            found.add(effects)
            pending += called.keys() - reached.keys()
            reached |= called
        return found

    def _body(self, function: FunctionNode) -> Body:
        if function not in self._bodies:
            unit = self.program.unit_of(function)
            found = Effects()
            called: dict[FunctionNode, None] = {}
            # The first two stand for the beginning and the end.
            for node in self.program.order(function).nodes[EXIT + 1 :]:
                found.add(self.own(unit, node))
                called.update(dict.fromkeys(self._called(node)))
            self._bodies[function] = found.outside(function), called
        return self._bodies[function]

    # One evaluation

    def own(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of an evaluation itself, without those of the functions that it calls."""
        if node not in self._own:
            # While it is being found out: what depends on itself adds nothing.
            self._own[node] = Effects()
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
            case (
                ast.For(iter=source)
                | ast.AsyncFor(iter=source)
                | ast.comprehension(iter=source)
            ):
                return self._taken(source)
            # f(*values), but not `first, *rest = values`
            case ast.Starred(value=source, ctx=ast.Load()):
                return self._taken(source)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                return Effects(
                    acts=any(map(self._is_special, ast.iter_child_nodes(node)))
                )
            # Whoever takes the next element may be out of view.
            case ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value):
                return Effects(acts=True, handed={value})
            case (
                ast.Await()
                | ast.Yield()
                | ast.withitem()
                | ast.With()
                | ast.AsyncWith()
            ):
                return Effects(acts=True)
            case _:
                return self._binding(unit, node)

    def _binding(self, unit: Unit, node: ast.AST) -> Effects:
        """The effects of what binds a name in another way than by assignment."""
        decorators = getattr(node, "decorator_list", ())
        found = Effects(acts=any(map(self.is_unknown_decorator, decorators)))
        if found.acts:
            found.handed.add(node)
        for name, declared, _ in bound_by(node):
            if not declared:
                around = self.program.scope(unit, node)
                scope = around.binding(name) or around
                found.writes.add(Variable(scope, name))
        return found

    def _name(self, unit: Unit, node: ast.Name) -> Effects:
        bound = self.program.scope(unit, node).binding(node.id)
        if bound is None:
            return Effects()
        cell = Variable(bound, node.id)
        if isinstance(node.ctx, ast.Load):
            return Effects(reads={cell})
        parent = unit.parents.get(node)
        if not isinstance(parent, ast.AugAssign):
            return Effects(writes={cell})
        found = Effects({cell}, {cell})
        # losses += [loss]: the list itself is changed.
        changed = states_of(self.program.objects_at(bound, node.id))
        if changed:
            found.writes.add(Field(None, changed))
        return found

    def _attribute(self, unit: Unit, node: ast.Attribute) -> Effects:
        items = self.program.objects(node.value)
        parent = unit.parents.get(node)
        is_method = isinstance(parent, ast.Call) and parent.func is node
        if isinstance(node.ctx, ast.Load):
            # The call of `optimizer.apply_gradient(…)` has the effects, not the look-up.
            if is_method or self._is_fixed(node, items):
                return Effects()
            if node.attr == "__dict__":
                return Effects(acts=True, handed={node.value})
            fields = self._fields(items, node.attr)
            return Effects(reads=fields, through={node.value})
        fields = self._fields(items, node.attr)
        setters = {"__setattr__", node.attr}
        acts = any(not setters.isdisjoint(self._members(item)) for item in items)
        return Effects(writes=fields, acts=acts)

    def _is_fixed(self, node: ast.Attribute, items: tuple[Object, ...]) -> bool:
        """Whether an attribute is never set to something else."""
        name = self.program.full_name(node)
        return (
            pure.is_constant(name)
            if name
            else bool(items)
            and all(isinstance(item, LegacyObject | Result) for item in items)
        )

    def _fields(self, items: Iterable[Object], name: object) -> set[Cell]:
        """The cells for an attribute or element of some objects.

        The attributes of a module are its variables.
        """
        found: set[Cell] = set()
        owners: set[Object] = set()
        for item in items:
            if not isinstance(item, Module):
                owners.add(item)
            elif item.unit is not None:
                scope = self.flow.modules[item.unit]
                found.add(Variable(scope, str(name)))
        # Of no objects, it may be a field of any.
        if owners or not found:
            found.add(Field(name, states_of(owners)))
        return found

    def _element(self, value: ast.expr, name: object, node: ast.Subscript) -> Effects:
        # typing.List[int]
        if self.program.full_name(value):
            return Effects()
        items = self.program.objects(value)
        fields = self._fields(items, name)
        if not isinstance(node.ctx, ast.Load):
            # config[name] = rate
            handed: set[ast.AST] = {value} if name is None else set()
            return Effects(writes=fields, acts=self._is_special(value), handed=handed)
        if self.kinds.is_immutable(value):
            return Effects()
        return Effects(fields, acts=self._is_special(value), through={value})

    def _taken(self, source: ast.expr) -> Effects:
        """The effects of taking elements, which uses an iterator up."""
        if not self.kinds.is_again(source):
            return Effects(acts=True, handed={source})
        owners = self.program.states(source)
        return Effects({Field(None, owners)}) if owners else Effects()

    # Classes of the project

    def _members(self, item: Object) -> Members:
        """The functions that the class of an instance defines; none for other objects."""
        return self.program.members(item.cls) if isinstance(item, Instance) else {}

    def _is_special(self, node: ast.AST) -> bool:
        """Whether an expression may be of a class of the project that defines operators."""
        members = map(self._members, self.program.objects(node))
        names = {name for found in members for name in found if name.startswith("__")}
        return not names <= PLAIN_SPECIALS

    def _getters(self, item: Object, name: str) -> Iterator[FunctionNode]:
        """The functions that are called where an attribute is read."""
        for member in (name, "__getattribute__", "__getattr__"):
            for function in self._members(item).get(member, ()):
                # A decorator may be `@property`; a plain method is only looked up.
                if function.decorator_list or function.name.startswith("__get"):
                    yield function

    def is_unknown_decorator(self, node: ast.expr) -> bool:
        """Whether nothing is known of what a decorator does with its function."""
        # `dataclass` of `@dataclass` and of `@dataclass(frozen=True)`
        called = node.func if isinstance(node, ast.Call) else node
        name = self.program.full_name(called)
        return not (
            self.program.callees(node)
            or pure.is_pure(name)
            or self.flow.library.function(name) is not None
        )

    # Calls

    def _call(self, node: ast.Call) -> Effects:
        """The effects of a call without those of the functions in view that it calls."""
        name = self.program.full_name(node.func)
        match name, node.args:
            case "builtins.getattr", [owner, key, *_]:
                items = self.program.objects(owner)
                return Effects(reads=self._fields(items, _constant(key)))
            case "builtins.setattr", [owner, key, _]:
                items = self.program.objects(owner)
                # setattr(config, name, rate)
                word = _constant(key)
                handed: set[ast.AST] = {owner} if word is None else set()
                return Effects(writes=self._fields(items, word), handed=handed)
            # an iterator goes on
            case "builtins.next" | "builtins.iter", [iterator, *_]:
                return Effects(acts=True, handed={iterator})
        found = Effects()
        items = self.program.objects(node.func)
        for item in items:
            found.add(self._callee(item, node))
        # Something out of view may be called: its name has to tell, or the kind of its owner.
        if not items or self.flow.may_be_unknown(self.flow.places.get(node.func)):
            found.add(self._external(name, node) if name else self._method(node))
        # Whatever is called may read what it is given.
        for argument in values_of(node):
            owners = self.program.states(argument)
            if owners:
                found.reads.add(Field(None, owners))
        if found.acts:
            self._hand_over(node, found)
        return found

    def _hand_over(self, node: ast.Call, found: Effects) -> None:
        """Add what a call gives to a function out of view, and the owner of its method."""
        found.handed |= given(node)
        # config.update(rate=0.1), but not self.schedule(step), of which the class is in view
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            items = self.program.objects(owner)
            if not items or any(map(self._has_methods_out_of_view, items)):
                found.handed.add(owner)

    def _has_methods_out_of_view(self, owner: Object) -> bool:
        # losses = collections.deque()
        if not isinstance(owner, Instance):
            return isinstance(owner, Result)
        ancestry = self.flow.ancestry(owner.cls)
        return not all(isinstance(base, Class) for base in ancestry)

    def _callee(self, item: Object, node: ast.Call) -> Effects:
        match inner := behind(item):
            case External(name=name):
                return self._external(name, node)
            # losses.append(loss)
            case Method(function=None, owner=owner, name=name):
                return self._method_of(owner, name)
            # TrainState(step, optimizer)
            case Class():
                return Effects(acts=not self._is_plain(inner))
            # model(inputs), where the class of the model may have a base that is out of view
            case Instance():
                return Effects(acts="__call__" not in self._members(inner))
            case Result(name=name):
                return Effects(acts=not pure.is_pure(name))
            case Record() | LegacyObject():
                return Effects()
        return Effects(acts=not any(functions_in([inner])))

    def _is_plain(self, cls: Class) -> bool:
        """Whether making an instance of a class does no more than its functions in view do."""
        for base in self.flow.ancestry(cls):
            name = base.name if isinstance(base, External) else "builtins.object"
            if name not in BASES and not name.startswith("flax.optim."):
                return False
        # class Model(metaclass=Meta)
        if cls.node.keywords:
            return False
        members = self.program.members(cls)
        return members.keys().isdisjoint(("__new__", "__post_init__", "__setattr__"))

    def _external(self, name: str, node: ast.Call) -> Effects:
        """The effects of a call of a function that is not in view, by its name."""
        if name.startswith(pure.LOGGING):
            return Effects()
        if name in pure.CALLING:
            return Effects(acts=not self._calls_only(name, node))
        if name.startswith(pure.OUTSIDE) and not pure.is_pure(name):
            return self._outside(node)
        if not pure.is_pure(name):
            return Effects(acts=True)
        # max(a, b) compares its arguments, max(xs) takes elements.
        if name in ("builtins.max", "builtins.min") and len(node.args) > 1:
            return Effects()
        # sum(losses) may use an iterator up.
        if name in pure.ITERATING and not all(map(self.kinds.is_again, node.args)):
            return Effects(acts=True)
        found = Effects()
        if name in pure.LOOKING_IN:
            for argument in values_of(node):
                found.reads.add(Field(None, self.program.states(argument)))
        return found

    def _calls_only(self, name: str, node: ast.Call) -> bool:
        """Whether a call such as `jax.lax.scan(step, …)` does no more than its function in view."""
        for called in node.args[:1]:
            items = self.program.objects(called)
            is_in_view = bool(items) and len([*functions_in(items)]) == len(items)
            if not is_in_view and not pure.is_pure(self.program.full_name(called)):
                return False
        # map(scale, batches) takes elements; jax.tree_map(scale, params) does not
        return name not in pure.ITERATING or all(
            map(self.kinds.is_again, node.args[1:])
        )

    def _outside(self, node: ast.Call) -> Effects:
        """The effects of a call that changes its arguments and the world outside alone."""
        found = Effects(world=True)
        for argument in values_of(node):
            for owner in self.program.states(argument):
                found.writes.add(Field(None, frozenset((owner,))))
        return found

    def _method(self, node: ast.Call) -> Effects:
        """The effects of a call of a method, if the points-to set of its receiver is unknown."""
        function = node.func
        match function, node.args:
            # config.get("warmup", 0)
            case ast.Attribute(value=owner, attr="get"), [
                ast.Constant(value=str() as key),
                *_,
            ]:
                return Effects(reads={Field(key)}, through={owner})
        # array.sum(), but not schedule(step)
        is_known = isinstance(function, ast.Attribute) and self.kinds.has_method(
            function.value, function.attr
        )
        return Effects(acts=not is_known)

    def _method_of(self, owner: Object, name: str) -> Effects:
        # optimizer.apply_gradient(grads) gives a new optimizer, and changes none.
        if isinstance(owner, LegacyObject):
            return Effects(reads={Field(None)})
        cells: set[Cell] = {Field(None, frozenset((owner,)))}
        if isinstance(owner, Container) and name not in pure.CONTAINER_READING:
            return Effects(writes=cells)
        # state.replace(step=0), of a dataclass or a named tuple
        is_copied = isinstance(owner, Instance) and name in ("replace", "_replace")
        if is_copied or isinstance(owner, Container):
            return Effects(reads=cells)
        return Effects(acts=True)


def _constant(node: ast.expr) -> object:
    """The value of a constant; None for all else."""
    return node.value if isinstance(node, ast.Constant) else None


def given(call: ast.Call) -> set[ast.AST]:
    """What a call gives to its function."""
    values = values_of(call)
    return {one.value if isinstance(one, ast.Starred) else one for one in values}


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated within a node, when it is: not the body of a function."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, ast.Lambda):
            pending += current.args.defaults
            pending += [one for one in current.args.kw_defaults if one is not None]
        elif isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [*current.decorator_list, *current.args.defaults]
        else:
            pending += ast.iter_child_nodes(current)
