"""In how many containers something is, and what functions out of view make of that."""

from __future__ import annotations

import ast

from codemods.inference.containers import READING
from codemods.inference.reading import last_name
from codemods.vocabulary import words

ITSELF, WITHIN, DEEP = 0, 1, 2
"""It is in no container, in one, or perhaps in any number of them."""

OF_PAIRS = frozenset(words("items popitem most_common zip enumerate map"))
"""Functions and methods that give what holds the elements of what they are given."""

EMPTYING = frozenset(
    words("dict OrderedDict SimpleNamespace ConfigDict FrozenConfigDict FrozenDict set")
    + words("zip enumerate map filter sorted reversed chain cycle next")
)
"""Functions that give back the elements of what they are given, not that itself."""

RETURNING = frozenset(
    words("jit pmap list tuple iter deque copy deepcopy freeze unfreeze get pop")
    + words("replicate unreplicate device_put device_get setdefault")
)
"""Functions that give back what they are given, or a copy."""

WRAPPING = frozenset(
    words(
        "vmap pjit checkpoint remat named_call partial Partial xmap wraps defaultdict"
    )
    + words("grad value_and_grad vjp jvp custom_vjp custom_jvp eval_shape named_scope")
    + words("scan fori_loop while_loop cond switch tree_map pad_shard_unpad cast")
    + words("staticmethod classmethod property cached_property lru_cache cache")
    + words("partialmethod contextmanager update_wrapper")
)
"""Functions that may give what they are given among others."""

HANDING = EMPTYING | RETURNING | WRAPPING


def put(depth: int) -> int:
    """How deep something is once what it is in is put into a container."""
    return min(depth + 1, DEEP)


def taken(depth: int) -> int:
    """How deep something is in an element of what it is in."""
    return depth if depth == DEEP else max(depth - 1, ITSELF)


def given_by(name: str, depth: int) -> int:
    """How deep something is in what a function or method gives that gets what it is in."""
    if name in OF_PAIRS:
        return put(depth)
    return taken(depth) if name in READING or name == "next" else depth


def handed_back(name: str, depth: int, by_keyword: bool) -> int | None:
    """How deep something is in what one of `HANDING` gives; None if it is not there."""
    # list(states), dict(state=state)
    if name in EMPTYING and not by_keyword:
        return given_by(name, depth) if depth else None
    return DEEP if depth and name in WRAPPING else depth


def is_default_dict(call: ast.Call) -> bool:
    """Whether what a call gives has elements that a function makes: `defaultdict(list)`."""
    return last_name(call.func) == "defaultdict"
