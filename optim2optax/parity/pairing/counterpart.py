"""The counterparts in the new tree of the optimizers that `rewrite` emits for the old one."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.model import EmittedOptimizer, FileResult
from optim2optax.parity.optimizer.sampling import names_in
from optim2optax.parity.optimizer.texts import Counterpart, helper_names
from optim2optax.parity.pairing.bound_names import File, Tree
from optim2optax.parity.pairing.following import Slice, slice_of
from optim2optax.parity.pairing.making_places import (
    Helpers,
    Place,
    Places,
    normal,
    paired_places,
    what_they_become,
)

MISSING = "the new tree has no transformation at this place"
UNPAIRED = (
    "no optimizer of the old tree has become this transformation, "
    "so that there is nothing to compare it with"
)


KEPT = frozenset({"optim"})
"""What stays in the old definitions, however a file calls it."""


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
        whole = wanted.root_of(node) if node is not None else None
        # It is compared within that of another optimizer.
        if whole is not None and whole.node is not node and whole.node in nodes:
            continue
        place = pairs.get(node) if node is not None else None
        if node is None or place is None:
            paired.append(_without(emitted))
            continue
        wanted_slice = slice_of(expected, node)
        found_slice = slice_of(actual, place.node)
        if wanted_slice == found_slice:
            # Both depend on the same code.
            paired.append(emitted)
            continue
        at = before.place(emitted.legacy_expression, emitted.line)
        legacy_slice = slice_of(before, at, KEPT)
        # optax.adam(config.lr), with `make(config.lr)` and `optim.Adam(rate)` in the old tree
        if _names(found_slice) - _names(legacy_slice):
            wanted_slice = slice_of(expected, node, in_callers=True)
            found_slice = slice_of(actual, place.node, in_callers=True)
            legacy_slice = slice_of(before, at, KEPT, in_callers=True)
        counterpart = _exchanged(emitted, legacy_slice, wanted_slice, found_slice)
        text = ast.unparse(place.node)
        schedule = _schedule(emitted, expected, node)
        paired.append(replace(counterpart, after=text, schedule=schedule))
    taken = {place.node for place in pairs.values()}
    free = [place for place in found.roots if place.node not in taken and place.makes]
    return (*paired, *map(_unpaired, free))


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
    return tuple(_unpaired(place) for place in places.roots)


def paired_count(optimizers: Sequence[EmittedOptimizer]) -> str:
    """The numbers of optimizers with a counterpart, and of transformations without one."""
    # One that is as `rewrite` emits it is no `Counterpart`, and has a partner.
    counterparts = [
        emitted for emitted in optimizers if isinstance(emitted, Counterpart)
    ]
    reasons = [emitted.reason for emitted in counterparts if emitted.reason]
    unpaired = reasons.count(UNPAIRED)
    old = len(optimizers) - unpaired
    pairs = len(optimizers) - len(reasons)
    text = f"{pairs} of {old} optimizers of the old tree are paired with the new one"
    if not unpaired:
        return text
    return f"{text}; {unpaired} of the new tree belong to none"


def _without(emitted: EmittedOptimizer) -> Counterpart:
    """An optimizer that has no counterpart."""
    return _counterpart(emitted, after="", optax_expression="", reason=MISSING)


def _unpaired(place: Place) -> Counterpart:
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
        reason=UNPAIRED,
    )


def _counterpart(emitted: EmittedOptimizer, **others: Any) -> Counterpart:
    """An optimizer with other fields, and further ones."""
    return Counterpart(**{**vars(emitted), **others})


def _names(part: Slice) -> set[str]:
    return {*names_in(part.expression)}


def _exchanged(
    emitted: EmittedOptimizer, legacy: Slice, wanted: Slice, found: Slice
) -> EmittedOptimizer:
    """The optimizer with the code of the new tree in the place of what `rewrite` emits."""
    alone = _without_clips(found.expression, wanted.expression, emitted)
    common = found.definitions.keys() & wanted.definitions.keys()
    same = {
        name for name in common if found.definitions[name] == wanted.definitions[name]
    }
    return _counterpart(
        emitted,
        legacy_expression=legacy.expression,
        optax_expression=_applied(alone, emitted),
        supports=tuple(found.definitions.values()),
        legacy_supports=tuple(legacy.definitions.values()),
        # A helper that the new tree has as `rewrite` emits it is known to be harmless.
        known=frozenset(same.intersection(helper_names(emitted))),
        changed=frozenset(common - same),
    )


def _schedule(emitted: EmittedOptimizer, expected: File, within: ast.expr) -> str:
    """The source text of the schedule, with its names followed."""
    if not emitted.schedule:
        return ""
    wanted = normal(emitted.schedule)
    for node in ast.walk(within):
        # optax.adam(schedule_of(config)), where `schedule_of(config)` is the schedule
        if isinstance(node, ast.expr) and ast.unparse(node) == wanted:
            return slice_of(expected, node).expression
    return wanted


def _without_clips(expression: str, expected: str, emitted: EmittedOptimizer) -> str:
    """The new expression without the links that the old definition does not have.

    `rewrite` puts the clipping of gradients, which an old program does in its step, into the front
    of the chain: `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))`.
    """
    whole = _links(expected)
    given = _links(expression)
    moved = len(whole) - len(_links(emitted.optax_expression))
    # A new tree that clips otherwise is compared with its clipping.
    if moved <= 0 or whole[:moved] != given[:moved]:
        return expression
    rest = given[moved:]
    if not rest:
        return expression
    if len(rest) == 1:
        return rest[0]
    return f"optax.chain({', '.join(rest)})"


def _applied(expression: str, emitted: EmittedOptimizer) -> str:
    """The new expression with sampled arguments, if it is a function that its program calls."""
    match ast.parse(emitted.optax_expression, mode="eval").body:
        # `make_optimizer(0.1)`, where `make_optimizer` is handed over and called elsewhere
        case ast.Call(func=ast.Name(id=name)) as call if name == emitted.after:
            called = ast.unparse(call.func)
            arguments = emitted.optax_expression[len(called) :]
            return f"({expression}){arguments}"
    return expression


def _links(text: str) -> list[str]:
    """The parts of a chain; anything else is a single part."""
    match ast.parse(text, mode="eval").body:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="optax"), attr="chain"), args=links
        ):
            return [ast.unparse(link) for link in links]
    return [text]
