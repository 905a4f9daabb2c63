"""The parameters with which an optimizer is probed."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import Any

from codemods.model import EmittedOptimizer
from optim2optax.parity.judging.leaves import leaves_by_path
from optim2optax.parity.optimizer.names import constructor
from optim2optax.parity.optimizer.texts import TRAVERSAL
from optim2optax.parity.probing.probe import probe_params

PATH = re.compile(r"/?\w+(/\w+)*/?")
"""Texts that may be a part of a leaf's path."""


def probe_for(emitted: EmittedOptimizer, seed: int) -> dict[str, Any]:
    """The arguments of `probe_params` for the parameters with which an optimizer is probed.

    There are leaves at the paths that traversals name, and none that the old optimizer could not
    take.
    """
    usual = list(leaves_by_path(probe_params()))
    further: list[str] = []
    for path in _named_paths(emitted.legacy_expression, usual):
        # A leaf cannot stand where a folder of leaves is.
        if not _is_in_the_way(path, [*usual, *further]):
            further.append(path)
    arguments: dict[str, Any] = {"seed": seed}
    if further:
        arguments["further"] = tuple(further)
    # The legacy WeightNorm had no scalars.
    if "optim.WeightNorm" in emitted.legacy_expression:
        arguments["scalars"] = False
    return arguments


def _is_in_the_way(path: str, leaves: Collection[str]) -> bool:
    return any(_is_around(path, leaf) or _is_around(leaf, path) for leaf in leaves)


def _is_around(outer: str, inner: str) -> bool:
    """Whether a path is another one, or a part of it from its start on."""
    return f"{inner}/".startswith(f"{outer}/")


def _named_paths(expression: str, usual: Collection[str]) -> Iterator[str]:
    """Paths of leaves in which the texts of a definition's traversals occur.

    A group without a leaf would prove nothing. A predicate may ask for a layer or for a leaf
    itself, and for several texts at once.
    """
    for node in ast.walk(ast.parse(expression, mode="eval")):
        # optim.ModelParamTraversal(lambda path, _: "Dense_7" in path)
        if not constructor(node).endswith(TRAVERSAL.__name__):
            continue
        texts = _texts_of_paths(node)
        for text in dict.fromkeys(texts):
            if not any(text in leaf for leaf in usual):
                yield from (f"{text}/kernel", f"{text}/bias", f"Module_0/{text}")
        # lambda path, _: "encoder" in path and "kernel" in path
        if len(texts) > 1:
            yield "/".join(texts)


def _texts_of_paths(node: ast.AST) -> list[str]:
    """The texts below a node that may be a part of a leaf's path, without slashes around them."""
    found: list[str] = []
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, str) and PATH.fullmatch(value):
            found.append(value.strip("/"))
    return found
