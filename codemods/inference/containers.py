"""What containers do: those of Python by their own methods, and pools.

A pool gives back whatever was put in, and nothing more is known of it: queues, heaps, executors
and futures, iterators that mix their arguments. What goes into one may come out of it, go into a
container beside it, or be given to a function beside it.
"""

from __future__ import annotations

import ast
import collections

from codemods.inference.objects import Container, External, Object, Place
from codemods.inference.sites import CallSite, Key
from codemods.vocabulary import words

POOL = "pool"
"""The role of a container of which nothing is known but what was put in."""

GENERATOR = "generator"

CLASSES = (
    *(f"builtins.{kind}" for kind in ("list", "dict", "set", "frozenset", "tuple")),
    "collections.",
    "typing.NamedTuple",
    "typing.Dict",
    "typing.List",
    "queue.",
)
"""External classes whose instances hold elements."""

STORING = frozenset(("append", "add", "appendleft", "insert", "put"))
MERGING = frozenset(
    words("extend extendleft update __iadd__ __ior__ subtract")
    + words("difference_update intersection_update symmetric_difference_update")
)
CHANGING = (
    STORING
    | MERGING
    | {"pop", "popitem", "popleft", "clear", "remove", "discard", "setdefault"}
)
"""Methods that change which elements a container has."""

READING = frozenset(("get", "pop", "__getitem__", "popleft", "__next__", "send"))
SAME = frozenset(
    words("copy __copy__ __iter__ __reversed__ unfreeze unflatten _replace new_child")
    + words("union intersection difference symmetric_difference")
)
QUIET = frozenset(
    words("clear count index remove discard sort reverse rotate move_to_end close")
    + words("isdisjoint issubset issuperset")
    + words("__len__ __contains__ __delitem__ __bool__ __hash__ __repr__ __str__")
    + words("__eq__ __ne__ __lt__ __le__ __gt__ __ge__")
)
"""Methods that put no object in and give none back."""

SHIFTING = frozenset(
    words("insert pop remove reverse sort rotate appendleft extendleft popleft")
    + words("__delitem__ __setitem__ extend")
)
"""Methods that may change the index of an element."""

OTHERS = (
    words("setdefault items keys values popitem fromkeys most_common elements throw")
    + words("default_factory")
    + words("__class__ __init__ __new__ __missing__ __reduce__ __setitem__")
    + words("__getattribute__ __setattr__ __delattr__")
    + words("__add__ __and__ __mul__ __or__ __sub__ __xor__")
    + words("__rand__ __rmul__ __ror__ __rsub__ __rxor__")
    + words("__iand__ __imul__ __isub__ __ixor__")
)
METHODS = frozenset((*STORING, *MERGING, *READING, *SAME, *QUIET, *SHIFTING, *OTHERS))
"""The methods of Python's containers, and of those of Flax and JAX that are like them.

Of most of those in none of the sets above, it is not known what they do. Names that no container
of Python 3.8 has are left out: such a name is that of a field of something else.
"""

BY_CLASS = (list, dict, set, collections.deque, collections.OrderedDict)
BY_NAME = (
    STORING
    | MERGING
    | READING
    | SAME
    | {*words("setdefault items keys values popitem __setitem__")}
)
"""The classes of which people call methods as functions, and these methods."""


def is_container_class(item: Object) -> bool:
    """Whether something is a class of Python whose instances have elements."""
    return isinstance(item, External) and item.name.startswith(CLASSES)


DISPLAYS = (
    ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.SetComp | ast.GeneratorExp
)
FIXED = frozenset(
    words("record tuple item items keys values zip enumerate map iterator repeat")
    + words("flattened vjp scan derivative got")
)
"""The roles of containers that nothing is put into once they are made."""

OF_PAIRS = (
    "zip",
    "items",
    "chain",
    "map",
    "enumerate",
    "concatenation",
    GENERATOR,
    POOL,
)
"""The roles of containers whose elements may be pairs."""


def may_hold_pairs(container: Container) -> bool:
    """Whether a container may be one of pairs that a dict is made of, and not a dict itself."""
    return isinstance(container.node, DISPLAYS) or container.role in OF_PAIRS


def key_argument(site: CallSite) -> Key:
    """The literal key that a method of a dict is given: `states.get("optimizer")`."""
    match site.node:
        case ast.Call(args=[ast.Constant(value=int() | str() as key), *_]):
            return key
    return None


def arguments(site: CallSite) -> tuple[Place, ...]:
    """The places of all arguments of a call."""
    return (*site.positional, *site.keywords.values(), *site.unpacked)
