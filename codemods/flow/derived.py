"""What code out of view does with its arguments: it may give them back, keep or pass them.

It may pass them to a function that is an argument, too. Calls of such code are met in rounds: that
nothing is known of a function shows only once all else has been solved. A package that is known to
give back nothing but its arguments, such as one of containers, gives back the very objects; what
any other gives is `Derived` from its arguments, and these escape.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from codemods.flow.calls import Calls
from codemods.flow.carriers import Carriers, Token
from codemods.flow.containers import POOL, arguments
from codemods.flow.objects import (
    AnyDerived,
    Class,
    Container,
    Derived,
    External,
    Function,
    Instance,
    LegacyObject,
    Method,
    Module,
    Namespace,
    Opaque,
    Place,
    Result,
)
from codemods.flow.reading import Store
from codemods.flow.roots import Roots
from codemods.flow.sites import CallSite, Effect
from codemods.sources.modules import Unit

NAMESPACES = (Class, Instance, Module, Namespace)
"""What may have an attribute set under any name."""

TAKING_FIELDS = frozenset(
    (
        "typing.NamedTuple",
        "flax.struct.PyTreeNode",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "builtins.object",
    )
)
"""External bases whose constructor does nothing but set the fields that it is given."""


@dataclass(frozen=True)
class Escape:
    """Where something of interest gets out of view."""

    unit: Unit
    node: ast.expr | ast.stmt


@dataclass
class Derivation:
    """Derives what code out of view returns, keeps and passes from its arguments."""

    flow: Calls
    escapes: dict[LegacyObject, Escape] = field(default_factory=dict)
    """The first escape of each object."""
    _sites: dict[Place, list[tuple[Place, CallSite]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _stores: dict[Place, list[Store]] = field(default_factory=lambda: defaultdict(list))
    _mixed: set[CallSite] = field(default_factory=set)
    _derived: int = 0

    def __post_init__(self) -> None:
        self.contents = Carriers(self.flow)
        self.roots = Roots(self.flow)

    def add(self, callee: Place, site: CallSite) -> None:
        """Take a call into account."""
        for place in (callee, *arguments(site)):
            self._sites[place].append((callee, site))
            self.contents.watch(place)

    def add_store(self, store: Store) -> None:
        """Take an assignment to an attribute or an element into account."""
        for place in (store.owner, store.source):
            self._stores[place].append(store)
            self.contents.watch(place)

    def sites(self) -> dict[CallSite, Place]:
        """All calls, with the places of what is called."""
        found: dict[CallSite, Place] = {}
        for calls in self._sites.values():
            found.update((site, callee) for callee, site in calls)
        return found

    def stores(self) -> dict[Store, None]:
        """All assignments to attributes and elements."""
        return dict.fromkeys(chain.from_iterable(self._stores.values()))

    def round(self) -> bool:
        """Derive what follows from the present solution. Whether any of that was new."""
        touched = self.contents.update(self.flow.solver.take_touched())
        if self._derived != self.flow.solver.derived:
            # `AnyDerived` stands for more objects than before, wherever it is.
            self._derived = self.flow.solver.derived
            touched.update(dict.fromkeys(self.contents.watched()))
        sites: dict[CallSite, Place] = {}
        stores: dict[Store, None] = {}
        for place in touched:
            calls = self._sites.get(place, ())
            sites.update((site, callee) for callee, site in calls)
            stores.update(dict.fromkeys(self._stores.get(place, ())))
        new = False
        for site, callee in sites.items():
            new = self._call(callee, site) or new
        for store in stores:
            new = self._store(store) or new
        return new

    def is_unknown(self, callee: Place) -> bool:
        """Whether nothing is known of some function that is called."""
        found = self.flow.solver.at(callee)
        externals = (item for item in found if isinstance(item, External))
        if any(map(self._is_out_of_view, externals)):
            return True
        return all(map(self._is_out_of_view, found))

    def _is_out_of_view(self, item: object) -> bool:
        match item:
            case External(name=name):
                return self.flow.library.function(name) is None
            case Result():
                return True
            # Trainer(optimizer), where Trainer derives from a class out of view
            case Class():
                return self._has_no(item, "__init__")
            # model(optimizer)
            case Instance(cls=cls):
                return self._has_no(cls, "__call__")
        return False

    def _has_no(self, cls: Class, method: str) -> bool:
        """Whether a class has no method of a name in view, but may inherit one out of view."""
        known = TAKING_FIELDS if method == "__init__" else ()
        may_inherit = False
        for base in self.flow.ancestry(cls):
            if isinstance(base, Class) and method in base.scope.names:
                return False
            if isinstance(base, External) and base.name not in known:
                may_inherit = True
        return may_inherit

    # Calls

    def is_only_looked_at(self, call: ast.AST, keyword: str | None) -> bool:
        """Whether an argument is the `choices` of an option of a command."""
        if keyword != "choices" or not isinstance(call, ast.Call):
            return False
        # parser.add_argument("--optimizer", choices=OPTIMIZERS)
        return all(name.startswith("argparse.") for name in self.roots.names(call.func))

    def _call(self, callee: Place, site: CallSite) -> bool:
        """Let a call act if it is one of code out of view. Whether that gave anything new."""
        names = [
            name for name in site.keywords if self.is_only_looked_at(site.node, name)
        ]
        looked_at = [site.keywords[name] for name in names]
        carried = self.contents.at(
            place for place in arguments(site) if place not in looked_at
        )
        if carried and self._sets_unknown(callee, site):
            self._escape(carried, site.unit, site.node)
        if not carried or not self.is_unknown(callee):
            return False
        effect = self._effect(site)
        if effect == "none":
            return False
        if effect == "contents" and any(
            isinstance(token, LegacyObject) for token in carried
        ):
            if self._may_keep(site):
                self._escape(carried, site.unit, site.node)
            return self._mix(site)
        near = [token for token in carried if isinstance(token, Derived | AnyDerived)]
        places = [site.result, *self._parameters(arguments(site))]
        if effect == "unknown":
            self._escape(carried, site.unit, site.node)
            if self._are_carried_whole(near, carried):
                places += self._receivers(site)
        new = False
        for place in places:
            new = self.flow.solver.add_all(place, near) or new
        return new

    def _may_keep(self, site: CallSite) -> bool:
        """Whether a call may put its arguments where the analysis does not find them again.

        That is an object among the arguments, whose attributes it may set, or the receiver, if no
        call is known that makes it.
        """
        for place in arguments(site):
            for item in self.flow.solver.at(place):
                if isinstance(item, NAMESPACES):
                    return True
        roots = self._receiver_roots(site)
        return bool(roots) and not any(isinstance(root, ast.Call) for root in roots)

    def _are_carried_whole(
        self, near: Iterable[Token], carried: Mapping[Token, None]
    ) -> bool:
        """Whether an object itself is carried beside what is derived from it."""
        sources = chain.from_iterable(map(self.sources, near))
        return any(obj in carried for obj in sources)

    def sources(self, token: Token) -> Iterator[LegacyObject]:
        """The objects that something carried is, or is derived from."""
        for item in self.flow.solver.members(token):
            if isinstance(item, LegacyObject | Derived):
                yield item if isinstance(item, LegacyObject) else item.source

    def _sets_unknown(self, callee: Place, site: CallSite) -> bool:
        """Whether this is `setattr` of an object of which nothing is known."""
        if External("builtins.setattr") not in self.flow.solver.at(callee):
            return False
        return len(site.positional) == 3 and self._is_of_unknown_origin(
            site.positional[0]
        )

    def _is_of_unknown_origin(self, place: Place) -> bool:
        items = self.flow.solver.at(place)
        return all(isinstance(item, Derived | Result | External) for item in items)

    def _escape(self, carried: Iterable[Token], unit: Unit, node: ast.AST) -> None:
        for token in carried:
            if isinstance(token, LegacyObject) and isinstance(
                node, ast.expr | ast.stmt
            ):
                self.escapes.setdefault(token, Escape(unit, node))

    def _effect(self, site: CallSite) -> Effect:
        """What a function out of view does with its arguments: of several, the worst."""
        if not isinstance(site.node, ast.Call):
            return "unknown"
        names = self.roots.names(site.node.func)
        effects = {*map(self.flow.library.effect, names)}
        order: tuple[Effect, ...] = ("unknown", "result", "contents", "none")
        for effect in order:
            if effect in effects:
                return effect
        return "unknown"

    def _mix(self, site: CallSite) -> bool:
        """Let a call give back its arguments; a method of a container keeps them, too."""
        new = False
        for root in self._receiver_roots(site):
            if isinstance(root, ast.Call):
                new = self.flow.solver.add(root, Container(root, POOL)) or new
        if site in self._mixed:
            return new
        self._mixed.add(site)
        self.flow.mix(site, arguments(site))
        return True

    def _receivers(self, site: CallSite) -> Iterator[Place]:
        for root in self._receiver_roots(site):
            if not any(
                isinstance(item, External) for item in self.flow.solver.at(root)
            ):
                yield root

    def _receiver_roots(self, site: CallSite) -> Iterable[Place]:
        """Where the receiver of a method comes from, if nothing is known of it."""
        match site.node:
            case ast.Call(func=ast.Attribute(value=receiver)):
                place = self.flow.places[receiver]
            case _:
                return ()
        items = self.flow.solver.at(place)
        is_unknown = all(isinstance(item, Derived | Result) for item in items)
        return self.roots.of(place) if is_unknown else ()

    def _parameters(self, places: Iterable[Place]) -> Iterator[Place]:
        """The parameters of the functions among some arguments."""
        for place in places:
            for item in self.flow.solver.at(place):
                function = item.function if isinstance(item, Method) else item
                if isinstance(function, Function):
                    declared = function.node.args
                    for parameter in (*declared.posonlyargs, *declared.args):
                        yield ("variable", function.scope, parameter.arg)

    # Assignments

    def _store(self, store: Store) -> bool:
        """Keep what is put into an object of which nothing is known."""
        carried = self.contents.at((store.source,))
        if not any(isinstance(token, LegacyObject) for token in carried):
            return False
        owners = self.flow.solver.at(store.owner)
        # function.__wrapped__ = optimizer
        of_python = isinstance(
            store.node, ast.Attribute
        ) and store.node.attr.startswith("__")
        if of_python or self._is_of_unknown_origin(store.owner):
            self._escape(carried, store.unit, store.node)
        if any(not isinstance(item, Derived | Result) for item in owners):
            return False
        new = False
        for root in self.roots.of(store.owner):
            if isinstance(store.node, ast.Subscript):
                new = self.flow.solver.add(root, Container(store.node, "opaque")) or new
            else:
                new = self.flow.solver.add(root, Opaque(root)) or new
        return new
