"""The functions of `jax.ops` that updated an array at an index."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.inference.binding import arguments_of, taking, values_of

SIGNATURE = taking("x", "idx", "y", indices_are_sorted=False, unique_indices=False)


@dataclass(frozen=True)
class IndexedUpdate:
    """A call of such a function: the array and the index.

    `passed_on` has the keywords and places of the arguments that `x.at[…].set` takes.
    """

    call: ast.Call
    array: ast.expr
    index: ast.expr
    passed_on: tuple[tuple[str | None, int], ...]


def updated(call: ast.Call | None) -> IndexedUpdate | None:
    """What a call updates.

    None for calls that unpack arguments, or have the array or the index behind others.
    """
    if call is None:
        return None
    given = arguments_of(SIGNATURE, call)
    if given is None:
        return None
    names = {id(value): name for name, value in given.items()}
    # the parameters, in the order in which the call has arguments for them
    order = [names[id(value)] for value in values_of(call)]
    if order[:2] != ["x", "idx"]:
        return None
    # jax.ops.index_update(x, index, y, indices_are_sorted=True)
    passed_on: list[tuple[str | None, int]] = []
    for place, name in enumerate(order[2:], start=2):
        is_keyword = place >= len(call.args)
        passed_on.append((_keyword(name, is_keyword=is_keyword), place))
    return IndexedUpdate(call, given["x"], given["idx"], tuple(passed_on))


def _keyword(name: str, *, is_keyword: bool) -> str | None:
    """The keyword of an argument in a method of `x.at[…]`; None for values by position."""
    if name != "y":
        return name
    # x.at[index].set(values=y)
    return "values" if is_keyword else None
