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
    given = None if call is None else arguments_of(SIGNATURE, call)
    if call is None or given is None:
        return None
    names = {id(value): name for name, value in given.items()}
    # the parameters, in the order in which the call has arguments for them
    order = [names[id(value)] for value in values_of(call)]
    if order[:2] != ["x", "idx"]:
        return None
    # jax.ops.index_update(x, index, y, indices_are_sorted=True), or y=y
    of_y = "values" if len(call.args) < len(("x", "idx", "y")) else None
    passed_on = tuple(
        (of_y if name == "y" else name, place)
        for place, name in enumerate(order[2:], start=2)
    )
    return IndexedUpdate(call, given["x"], given["idx"], passed_on)
