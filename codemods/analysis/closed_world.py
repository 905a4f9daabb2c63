"""What an object of unknown origin may be: an optimizer that went out of view comes back somewhere, if it comes back at all.

The analysis follows objects as far as code is in view. Where one gets out of view it escapes; where an object comes from there,
nothing tells what it is. What is used as only a legacy object can be then belongs to those that have escaped in the same program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from codemods.analysis.members import tells
from codemods.analysis.queries import Queries
from codemods.flow.binding import values_of
from codemods.flow.constraints import UNNAMED
from codemods.flow.containers import POOL
from codemods.flow.contents import Token
from codemods.flow.derived import Escape
from codemods.flow.objects import (
    Class,
    Container,
    Derived,
    External,
    Function,
    Instance,
    Place,
    Result,
    Thing,
)
from codemods.flow.out_of_view import is_number, is_well_known
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit
from codemods.sources.prefilter import uses_jax

UNKNOWN_CONTENTS = (POOL, "opaque")
"""The roles of containers of which it is not seen what is in them."""

PURPOSES = {"apply_gradient": "optimizer", "optimize": "optimizer", "create": "definition"}
"""The methods for which things of a kind are made."""


class ClosedWorld:
    """Brings together what went out of view and what comes from there."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self.flow = facts.flow
        self._made_of_unknown: dict[ast.Call, bool] = {}

    def sources(self, unit: Unit, node: ast.expr) -> dict[Thing, Escape | None]:
        """The things that an expression of unknown origin may hold, with the places where they got out of view.

        Where every one of a program is accounted for, it may still be one of them in a file that has to do with JAX.
        """
        sources = [item.source for item in self.facts.objects(node) if isinstance(item, Derived)]
        derived = [thing for thing in sources if thing.kind in ("definition", "optimizer")]
        if derived:
            return {thing: self.flow.derivation.escapes.get(thing) for thing in derived}
        runs_text = unit in self.facts.running_text  # which may set any variable
        if not runs_text and self.is_something_else(node):
            return {}
        made = self._made_with(unit)
        escaped = [thing for thing in made if thing in self.escapes]
        if not runs_text and self.comes_from_callers(node):
            return {thing: self.escapes[thing] for thing in escaped}
        lost = [thing for thing in made if thing in self.lost]
        if not lost and not uses_jax(unit.code.encode()):
            return {}
        kinds = {
            thing.kind for thing in lost
        }  # where no optimizer is lost, a definition that is tells nothing of these
        return {
            thing: self.escapes.get(thing)
            for thing in made
            if thing in lost or thing.kind not in kinds
        }

    @cached_property
    def lost(self) -> dict[Thing, None]:
        """What may come back anywhere in the project: it goes out of view, or is not seen to do what it is there for.

        What only a function gives of which nothing in view speaks goes to whoever calls that, and does not come back by itself.
        """
        given = {thing for function in self.outermost for thing in self._returned(function)}
        seen = (self.put_to_use | given) - self._gone_elsewhere.keys()
        return {thing: None for thing in self._made if thing not in seen}

    @cached_property
    def outermost(self) -> list[Function]:
        """The functions that nothing in view calls or speaks of, and the methods of classes of which nothing there makes any."""
        functions = (
            one for one in self.flow.reading.functions if isinstance(one.node, ast.FunctionDef)
        )
        return [
            one
            for one in functions
            if not self.flow.entered[one.node] and not self._may_be_called(one)
        ]

    def _may_be_called(self, function: Function) -> bool:
        around = function.scope.parent
        is_method = around is not None and isinstance(around.node, ast.ClassDef)
        if is_method and around is not None and around.node not in self._constructed:
            return False
        return isinstance(function.node, ast.FunctionDef) and self._is_spoken_of(function.node)

    @cached_property
    def _constructed(self) -> set[ast.ClassDef]:
        """The classes of which a call in view makes an instance, and their bases."""
        made = (item for _, call in self.flow.reading.calls for item in self.facts.objects(call))
        classes = {item.cls for item in made if isinstance(item, Instance)}
        found = (base for cls in classes for base in self.flow.ancestry(cls))
        return {base.node for base in found if isinstance(base, Class)}

    def _made_with(self, unit: Unit) -> list[Thing]:
        """The optimizers and definitions that calls in a file's programs make."""
        program = self.facts.together(unit)
        return [thing for thing in self._made if thing.unit.path in program]

    def may_be_more(self, unit: Unit, node: ast.expr) -> bool:
        """Whether something of unknown origin may come to where something known does."""
        if any(isinstance(item, Derived) for item in self.facts.objects(node)):
            return True
        roots = self.flow.derivation.roots.of(self.flow.places[node])
        if any(map(self._tells_nothing, roots)):
            return True
        return any(map(self._was_there_ahead, roots)) and any(
            thing in self.lost for thing in self._made_with(unit)
        )

    def _was_there_ahead(self, root: Place) -> bool:
        """Whether a place is known to hold a constant or nothing, over which something that is lost may have been put."""
        is_element = isinstance(root, tuple) and root[0] in ("element", "elements", "keys")
        return (is_element and not self.flow.solver.at(root)) or _has_no_attributes(root)

    def _tells_nothing(self, root: Place) -> bool:
        """Whether something may come from a place of which nothing is known."""
        if isinstance(root, ast.Call) and self._is_made_of_unknown(root):
            return True
        if (
            any(map(tells, self.flow.solver.at(root)))
            or _has_no_attributes(root)
            or self._is_from_a_caller(root)
        ):
            return False
        match root:
            case ast.expr():
                return not all(map(is_well_known, self.flow.derivation.roots.names(root)))
            case ("element" | "elements" | "keys", Container(role=role), *_):
                return role in UNKNOWN_CONTENTS
            case ("variable", _, name):
                return name != UNNAMED
        return True

    def _is_made_of_unknown(self, call: ast.Call) -> bool:
        """Whether a package that may give back what it is given is given something that nothing tells of."""
        if call not in self._made_of_unknown:
            self._made_of_unknown[call] = False  # what is made of itself alone tells nothing more
            made = [*self.flow.solver.at(call)]
            if made and all(
                isinstance(item, Result) and not is_well_known(item.name) for item in made
            ):
                given = (self.flow.places.get(value) for value in values_of(call))
                roots = {root for place in given for root in self.flow.derivation.roots.of(place)}
                self._made_of_unknown[call] = any(map(self._tells_nothing, roots))
        return self._made_of_unknown[call]

    def comes_from_callers(self, node: ast.expr) -> bool:
        """Whether an object comes from whoever calls functions that nothing in view speaks of, and from nowhere else."""
        roots = self.flow.derivation.roots.of(self.flow.places[node])
        given = [root for root in roots if not _has_no_attributes(root)]
        return all(map(self._is_from_a_caller, given)) if given else not any(map(_stands_in, roots))

    def _is_from_a_caller(self, root: Place) -> bool:
        match root:
            case ("variable", Scope(node=ast.FunctionDef() as function) as scope, str() as name):
                parameters = (
                    *function.args.posonlyargs,
                    *function.args.args,
                    *function.args.kwonlyargs,
                )
                is_plain = scope.parent is scope.module and not function.decorator_list
                return (
                    is_plain
                    and not self._is_spoken_of(function)
                    and name in {one.arg for one in parameters}
                )
        return False

    @cached_property
    def _spoken_of(self) -> set[str]:
        """The names and attributes of unknown objects that are read anywhere in the project, are imported, or stand in quotes."""
        found: set[str] = set()
        for unit in self.facts.project.units:
            for node in unit.nodes:
                match node:
                    case ast.Name(id=name, ctx=ast.Load()) if not self.facts.objects(node):
                        found.add(name)
                    case ast.Attribute(attr=name, value=owner) if not any(
                        map(tells, self.facts.objects(owner))
                    ):
                        found.add(name)
                    case ast.Constant(value=str(name)) | ast.alias(name=name):
                        found.add(name)
        return found

    def _is_spoken_of(self, function: ast.FunctionDef) -> bool:
        is_special = function.name.startswith(
            "__"
        )  # an operator or a statement calls it without its name
        return is_special or function in self._named or function.name in self._spoken_of

    @cached_property
    def _named(self) -> set[ast.AST]:
        """The functions that something in view names."""
        nodes = (node for unit in self.facts.project.units for node in unit.nodes)
        read = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute))
        return {function.node for node in read for function in self.facts.functions(node)}

    def is_something_else(self, node: ast.expr) -> bool:
        """Whether an object comes from packages that make no legacy optimizers, and to which none was given."""
        names = self.flow.derivation.roots.names(node)
        if all(
            map(is_number, names)
        ):  # beside a container or an instance, it is not of these that something is asked
            return all(isinstance(item, Result | External) for item in self.facts.objects(node))
        return all(is_well_known(name) for name in names if not is_number(name))

    @cached_property
    def _made(self) -> list[Thing]:
        """The optimizers and definitions that calls in view make."""
        made = (
            thing
            for _, call in self.flow.reading.calls
            for thing in self.facts.things(call)
            if thing.node is call
        )
        return [thing for thing in dict.fromkeys(made) if thing.kind in ("optimizer", "definition")]

    @cached_property
    def put_to_use(self) -> set[Thing]:
        """The optimizers that take a step in view, and the definitions that make an optimizer there, also as parts of others."""
        found = {
            thing
            for _, node in self.flow.reading.attributes
            if (kind := PURPOSES.get(node.attr)) is not None
            for thing in self.facts.things(node.value, kind)
        }
        pending = list(found)
        while pending:
            whole = pending.pop()
            new = {
                part
                for outer, part in self.facts.legacy.links
                if outer == whole and part.kind == "definition"
            } - found
            found |= new
            pending += new
        return found

    @cached_property
    def escapes(self) -> dict[Thing, Escape]:
        """Everything that gets out of view.

        Into code that is not there, to whoever calls a function that nobody calls, or into a field of which the name is not
        known, or that nobody reads by it.
        """
        found = dict(self._gone_elsewhere)
        for function in self.outermost:
            for thing in self._returned(function):
                found.setdefault(thing, Escape(function.unit, function.node))
        return found

    @cached_property
    def _gone_elsewhere(self) -> dict[Thing, Escape]:
        """What gets out of view other than to whoever calls a function of which nothing in view speaks."""
        contents = self.flow.derivation.contents
        ends: list[tuple[Function | Class, Iterable[Token]]] = [
            (function, self._returned(function))
            for function in self.flow.reading.functions
            if not self.flow.entered[function.node] and function not in self.outermost
        ]
        for cls in self.flow.reading.classes:
            fields = ((place, contents.at((place,))) for place in self.flow.field_places(cls))
            ends += [
                (cls, carried) for place, carried in fields if carried and self._is_unread(place)
            ]
        found = dict(self.flow.derivation.escapes)
        for end, tokens in ends:
            for token in tokens:
                if isinstance(token, Thing):
                    found.setdefault(token, Escape(end.unit, end.node))
        return found

    def _returned(self, function: Function) -> Iterable[Thing]:
        return self.facts.within(("return", function.node))

    def _is_unread(self, field: Place) -> bool:
        """Whether nothing reads a field by its name, as far as that is known."""
        match field:
            case ("some field", _):
                return True
        return _is_field(field) and field not in self._read_fields

    @cached_property
    def _read_fields(self) -> set[Place]:
        """The fields from which something gets to a place that is none."""
        edges = [
            (source, target) for source, target in self.flow.solver.edges() if _is_field(source)
        ]
        incoming = self.flow.solver.incoming()
        found = {source for source, target in edges if not _is_field(target)}
        pending = list(found)
        while pending:
            new = [
                place
                for place in incoming.get(pending.pop(), ())
                if _is_field(place) and place not in found
            ]
            found.update(new)
            pending.extend(new)
        return found


def _is_field(place: Place) -> bool:
    return isinstance(place, tuple) and "field" in place[0]


def _has_no_attributes(root: Place) -> bool:
    """Whether what comes from a place, if anything does, has none of an optimizer's attributes: it was there ahead of it."""
    match root:
        case ("element" | "elements" | "keys", Container(node=ast.expr() as node, role=""), *_):
            return not isinstance(node, ast.Call)  # nothing is put there
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
    return False


def _stands_in(root: Place) -> bool:
    """Whether all that is known to come is a constant, or an element that is not there: something else is lost on its way."""
    match root:
        case ast.expr():
            return True
        case ("element", _, key):
            return key is not None
    return False


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
    """Whether this is the method in `x.create(params)`, called as a definition's is: what it gives is not unpacked."""
    call = unit.parents.get(node)
    if node.attr != "create" or not isinstance(call, ast.Call) or call.func is not node:
        return False
    statement = unit.parents.get(call)
    if isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Tuple) for target in statement.targets
    ):
        return False
    words = [word.arg for word in call.keywords if word.arg != "focus"]
    return len(call.args) + len(words) == 1 and words in ([], ["target"], [None])
