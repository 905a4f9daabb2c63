"""What the methods of containers do."""

from __future__ import annotations

import ast

from codemods.inference.objects import Container, External, Object
from codemods.vocabulary import words

GENERATOR, FUTURE = "generator", "future"

CLASSES = (
    *(f"builtins.{kind}" for kind in ("list", "dict", "set", "frozenset", "tuple")),
    "collections.",
    "typing.NamedTuple",
    "typing.Dict",
    "typing.List",
    "queue.",
)
"""External classes whose instances hold elements."""

STORING = frozenset(words("append add appendleft insert put"))
MERGING = frozenset(words("extend extendleft update __iadd__ __ior__ subtract"))
CHANGING = STORING | MERGING
CHANGING |= {
    *words("pop popitem popleft clear remove discard setdefault reverse sort rotate"),
    *words("__delitem__ __setitem__"),
    *words("difference_update intersection_update symmetric_difference_update"),
}
"""Methods that change which elements a container has, or where."""

SHIFTING = frozenset(
    words("insert pop remove reverse sort rotate appendleft extendleft popleft")
    + words("__delitem__ __setitem__ extend")
)
"""Methods that may change the index of an element."""

READING = frozenset(words("get pop setdefault __getitem__ popleft __next__ send"))
RESULT = "result"
"""The method of a future that waits for what is in it."""

SAME = frozenset(
    words("copy __copy__ __iter__ __reversed__ unfreeze unflatten _replace _asdict")
    + words("new_child union intersection difference symmetric_difference")
)
METHODS = CHANGING | READING | SAME
METHODS |= {
    *words("items keys values fromkeys most_common elements default_factory"),
    *words("count index move_to_end close send throw isdisjoint issubset issuperset"),
    *(name for name in dir(dict) if name.startswith("__")),
    *(name for name in dir(set) if name.startswith("__")),
}
"""The methods of Python's containers, and of those of Flax and JAX that are like them.

Of most of those in none of the sets above, it is not known what they do. Names that no container
of Python 3.8 has are left out: such a name is that of a field of something else.
"""


def is_container_class(item: Object) -> bool:
    """Whether something is a class of Python whose instances have elements."""
    return isinstance(item, External) and item.name.startswith(CLASSES)


DISPLAYS = (
    ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.SetComp | ast.GeneratorExp
)
FIXED = frozenset(
    words("record tuple item items values zip enumerate map flattened vjp scan")
    + words("derivative namespace future")
)
"""The roles of containers that nothing is put into once they are made."""

OF_PAIRS = frozenset((*words("zip items chain map enumerate"), GENERATOR))
"""The roles of containers whose elements may be pairs."""


def may_hold_pairs(container: Container) -> bool:
    """Whether a container may be one of pairs that a dict is made of, and not a dict itself."""
    return isinstance(container.node, DISPLAYS) or container.role in OF_PAIRS
