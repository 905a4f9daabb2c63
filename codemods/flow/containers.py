"""What containers do: those of Python by their own methods, and pools, which hand out again whatever was put in.

A pool stands for everything of which only this is known: queues, heaps, executors and futures, iterators that mix what they are
given. What goes into one may come out of it, go into a container beside it, or be given to a function beside it.
"""

from __future__ import annotations

import ast
import collections
from typing import TYPE_CHECKING

from codemods.flow.objects import (
    Class,
    Container,
    Derivative,
    External,
    Function,
    Getter,
    Method,
    Object,
    Partial,
    Place,
)
from codemods.vocabulary import words

if TYPE_CHECKING:
    from codemods.flow.calls import Calls, CallSite, Key

POOL = "pool"
"""The role of a container of which nothing is known but what was put in."""

GENERATOR = "generator"

CLASSES = (
    *(f"builtins.{kind}" for kind in ("list", "dict", "set", "frozenset", "tuple")),
    *("collections.", "typing.NamedTuple", "typing.Dict", "typing.List", "queue."),
)
"""External classes whose instances hold elements."""

STORING = frozenset(("append", "add", "appendleft", "insert"))
MERGING = frozenset(
    words("extend extendleft update __iadd__ __ior__ subtract")
    + words("difference_update intersection_update symmetric_difference_update")
)
CHANGING = STORING | MERGING | {"pop", "popitem", "popleft", "clear", "remove", "discard", "setdefault"}
"""Methods behind which a container holds something else."""

READING = frozenset(("get", "pop", "__getitem__", "popleft", "__next__", "send"))
SAME = frozenset(
    words("copy __copy__ __iter__ __reversed__ unfreeze unflatten _replace new_child")
    + words("union intersection difference symmetric_difference")
)
QUIET = frozenset(
    words("clear count index remove discard sort reverse rotate move_to_end close isdisjoint issubset issuperset")
    + words(
        "__len__ __contains__ __delitem__ __bool__ __hash__ __repr__ __str__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__"
    )
)
SHIFTING = frozenset(
    (
        *("insert", "pop", "remove", "reverse", "sort", "rotate", "appendleft", "extendleft", "popleft"),
        *("__delitem__", "__setitem__", "extend"),
    )
)
"""Methods behind which an element may be at another index."""

METHODS = frozenset(
    (
        *(*STORING, *MERGING, *READING, *SAME, *QUIET, *SHIFTING),
        *words("setdefault items keys values popitem fromkeys most_common elements throw default_factory"),
        *words(
            "__class__ __init__ __new__ __missing__ __reduce__ __setitem__ __getattribute__ __setattr__ __delattr__"
        ),
        *words("__add__ __and__ __mul__ __or__ __sub__ __xor__ __rand__ __rmul__ __ror__ __rsub__ __rxor__"),
        *words("__iand__ __imul__ __isub__ __ixor__"),
    )
)
"""The methods of Python's containers, and of those of Flax and JAX that are like them.

Of those that are in none of the sets above, it is not known what they do. What no container of Python 3.8 has is left out: such a
name is that of a field of something else.
"""

BY_CLASS = (list, dict, set, collections.deque, collections.OrderedDict)
BY_NAME = STORING | MERGING | READING | SAME | {*words("setdefault items keys values popitem __setitem__")}
"""The classes of which people call methods as functions, and these methods."""


def is_container_class(item: Object) -> bool:
    """Whether something is a class of Python's that holds elements, or one of the kinds from which people derive such classes."""
    return isinstance(item, External) and item.name.startswith(CLASSES)


def may_hold_pairs(container: Container) -> bool:
    """Whether a container may be one of pairs that a dict is made of, and not a dict itself."""
    plain = isinstance(container.node, ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.SetComp | ast.GeneratorExp)
    return plain or container.role in ("zip", "items", "chain", "map", "enumerate", "concatenation", GENERATOR, POOL)


def call_container_method(flow: Calls, container: Container, name: str, site: CallSite) -> None:
    """What `container.name(…)` does."""
    if site.starred is not None and name in STORING | MERGING:
        site = flow.spread(site)
    if name in SHIFTING:
        scramble(flow, container)
    if name in STORING:
        for place in site.positional:
            flow.store_element(container, None, place)
    elif name in MERGING:
        _merge_all(flow, container, site)
    elif name == "setdefault":
        for place in site.positional[1:]:
            flow.store_element(container, key_argument(site), place)
        flow.load_element(container, key_argument(site), site.result)
    elif name in READING:
        _read(flow, container, name, site)
    elif name in SAME:
        flow.solver.add(site.result, container)
        _merge_all(flow, container, site)
    elif name == "items":
        _items(flow, container, site)
    elif name == "popitem":
        _pair(flow, container, site, site.result)
    elif name in ("keys", "values"):
        found = Container(site.node, name)
        flow.solver.add(site.result, found)
        flow.store_element(found, None, ("keys" if name == "keys" else "elements", container))
    elif name not in QUIET:
        _put_together(flow, container, site, arguments(site))


def _put_together(flow: Calls, container: Container, site: CallSite, places: tuple[Place, ...]) -> None:
    """What a method of which nothing is known does: what it is given it may keep, and what is kept it may give back.

    It may also give that to the containers and functions that it is given.
    """
    kept: Place = ("elements", container)
    flow.solver.add(("holder", container), container)
    given = flow.site_with(site, ("holder", container), kept)

    def arrive(item: Object) -> None:
        if isinstance(item, Container):
            flow.store_element(item, None, kept)
            flow.merge_whole(item, container)
        elif isinstance(item, Function | Method | Partial | Derivative | Getter | Class):
            flow.invoke(item, given)

    for place in places:
        flow.store_element(container, None, place)
        flow.solver.watch(place, arrive)
    flow.solver.add(site.result, container)
    flow.load_element(container, None, site.result)


def _merge_all(flow: Calls, container: Container, site: CallSite) -> None:
    for place in (*site.positional, *site.unpacked):
        flow.merge(place, container)
        flow.merge_pairs(place, container)
    for keyword, place in site.keywords.items():
        flow.store_element(container, keyword, place)


def _read(flow: Calls, container: Container, name: str, site: CallSite) -> None:
    if name == "send":
        for place in site.positional:
            flow.store_element(container, "sent", place)
    key = key_argument(site) if name in ("get", "pop", "__getitem__") else None
    flow.load_element(container, key, site.result)
    for place in site.positional[1:]:
        flow.solver.connect(place, site.result)


def _items(flow: Calls, container: Container, site: CallSite) -> None:
    pairs = Container(site.node, "items")
    flow.solver.add(site.result, pairs)
    _pair(flow, container, site, ("pair", site.node))
    flow.store_element(pairs, None, ("pair", site.node))


def _pair(flow: Calls, container: Container, site: CallSite, result: Place) -> None:
    """Let a pair of a key and a value reach `result`."""
    pair = Container(site.node, "item")
    flow.solver.add(result, pair)
    flow.store_element(pair, 1, ("value", site.node))
    flow.load_element(container, None, ("value", site.node))
    flow.solver.connect(("keys", container), ("key", site.node))
    flow.store_element(pair, 0, ("key", site.node))


def scramble(flow: Calls, container: Container) -> None:
    """Let an element be at any index."""
    flow.solver.connect(("elements", container), ("element", container, None))


def key_argument(site: CallSite) -> Key:
    """The literal key that a method of a dict is given."""
    first = site.node.args[0] if isinstance(site.node, ast.Call) and site.node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, int | str) else None


def arguments(site: CallSite) -> tuple[Place, ...]:
    """The places of all arguments of a call."""
    return (*site.positional, *site.keywords.values(), *site.unpacked)


def mix(flow: Calls, site: CallSite, places: tuple[Place, ...]) -> None:
    """Let all that is at some places, or within what is there, come out of a call, within anything that holds such.

    It also goes into every container among them, and is given to every function among them.
    """
    whole = Container(site.node, POOL)
    scramble(flow, whole)
    flow.store_element(whole, None, ("holder", whole))
    _put_together(flow, whole, site, places)
