"""What an object of unknown origin may be: an optimizer that escaped may come back anywhere.

The analysis follows objects as far as code is in view. Where one gets out of view it escapes; of an
object that comes from there nothing is known. If it is used as only a legacy object can be, it
belongs to those that have escaped in the same program.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from codemods.analysis.members import tells
from codemods.analysis.queries import Queries
from codemods.flow.carriers import Token
from codemods.flow.derived import Escape
from codemods.flow.holders import unwrapped
from codemods.flow.objects import (
    Class,
    Container,
    Derived,
    External,
    Function,
    Instance,
    LegacyObject,
    Object,
    Place,
    Result,
)
from codemods.flow.out_of_view import effect_of, is_number, is_well_known
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit
from codemods.sources.prefilter import uses_jax

PURPOSES = {
    "apply_gradient": "optimizer",
    "optimize": "optimizer",
    "create": "definition",
}
"""The methods for which objects of a kind are made."""


class ClosedWorld:
    """Connects the objects that escape with those that come from out of view."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.flow = facts.flow

    def sources(self, unit: Unit, node: ast.expr) -> dict[LegacyObject, Escape | None]:
        """The objects that an expression of unknown origin may hold, with their escapes.

        Even if all of a program are accounted for, it may be one of them in a file that uses JAX.
        """
        sources = [
            item.source
            for item in self.facts.objects(node)
            if isinstance(item, Derived)
        ]
        derived = [obj for obj in sources if obj.kind in ("definition", "optimizer")]
        if derived:
            return {obj: self.flow.derivation.escapes.get(obj) for obj in derived}
        runs_text = unit in self.facts.running_text  # which may assign any variable
        if not runs_text and self.is_something_else(node):
            return {}
        made = self._made_with(unit)
        escaped = [obj for obj in made if obj in self.escapes]
        if not runs_text and self.comes_from_callers(node):
            return {obj: self.escapes[obj] for obj in escaped}
        unaccounted = [obj for obj in made if obj in self.unaccounted]
        if not unaccounted and not uses_jax(unit.code.encode()):
            return {}
        # a lost definition says nothing of optimizers, where none is lost
        kinds = {obj.kind for obj in unaccounted}
        candidates = [
            obj for obj in made if obj in unaccounted or obj.kind not in kinds
        ]
        return {obj: self.escapes.get(obj) for obj in candidates}

    @cached_property
    def unaccounted(self) -> dict[LegacyObject, None]:
        """What may come back anywhere in the project.

        It escapes, or is not seen to be used for its purpose. What is only returned by a function
        that nothing in view names gets to its callers, and does not come back by itself.
        """
        returned = {
            obj for function in self.outermost for obj in self._returned(function)
        }
        accounted_for = (self.put_to_use | returned) - self._escaped_elsewhere.keys()
        return {obj: None for obj in self._made if obj not in accounted_for}

    @cached_property
    def outermost(self) -> list[Function]:
        """The functions that nothing in view calls or names.

        So are the methods of classes of which nothing in view makes an instance.
        """
        return [
            function
            for function in self.flow.reading.functions
            if isinstance(function.node, ast.FunctionDef)
            and not self.flow.entered[function.node]
            and not self._may_be_called(function)
        ]

    def _may_be_called(self, function: Function) -> bool:
        around = None if function.scope.parent is None else function.scope.parent.node
        if isinstance(around, ast.ClassDef) and around not in self._constructed:
            return False
        return isinstance(function.node, ast.FunctionDef) and self._is_named(
            function.node
        )

    @cached_property
    def _constructed(self) -> set[ast.ClassDef]:
        """The classes of which a call in view makes an instance, and their bases."""
        made = (
            item
            for _, call in self.flow.reading.calls
            for item in self.facts.objects(call)
        )
        classes = {item.cls for item in made if isinstance(item, Instance)}
        found = (base for cls in classes for base in self.flow.ancestry(cls))
        return {base.node for base in found if isinstance(base, Class)}

    def _made_with(self, unit: Unit) -> list[LegacyObject]:
        """The optimizers and definitions that calls in a file's programs make."""
        program = self.facts.together(unit)
        return [obj for obj in self._made if obj.unit.path in program]

    def may_be_unseen(self, node: ast.expr) -> bool:
        """Whether an object may come from a package out of view that was given no legacy one."""
        place = self.flow.places[node]
        if place in self._from_mixed_calls:
            return True
        return any(map(self._is_unseen, self.flow.derivation.roots.of(place)))

    def _is_unseen(self, root: Place) -> bool:
        items = self.flow.solver.at(root)
        # what is given an optimizer may give that back, and `create` is asked by itself
        if any(isinstance(item, Derived) or _is_optimizer(item) for item in items):
            return False
        # Own(rate), or `TABLE[name](rate)` of a table that has `Own` among others
        return (
            self._calls_unseen(root) if isinstance(root, ast.Call) else _unknown(items)
        )

    def _calls_unseen(self, call: ast.Call) -> bool:
        """Whether a call may be of a function or class out of view."""
        if _unknown(map(unwrapped, self.facts.objects(call.func))):
            return True
        roots = self.flow.derivation.roots
        sources = roots.of(self.flow.places[call.func])
        expressions = (root for root in sources if isinstance(root, ast.expr))
        return any(
            _is_unknown(name) for one in expressions for name in roots.names(one)
        )

    @cached_property
    def _from_mixed_calls(self) -> set[Place]:
        """Where the results of calls go that may be of a function in view or of one out of view."""
        calls = [call for _, call in self.flow.reading.calls]
        # table[name](rate), of a table of both
        seen = (call for call in calls if self.facts.functions(call.func))
        found: set[Place] = {call for call in seen if self._calls_unseen(call)}
        targets: dict[Place, list[Place]] = defaultdict(list)
        for source, target in self.flow.solver.edges() if found else ():
            targets[source].append(target)
        pending = list(found)
        while pending:
            new = [place for place in targets[pending.pop()] if place not in found]
            found.update(new)
            pending += new
        return found

    def comes_from_callers(self, node: ast.expr) -> bool:
        """Whether an object only comes from callers of functions that nothing in view names."""
        roots = self.flow.derivation.roots.of(self.flow.places[node])
        given = [root for root in roots if not _has_no_attributes(root)]
        if given:
            return all(map(self._is_from_a_caller, given))
        return not any(map(_stands_in, roots))

    def _is_from_a_caller(self, root: Place) -> bool:
        """Whether this is a parameter of a function at top level that nothing in view names."""
        match root:
            case (
                "variable",
                Scope(node=ast.FunctionDef() as function) as scope,
                str() as name,
            ):
                own = function.args
                parameters = (*own.posonlyargs, *own.args, *own.kwonlyargs)
                is_plain = scope.parent is scope.module and not function.decorator_list
                return (
                    is_plain
                    and not self._is_named(function)
                    and name in {one.arg for one in parameters}
                )
        return False

    @cached_property
    def _names_in_use(self) -> set[str]:
        """The names that code in view reads, imports or has in quotes, without a known object."""
        found: set[str] = set()
        for unit in self.facts.project.units:
            for node in unit.nodes:
                match node:
                    case ast.Name(id=name, ctx=ast.Load()) if not self.facts.objects(
                        node
                    ):
                        found.add(name)
                    case ast.Attribute(attr=name, value=owner) if not any(
                        map(tells, self.facts.objects(owner))
                    ):
                        found.add(name)
                    case ast.Constant(value=str(name)) | ast.alias(name=name):
                        found.add(name)
        return found

    def _is_named(self, function: ast.FunctionDef) -> bool:
        """Whether something in view may call a function, as far as names show."""
        # an operator or a statement calls `__add__` or `__enter__` without its name
        is_special = function.name.startswith("__")
        return (
            is_special or function in self._named or function.name in self._names_in_use
        )

    @cached_property
    def _named(self) -> set[ast.AST]:
        """The functions that an expression in view may be."""
        nodes = (node for unit in self.facts.project.units for node in unit.nodes)
        read = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute))
        return {
            function.node for node in read for function in self.facts.functions(node)
        }

    def is_something_else(self, node: ast.expr) -> bool:
        """Whether an object comes from packages that have nothing to do with legacy optimizers.

        They make none, and none was given to them.
        """
        names = self.flow.derivation.roots.names(node)
        if all(map(is_number, names)):
            # beside a number, an attribute is read of the container or instance
            return all(
                isinstance(item, Result | External) for item in self.facts.objects(node)
            )
        return all(is_well_known(name) for name in names if not is_number(name))

    @cached_property
    def _made(self) -> list[LegacyObject]:
        """The optimizers and definitions that calls in view make."""
        made = (
            obj
            for _, call in self.flow.reading.calls
            for obj in self.facts.legacy_objects(call)
            if obj.node is call
        )
        return [
            obj
            for obj in dict.fromkeys(made)
            if obj.kind in ("optimizer", "definition")
        ]

    @cached_property
    def put_to_use(self) -> set[LegacyObject]:
        """The optimizers that take a step in view, and the definitions that make one there.

        A part of another definition is used with it.
        """
        found: set[LegacyObject] = set()
        for _, node in self.flow.reading.attributes:
            kind = PURPOSES.get(node.attr)
            if kind is not None:
                found.update(self.facts.legacy_objects(node.value, kind))
        pending = list(found)
        while pending:
            parts = self.facts.legacy.parts(pending.pop())
            new = {part for part in parts if part.kind == "definition"} - found
            found |= new
            pending += new
        return found

    @cached_property
    def escapes(self) -> dict[LegacyObject, Escape]:
        """Everything that gets out of view, and where.

        It gets into code that is not there, to the callers of a function that nobody in view calls,
        or into a field of which the name is not known, or that nobody reads by it.
        """
        found = dict(self._escaped_elsewhere)
        for function in self.outermost:
            for obj in self._returned(function):
                found.setdefault(obj, Escape(function.unit, function.node))
        return found

    @cached_property
    def _escaped_elsewhere(self) -> dict[LegacyObject, Escape]:
        """What escapes otherwise than to the callers of a function that nothing in view names."""
        contents = self.flow.derivation.contents
        ends: list[tuple[Function | Class, Iterable[Token]]] = [
            (function, self._returned(function))
            for function in self.flow.reading.functions
            if not self.flow.entered[function.node] and function not in self.outermost
        ]
        for cls in self.flow.reading.classes:
            for field in self.flow.field_places(cls):
                carried = contents.at((field,))
                if carried and self._is_unread(field):
                    ends.append((cls, carried))
        found = dict(self.flow.derivation.escapes)
        for end, tokens in ends:
            for token in tokens:
                if isinstance(token, LegacyObject):
                    found.setdefault(token, Escape(end.unit, end.node))
        return found

    def _returned(self, function: Function) -> Iterable[LegacyObject]:
        return self.facts.within(("return", function.node))

    def _is_unread(self, field: Place) -> bool:
        """Whether nothing reads a field by its name, as far as that is known."""
        match field:
            # setattr(state, name, optimizer)
            case ("some field", _):
                return True
        return _is_field(field) and field not in self._read_fields

    @cached_property
    def _read_fields(self) -> set[Place]:
        """The fields that are read: from them, something flows to a place that is no field."""
        edges = [
            (source, target)
            for source, target in self.flow.solver.edges()
            if _is_field(source)
        ]
        incoming = self.flow.solver.incoming()
        found = {source for source, target in edges if not _is_field(target)}
        pending = list(found)
        while pending:
            sources = incoming.get(pending.pop(), ())
            new = [
                place for place in sources if _is_field(place) and place not in found
            ]
            found.update(new)
            pending.extend(new)
        return found


def _unknown(items: Iterable[Object]) -> bool:
    """Whether one of some objects is of a package of which nothing is known."""
    names = (item.name for item in items if isinstance(item, External | Result))
    return any(map(_is_unknown, names))


def _is_unknown(name: str) -> bool:
    """Whether a full name is one of a package of which nothing is known."""
    return bool(name) and effect_of(name) == "unknown" and not is_well_known(name)


def _is_optimizer(item: Object) -> bool:
    return isinstance(item, LegacyObject) and item.kind == "optimizer"


def _is_field(place: Place) -> bool:
    return isinstance(place, tuple) and "field" in place[0]


def _has_no_attributes(root: Place) -> bool:
    """Whether what comes from a place has no attributes of an optimizer.

    It may be a default, in the place of which an optimizer is put later.
    """
    match root:
        # state = {}; state["optimizer"]
        case (
            "element" | "elements" | "keys",
            Container(node=ast.expr() as node, role=""),
            *_,
        ):
            return not isinstance(node, ast.Call)  # nothing is put there
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
    return False


def _stands_in(root: Place) -> bool:
    """Whether only a constant is known to come, or an element that does not exist.

    Another object is lost on its way then.
    """
    match root:
        case ast.expr():
            return True
        case ("element", _, key):
            return key is not None
    return False


class OpenWorld(ClosedWorld):
    """What code out of view gives back is unknown, and unknown is no optimizer."""

    def sources(self, unit: Unit, node: ast.expr) -> dict[LegacyObject, Escape | None]:
        del unit, node
        return {}

    @cached_property
    def unaccounted(self) -> dict[LegacyObject, None]:
        return {}


def world_of(facts: Queries) -> ClosedWorld:
    """What is taken to come back from out of view."""
    return OpenWorld(facts) if facts.on_demand else ClosedWorld(facts)


def replaces_target(unit: Unit, node: ast.Attribute) -> bool:
    """Whether this is the method in `x.replace(target=…)`."""
    call = unit.parents.get(node)
    return (
        node.attr == "replace"
        and isinstance(call, ast.Call)
        and call.func is node
        and any(word.arg == "target" for word in call.keywords)
    )


def creates(unit: Unit, node: ast.Attribute) -> bool:
    """Whether this is the method in `x.create(params)`, with the arguments of a definition's.

    Its result is not unpacked.
    """
    call = unit.parents.get(node)
    if node.attr != "create" or not isinstance(call, ast.Call) or call.func is not node:
        return False
    statement = unit.parents.get(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    # model, params = Model.create(key)
    if any(isinstance(target, ast.Tuple) for target in targets):
        return False
    words = [word.arg for word in call.keywords if word.arg != "focus"]
    return len(call.args) + len(words) == 1 and words in ([], ["target"], [None])
