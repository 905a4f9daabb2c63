"""Where what is at a place comes from, one step back or all the way."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from codemods.inference.containers import METHODS
from codemods.inference.objects import (
    Class,
    Container,
    Function,
    Instance,
    Key,
    LegacyObject,
    Made,
    Place,
    Stored,
    plain,
)
from codemods.inference.reading import Binding, key_of, last_name, parameters
from codemods.inference.scopes import Scope

if TYPE_CHECKING:
    from codemods.inference.view import View

COPYING = {
    "tree_map": 1,
    **dict.fromkeys(("replicate", "unreplicate", "device_put", "device_get"), 0),
    **dict.fromkeys(("freeze", "unfreeze", "copy", "deepcopy"), 0),
}
"""Functions that give back a copy of arguments, with the index of the first of these."""


class Sources:
    """Follows values backwards, by all ways that lead to a place."""

    def __init__(self, flow: View) -> None:
        self.flow = flow

    def origins(self, place: Place) -> list[ast.expr]:
        """The expressions from which what is at a place comes unchanged."""
        return [one for one in self.behind(place) if isinstance(one, ast.expr)]

    def behind(self, place: Place) -> set[Place]:
        """A place, and those from which what is there comes unchanged."""
        seen = {place}
        pending = [place]
        while pending:
            new = [one for one in self.of(pending.pop()) if one not in seen]
            seen.update(new)
            pending += new
        return seen

    def roots(self, place: Place) -> dict[Place, None]:
        """The places from which everything at a place comes, and to which nothing comes."""
        return {one: None for one in self.behind(place) if not self.of(one)}

    def of(self, place: Place) -> list[Place]:
        """The places of which a place is a copy: one step back."""
        match place:
            case ast.Name():
                own = self.flow.places.get(place)
                return [] if own is None or own is place else [own]
            case ast.IfExp(body=body, orelse=orelse):
                return [self.flow.places[body], self.flow.places[orelse]]
            case ast.BoolOp(values=values):
                return [self.flow.places[value] for value in values]
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return [self.flow.places[value]]
            # table[name]
            case ast.Subscript(value=value, slice=key):
                return self._elements(("expression", value, None), key_of(key))
            case ast.Call():
                callees = self.flow.solver.at(place.func)
                functions = [item for item in callees if isinstance(item, Function)]
                # jax.device_put(params)
                copied = COPYING.get(last_name(place.func), len(place.args))
                if not functions and copied < len(place.args):
                    return [self.flow.places[one] for one in place.args[copied:]]
                if not functions:
                    return self._looked_up(place)
                return [("return", function.node) for function in functions]
            case ast.Attribute(value=value, attr=name):
                found: list[Place] = []
                for one in self.flow.solver.at(value):
                    if isinstance(one, Instance):
                        found.append(("field", one.cls, name))
                    # types.SimpleNamespace(rate=0.1).rate
                    elif isinstance(one, Container) and name not in METHODS:
                        found += self._elements(("expression", value, None), name)
                    elif isinstance(one, LegacyObject) and name == "target":
                        found.append(("target", one))
                    # Config.rate
                    elif isinstance(one, Class):
                        found += self._sources_of_class(one, name)
                return found
            case ("target", LegacyObject(node=ast.Call(args=[params, *_]))):
                return [self.flow.places[params]]
            case ("variable", Scope() as scope, str(name)):
                return self._sources_of_variable(scope, name)
            case ("return", ast.AST() as node):
                return [
                    self.flow.places[value]
                    for value in self.flow.engine.values_returned(node)
                ]
            case ("field", Class() as cls, str(name)):
                return self._sources_of_field(cls, name)
            # train(params, **options)
            case ("item of", owner, None | int() | str() as key):
                return self._elements(owner, key)
            # table[name] = value
            case ("bound", Binding(source=ast.expr() as value, steps=()), _):
                return [self.flow.places[value]]
        return []

    def _looked_up(self, call: ast.Call) -> list[Place]:
        """What `table.get(name, default)` gives, of a table that may have something there."""
        match call:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="get"), args=[key, *defaults]
            ):
                found = self._elements(("expression", owner, None), key_of(key))
                others = defaults if found else []
                return [*found, *(self.flow.places[one] for one in others)]
        return []

    def _sources_of_variable(self, scope: Scope, name: str) -> list[Place]:
        found: list[Place] = []
        for binding in self.flow.engine.bindings_of(scope, name):
            if binding.source is not None and not binding.steps:
                found.append(self.flow.places[binding.source])
            elif isinstance(binding.node, ast.arg):
                found += self.given(
                    self.flow.engine.functions[scope.node], binding.node
                )
            elif isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
                for module in self.flow.engine.imports.sources(
                    scope.unit, binding.node
                ):
                    if module.unit is not None:
                        other = self.flow.modules[module.unit]
                        found.append(("variable", other, binding.alias.name))
            elif binding.source is not None:
                found += self._parts_bound(binding) or [("bound", binding, None)]
            else:
                found.append(("bound", binding, None))
        return found

    def _parts_bound(self, binding: Binding) -> list[Place]:
        """The elements that a name is bound to: `optimizer, rate = carry`."""
        *ahead, (word, key) = binding.steps
        place: Place = ("expression", binding.source, None)
        for step, inner in ahead:
            place = ("item of", place, inner if step == "item" else None)
        return self._elements(place, key) if word in ("item", "each", "turn") else []

    def _elements(self, place: Place, key: Key) -> list[Place]:
        """The places of the elements under a key of the containers at a place."""
        found: list[Place] = []
        for box in self.flow.engine.solver.at(place):
            if not isinstance(plain(box), Container):
                continue
            for one in self.flow.engine.solver.at(("entries of", box, None)):
                assert isinstance(one, Stored)
                if None in (one.key, key) or one.key == key:
                    found.append(unframed(one.place))
            found += _constants(plain(box), key)
        return found

    def given(self, function: Function, argument: ast.arg) -> list[Place]:
        """What calls give to a parameter, and its default; all that is in view of it."""
        found: list[Place] = []
        for one, default in parameters(function.node):
            if one is argument and default is not None:
                found.append(default)
        passed = self._passed(function, argument)
        return [*found, *(place for place in passed if not self._is_unseen(place))]

    def is_given_unseen(self, function: Function, argument: ast.arg) -> bool:
        """Whether a call unpacks what is not in view, which may be for a parameter."""
        return any(map(self._is_unseen, self._passed(function, argument)))

    def _passed(self, function: Function, argument: ast.arg) -> Iterator[Place]:
        declared = function.node.args
        positional = [*declared.posonlyargs, *declared.args]
        for site, offset in self.flow.entered[function.node]:
            index = None
            if argument in positional[offset:]:
                index = positional.index(argument) - offset
            for place in site.given(index, argument.arg):
                match place:
                    case ("item of", ast.expr() as owner, key):
                        yield ("item of", ("expression", owner, None), key)
                    case _:
                        yield place

    def _is_unseen(self, place: Place) -> bool:
        """Whether a place is an element of a container of which nothing is known."""
        match place:
            case ("item of", _, _):
                return not self.of(place)
        return False

    def _sources_of_class(self, cls: Class, name: str) -> list[Place]:
        """What an attribute of a class itself is set to, if none is set by a computed name."""
        if self.flow.is_asked_by_any_name(cls):
            return []
        nearest = islice(self.flow.defining(cls, name), 1)
        found: list[Place] = [("variable", one.scope, name) for one in nearest]
        stores = self.flow.engine.index.stores.get(name, ())
        own = (one for one in stores if cls in self.flow.solver.at(one.owner))
        return [*found, *(("bound", store.binding, None) for store in own)]

    def _sources_of_field(self, cls: Class, name: str) -> list[Place]:
        nearest = islice(self.flow.defining(cls, name), 1)
        found: list[Place] = [("variable", one.scope, name) for one in nearest]
        for store in self.flow.engine.index.stores.get(name, ()):
            if store.binding.source is not None and not store.binding.steps:
                owners = self.flow.solver.at(store.owner)
                if Instance(cls) in owners:
                    found.append(self.flow.places[store.binding.source])
        for made in self.flow.engine.solver.at(("instances", cls)):
            if isinstance(made, Made):
                names = self.flow.fields_in_order(made.cls)
                place = made.arguments.keyword(name)
                if name in names and made.source is None:
                    place = made.arguments.argument(names.index(name), name)
                if place is not None:
                    found.append(unframed(place))
        return found


def _constants(box: object, key: Key) -> Iterator[ast.Constant]:
    """The constants that a display has under a key, which inference has no need to know."""
    pairs: Iterable[tuple[Key, ast.expr]] = ()
    match box:
        case Container(node=ast.Dict(keys=keys, values=values)):
            named = (None if one is None else key_of(one) for one in keys)
            pairs = zip(named, values, strict=True)
        case Container(node=ast.Tuple(elts=values) | ast.List(elts=values)):
            pairs = enumerate(values)
    for other, value in pairs:
        if isinstance(value, ast.Constant) and (None in (other, key) or other == key):
            yield value


def unframed(place: Place) -> Place:
    match place:
        case ("expression", ast.expr() as node, _):
            return node
    return place
