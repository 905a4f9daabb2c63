"""The counterparts in the new tree of the optimizers that `rewrite` emits for the old one."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.model import EmittedOptimizer, FileResult
from optim2optax.parity.optimizer.texts import Counterpart
from optim2optax.parity.pairing.becoming import what_they_become
from optim2optax.parity.pairing.definitions import Tree
from optim2optax.parity.pairing.exchanging import Side, as_counterpart, exchanged
from optim2optax.parity.pairing.pairs import paired_places
from optim2optax.parity.pairing.places import Helpers, Place, Places

MISSING = "the new tree has no transformation at this place"
NOBODYS = (
    "no optimizer of the old tree has become this transformation, "
    "so that there is nothing to compare it with"
)


@dataclass(frozen=True)
class Trees:
    """The old tree, what `rewrite` makes of it, and the new tree.

    A file has the same path below the root of each.
    """

    old: Tree
    expected: Tree
    new: Tree


def trees(results: Mapping[Path, FileResult], old_root: Path, new_root: Path) -> Trees:
    """The three trees, by the results of `rewrite` for paths in the old one."""
    contents = {path: result.after for path, result in results.items()}
    return Trees(Tree(old_root), Tree(old_root, contents), Tree(new_root))


def in_new_tree(
    result: FileResult, old: Path, new: Path, among: Trees
) -> tuple[EmittedOptimizer, ...]:
    """The optimizers of a rewritten old file, with the source text of their counterparts.

    These are in the file at `new` in the new tree. They are paired by place: the function or
    class, the target of the assignment, and the number among those. Definitions that are parts of
    others are compared within these. What has no counterpart, on either side, comes with the
    reason.
    """
    # Most files of a project have no optimizer on either side.
    if not result.optimizers and "optax" not in among.new.text(new):
        return ()
    before = among.old.file(old)
    expected = among.expected.file(old)
    actual = among.new.file(new)
    if before is None or expected is None or actual is None:
        return tuple(_without(emitted) for emitted in result.optimizers)
    helpers = Helpers(result.optimizers)
    become = what_they_become(result.optimizers, before, expected)
    nodes = [node for _, node in become if node is not None]
    wanted = Places(expected, helpers, nodes)
    found = Places(actual, helpers)
    pairs = paired_places(wanted.roots, found.roots)
    paired: list[EmittedOptimizer] = []
    for emitted, node in become:
        # Such as the kernels' `optim.Adam` in the `MultiOptimizer` around it.
        if node is None and _is_part_of_another(emitted, result.optimizers):
            continue
        if node is not None and _is_part_of_a_whole(node, wanted, nodes):
            continue
        place = pairs.get(node) if node is not None else None
        if node is None or place is None:
            paired.append(_without(emitted))
            continue
        wanted_side = Side(expected, node)
        actual_side = Side(actual, place.node)
        paired.append(exchanged(emitted, before, wanted_side, actual_side))
    taken = {place.node for place in pairs.values()}
    free = [place for place in found.roots if place.node not in taken and place.makes]
    return (*paired, *map(_nobodys, free))


def _is_part_of_a_whole(
    node: ast.expr, wanted: Places, nodes: Sequence[ast.expr]
) -> bool:
    """Whether an expression is compared within that of another optimizer."""
    root = wanted.root_of(node)
    if root is None or root.node is node:
        return False
    return root.node in nodes


def _is_part_of_another(
    emitted: EmittedOptimizer, optimizers: Sequence[EmittedOptimizer]
) -> bool:
    """Whether another definition contains this one, so that `rewrite` has made one of both."""
    # optim.MultiOptimizer((kernels, optim.Adam(1e-3)), (biases, optim.GradientDescent(0.1)))
    others = [other for other in optimizers if other is not emitted]
    return any(emitted.legacy_expression in other.legacy_expression for other in others)


def of_new_file(path: Path, among: Trees) -> tuple[EmittedOptimizer, ...]:
    """The transformations of a file that the old tree does not have."""
    if "optax" not in among.new.text(path):
        return ()
    actual = among.new.file(path)
    if actual is None:
        return ()
    places = Places(actual, Helpers(()))
    return tuple(_nobodys(place) for place in places.roots)


def paired_count(optimizers: Sequence[EmittedOptimizer]) -> str:
    """The numbers of optimizers with a counterpart, and of transformations without one."""
    # One that is as `rewrite` emits it is no `Counterpart`, and has a partner.
    counterparts = [
        emitted for emitted in optimizers if isinstance(emitted, Counterpart)
    ]
    reasons = [emitted.reason for emitted in counterparts if emitted.reason]
    nobodys = reasons.count(NOBODYS)
    old = len(optimizers) - nobodys
    pairs = len(optimizers) - len(reasons)
    text = f"{pairs} of {old} optimizers of the old tree are paired with the new one"
    if not nobodys:
        return text
    return f"{text}; {nobodys} of the new tree belong to none"


def _without(emitted: EmittedOptimizer) -> Counterpart:
    """An optimizer that has no counterpart."""
    return replace(
        as_counterpart(emitted), after="", optax_expression="", reason=MISSING
    )


def _nobodys(place: Place) -> Counterpart:
    """A transformation of the new tree that no optimizer of the old one has become."""
    text = ast.unparse(place.node)
    return Counterpart(
        name="optax",
        line=place.node.lineno,
        before="",
        after=text,
        legacy_expression="",
        optax_expression=text,
        injected=False,
        supports=(),
        reason=NOBODYS,
    )
