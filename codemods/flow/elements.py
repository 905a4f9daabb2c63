"""What containers hold, and what their methods do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from codemods.flow.classes import Classes
from codemods.flow.containers import (
    MERGING,
    POOL,
    QUIET,
    READING,
    SAME,
    SHIFTING,
    STORING,
    arguments,
    key_argument,
    may_hold_pairs,
)
from codemods.flow.objects import (
    Class,
    Container,
    Derivative,
    Function,
    Getter,
    Method,
    Namespace,
    Object,
    Partial,
    Place,
)
from codemods.flow.sites import CallSite, Key


@dataclass(kw_only=True)
class Elements(Classes):
    """The part of the analysis that knows of containers."""

    _merged: set[tuple[Container, Container]] = field(default_factory=set)
    _taking_all: set[Container] = field(default_factory=set)
    _called: set[tuple[Place, ...]] = field(default_factory=set)
    """The calls of methods of which nothing is known."""
    _keys: dict[Container, dict[Key, None]] = field(default_factory=dict)
    _key_actions: dict[Container, list[Callable[[Key], object]]] = field(
        default_factory=dict
    )

    def load(self, source: Place, key: Key, result: Place, whole: bool = False) -> None:
        """Let `source[key]` reach `result`."""
        raise NotImplementedError

    def invoke(self, callee: Object, site: CallSite) -> None:
        """Let a call do what something does."""
        raise NotImplementedError

    def spread(self, site: CallSite) -> CallSite:
        """A call whose last argument stands for all behind a star."""
        raise NotImplementedError

    def site_with(self, site: CallSite, box: Place, result: Place) -> CallSite:
        """A call like another, with what is at a place for all arguments."""
        raise NotImplementedError

    def store_element(self, container: Container, key: Key, source: Place) -> None:
        keys = self._keys.setdefault(container, {})
        if key not in keys:
            keys[key] = None
            for action in tuple(self._key_actions.get(container, ())):
                action(key)
        # nothing reaches a number, and tables of them are long
        if not isinstance(source, ast.Constant):
            place = ("element", container, key)
            self.solver.connect(source, place)
            self.solver.connect(place, ("elements", container))

    def keys_of(self, container: Container) -> tuple[Key, ...]:
        """The keys under which a container has elements, None among them if some are not known."""
        return tuple(self._keys.get(container, ()))

    def by_key(self, container: Container, action: Callable[[Key], object]) -> None:
        """Do something for each key under which a container has elements, now and later."""
        self._key_actions.setdefault(container, []).append(action)
        for key in tuple(self._keys.get(container, ())):
            action(key)

    def load_element(self, container: Container, key: Key, result: Place) -> None:
        # for state in states
        if key is None:
            self.solver.connect(("elements", container), result)
            self.solver.connect(("keys", container), result)
        # states["generator"], or states[0]
        else:
            self.solver.connect(("element", container, key), result)
            self.solver.connect(("element", container, None), result)

    def merge(self, source: Place, target: Container) -> None:
        """Let all elements of the containers at `source` be elements of `target`.

        Those of dicts keep their keys, those of lists may be at any index.
        """
        joined: set[Container] = set()

        def arrive(item: Object) -> None:
            if isinstance(item, Container) and item not in joined:
                joined.add(item)
                self.by_key(item, lambda key: self._merge_key(item, key, target))
            # options.update(vars(self))
            elif isinstance(item, Namespace):
                self.store_element(target, None, self.any_field(item.owner)[0])

        self.solver.watch(source, arrive)

    def merge_whole(self, source: Container, target: Container) -> None:
        """Let all that is in one container, and in those within it, be in another."""
        if source is target or (source, target) in self._merged:
            return
        if target not in self._taking_all:
            self._taking_all.add(target)
            # Also the elements of the containers that become elements of it, now or later.
            for place in (("elements", target), ("keys", target)):
                self.solver.watch(place, lambda item: self._merge_within(item, target))
        self._merged.add((source, target))
        for place in (("elements", source), ("keys", source)):
            self.store_element(target, None, place)

    def _merge_within(self, item: Object, target: Container) -> None:
        if isinstance(item, Container) and item != target:
            self.merge_whole(item, target)

    def _merge_key(self, source: Container, key: Key, target: Container) -> None:
        # two lists in one: an element may be at any index
        name = key if isinstance(key, str) else None
        self.store_element(target, name, ("element", source, key))
        self.solver.connect(("keys", source), ("keys", target))

    def merge_pairs(self, source: Place, target: Container) -> None:
        """Let the values of pairs in the containers at `source` be elements: `dict(pairs)`."""
        pairs = ("pairs", target)
        value = ("second", target)

        def arrive(item: Object) -> None:
            if isinstance(item, Container) and may_hold_pairs(item):
                self.solver.connect(("elements", item), pairs)

        self.solver.watch(source, arrive)
        self.load(pairs, 1, value)
        self.store_element(target, None, value)

    def call_container_method(
        self, container: Container, name: str, site: CallSite
    ) -> None:
        """What `container.name(…)` does."""
        if site.starred is not None and name in STORING | MERGING:
            site = self.spread(site)
        if name in SHIFTING:
            self.scramble(container)
        # states.append(state)
        if name in STORING:
            for place in site.positional:
                self.store_element(container, None, place)
        # states.update(others)
        elif name in MERGING:
            self._merge_all(container, site)
        # states.setdefault("generator", state)
        elif name == "setdefault":
            key = key_argument(site)
            for place in site.positional[1:]:
                self.store_element(container, key, place)
            self.load_element(container, key, site.result)
        # states.pop()
        elif name in READING:
            self._read(container, name, site)
        # states.copy()
        elif name in SAME:
            self.solver.add(site.result, container)
            self._merge_all(container, site)
        elif name == "items":
            self._items(container, site)
        elif name == "popitem":
            self._pair(container, site, site.result)
        elif name in ("keys", "values"):
            found = Container(site.node, name)
            self.solver.add(site.result, found)
            word = "keys" if name == "keys" else "elements"
            self.store_element(found, None, (word, container))
        elif name not in QUIET:
            self._call_unknown(container, site, arguments(site))

    def _call_unknown(
        self, container: Container, site: CallSite, places: tuple[Place, ...]
    ) -> None:
        """Let a method act of which nothing is known.

        It may keep its arguments, and give back whatever is kept. It may also put that into the
        containers, and give it to the functions, among its arguments.
        """
        # such a function may be that method again
        call = (container, site.node, site.result, *places)
        if call in self._called:
            return
        self._called.add(call)
        kept: Place = ("elements", container)
        self.solver.add(("holder", container), container)
        inner_call = self.site_with(site, ("holder", container), kept)

        def arrive(item: Object) -> None:
            if isinstance(item, Container):
                self.store_element(item, None, kept)
                self.merge_whole(item, container)
            elif isinstance(
                item, Function | Method | Partial | Derivative | Getter | Class
            ):
                self.invoke(item, inner_call)

        for place in places:
            self.store_element(container, None, place)
            self.solver.watch(place, arrive)
        self.solver.add(site.result, container)
        self.load_element(container, None, site.result)

    def _merge_all(self, container: Container, site: CallSite) -> None:
        for place in (*site.positional, *site.unpacked):
            self.merge(place, container)
            self.merge_pairs(place, container)
        for keyword, place in site.keywords.items():
            self.store_element(container, keyword, place)

    def _read(self, container: Container, name: str, site: CallSite) -> None:
        # generator.send(state)
        if name == "send":
            for place in site.positional:
                self.store_element(container, "sent", place)
        takes_key = name in ("get", "pop", "__getitem__")
        key = key_argument(site) if takes_key else None
        self.load_element(container, key, site.result)
        # states.get(name, default)
        for place in site.positional[1:]:
            self.solver.connect(place, site.result)

    def _items(self, container: Container, site: CallSite) -> None:
        pairs = Container(site.node, "items")
        pair = ("pair", site.node)
        self.solver.add(site.result, pairs)
        self._pair(container, site, pair)
        self.store_element(pairs, None, pair)

    def _pair(self, container: Container, site: CallSite, result: Place) -> None:
        """Let a pair of a key and a value reach `result`."""
        pair = Container(site.node, "item")
        key = ("key", site.node)
        value = ("value", site.node)
        self.solver.add(result, pair)
        self.store_element(pair, 1, value)
        self.load_element(container, None, value)
        self.solver.connect(("keys", container), key)
        self.store_element(pair, 0, key)

    def scramble(self, container: Container) -> None:
        """Let an element be at any index."""
        self.solver.connect(("elements", container), ("element", container, None))

    def mix(self, site: CallSite, places: tuple[Place, ...]) -> None:
        """Let a call give back all that is at some places or within it, in containers or not.

        It also goes into every container among them, and is given to every function among them.
        """
        # jax.debug.callback(function, *args)
        whole = Container(site.node, POOL)
        self.scramble(whole)
        self.store_element(whole, None, ("holder", whole))
        self._call_unknown(whole, site, places)
