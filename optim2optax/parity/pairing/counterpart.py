"""The counterparts in the new tree of the optimizers that `rewrite` emits for the old one."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import optax

from codemods.model import EmittedOptimizer, FileResult
from codemods.sources.modules import Unit
from optim2optax.parity.optimizer.sampling import names_in
from optim2optax.parity.optimizer.texts import Counterpart, names_defined
from optim2optax.parity.pairing.following import (
    NOTHING,
    Become,
    Definition,
    Slice,
    Tree,
)

NO_PARTNER = {
    "after": "",
    "optax_expression": "",
    "reason": "the new tree has no transformation at this place",
}
UNPAIRED = (
    "no optimizer of the old tree has become this transformation, "
    "so that there is nothing to compare it with"
)

KEPT = frozenset({"optim"})
"""What stays in the old definitions, however a file calls it."""

METHOD = "gradient_transformation"


@dataclass(frozen=True, eq=False)
class Place:
    """An expression that makes an optimizer: where it stands, and its text in the new tree."""

    scope: str
    target: str
    text: str
    node: ast.expr


class Pairing:
    """The old tree and the new one, in which a file has the same path below the root.

    `results` are those of `rewrite`, by the paths of the old files.
    """

    def __init__(
        self, old_root: Path, new_root: Path, results: Mapping[Path, FileResult]
    ) -> None:
        self.old = Tree(old_root)
        self.new = Tree(new_root)
        self.results = results
        self.nodes = {path: [*self._definitions(path)] for path in results}
        self.become = {
            node: emitted.after
            for found in self.nodes.values()
            for emitted, node in found
            if node is not None
        }

    def in_new_tree(self, old: Path, new: Path) -> tuple[EmittedOptimizer, ...]:
        """The optimizers of an old file, with the source text of their counterparts.

        These are in the file at `new` in the new tree. They are paired by place: the function or
        class, the target of the assignment, and the number among those. Definitions that are
        parts of others are compared within these. What has no counterpart, on either side, comes
        with the reason.
        """
        result = self.results[old]
        # Most files of a project have no optimizer on either side.
        if not result.optimizers and not self.new.mentions(new, b"optax"):
            return ()
        before, after = self.old.unit(old), self.new.unit(new)
        if before is None or after is None:
            return tuple(_counterpart(one, **NO_PARTNER) for one in result.optimizers)
        own = {node: one.after for one, node in self.nodes[old] if node is not None}
        wanted = _roots(self.old, before, own, self.become)
        # what is optax in the old tree, or is made of no single definition, has a partner, too
        known = {place.text for place in wanted}
        expected = self.old.add(old, result.after)
        others = _transformations(self.old, expected, result.optimizers)
        rest = (place for place in others if place.text not in known)
        found = _transformations(self.new, after, result.optimizers)
        pairs = paired_places([*wanted, *rest], found)
        roots = {place.node: place for place in wanted}
        paired: list[EmittedOptimizer] = []
        for emitted, node in self.nodes[old]:
            place = None if node is None else roots.get(node)
            # a part is compared within the whole
            if node is not None and place is None:
                continue
            other = None if place is None else pairs.get(place)
            if place is None or other is None:
                paired.append(_counterpart(emitted, **NO_PARTNER))
            else:
                pair = _Pair(self, emitted, place.node, other.node)
                paired.append(pair.compared)
        free = [place for place in found if place not in pairs.values()]
        # a helper that is handed over makes a transformation elsewhere
        made = (place for place in free if isinstance(place.node, ast.Call))
        return (*paired, *map(_unpaired, made))

    def of_new_file(self, path: Path) -> tuple[EmittedOptimizer, ...]:
        """The transformations of a file that the old tree does not have."""
        unit = self.new.unit(path) if self.new.mentions(path, b"optax") else None
        if unit is None:
            return ()
        return tuple(map(_unpaired, _transformations(self.new, unit, ())))

    def _definitions(
        self, old: Path
    ) -> Iterator[tuple[EmittedOptimizer, ast.expr | None]]:
        """The optimizers of an old file with the expressions that they were.

        Those that `rewrite` has put into others are compared with these.
        """
        optimizers = self.results[old].optimizers
        unit = self.old.unit(old) if optimizers else None
        if unit is None:
            return
        expected = ast.unparse(self.old.add(old, self.results[old].after).tree)
        taken: set[ast.expr] = set()
        for emitted in sorted(optimizers, key=lambda emitted: emitted.line):
            # optim.MultiOptimizer((kernels, optim.Adam(1e-3)), (biases, optim.Momentum(0.1)))
            legacy = emitted.legacy_expression
            others = [one for one in optimizers if one.legacy_expression != legacy]
            wholes = [one for one in others if legacy in one.legacy_expression]
            rest = expected
            for whole in wholes:
                rest = rest.replace(_normal(whole.after), "")
            if wholes and _normal(emitted.after) not in rest:
                continue
            text = _normal(emitted.before)
            found = (
                node
                for node in unit.nodes
                if isinstance(node, ast.expr) and node not in taken
                if unit.line(node.lineno) == emitted.line and ast.unparse(node) == text
            )
            node = next(found, None)
            taken.update(() if node is None else (node,))
            yield emitted, node


def paired_count(optimizers: Sequence[EmittedOptimizer]) -> str:
    """The numbers of optimizers with a counterpart, and of transformations without one."""
    # One that is as `rewrite` emits it is no `Counterpart`, and has a partner.
    reasons = [getattr(emitted, "reason", "") for emitted in optimizers]
    unpaired = reasons.count(UNPAIRED)
    old = len(optimizers) - unpaired
    pairs = reasons.count("")
    text = f"{pairs} of {old} optimizers of the old tree are paired with the new one"
    return f"{text}; {unpaired} of the new tree belong to none" if unpaired else text


def _transformations(
    tree: Tree, unit: Unit, optimizers: Sequence[EmittedOptimizer]
) -> list[Place]:
    """Where a file makes transformations, beside those that are parts of others."""
    helpers: set[str] = set()
    named: set[str] = set()
    for emitted in optimizers:
        helpers.update(names_defined(emitted.supports))
        # scale_by_lamb(0.9, 0.999); a class of the helpers is not in such an expression
        for text in (emitted.after, emitted.optax_expression):
            named.update(names_in(f"({text})"))
    making = _Making(tree, helpers, helpers & named)
    nodes = {node: ast.unparse(node) for node in making.below(unit.tree)}
    return _roots(tree, unit, nodes)


def _roots(
    tree: Tree, unit: Unit, texts: Mapping[ast.expr, str], become: Become = NOTHING
) -> list[Place]:
    """The places of some expressions, beside those that are parts of others."""
    # kernels = optax.adam(1e-3), a part of `tx = optax.multi_transform({"k": kernels}, labels)`
    parts: set[ast.AST] = set()
    for node in texts:
        parts.update(inner for inner in ast.walk(node) if inner is not node)
        for reached in tree.slice(node, become=become).reached:
            parts.update(ast.walk(reached))
    return [
        Place(_scope(unit, node), _target(unit, node), _normal(text), node)
        for node, text in texts.items()
        if node not in parts
    ]


def _scope(unit: Unit, node: ast.expr) -> str:
    """The names of the functions and classes around a node, with dots between."""
    around = (one for one in unit.ancestors(node) if isinstance(one, Definition))
    return ".".join(reversed([one.name for one in around]))


def _target(unit: Unit, node: ast.expr) -> str:
    """The target of the assignment around an expression, else the type of the statement."""
    ancestors = unit.ancestors(node)
    statement = next(one for one in ancestors if isinstance(one, ast.stmt))
    match statement:
        # tx = optax.adam(1e-3)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return ast.unparse(target)
    return type(statement).__name__


@dataclass(frozen=True)
class _Making:
    """Which expressions make transformations. `making` are the `helpers` that do."""

    tree: Tree
    helpers: set[str]
    making: set[str]

    def below(self, node: ast.AST) -> Iterator[ast.expr]:
        """The outermost expressions below a node that make transformations."""
        for child in ast.iter_child_nodes(node):
            # The inside of a helper is what `rewrite` has made.
            is_helper = isinstance(child, Definition) and child.name in self.helpers
            # A helper that is handed over: `train(make_optimizer)`
            is_called = isinstance(node, ast.Call) and node.func is child
            is_handed = isinstance(child, ast.Name) and child.id in self.making
            if isinstance(child, ast.expr) and (
                self._makes(child) or (is_handed and not is_called)
            ):
                yield child
            elif not is_helper:
                yield from self.below(child)

    def _makes(self, node: ast.expr) -> bool:
        """Whether an expression is a call that gives a gradient transformation."""
        if not isinstance(node, ast.Call):
            return False
        function = node.func
        # optax.MultiSteps(optax.adam(1e-3), 4).gradient_transformation()
        if isinstance(function, ast.Attribute) and function.attr == METHOD:
            return self._makes(function.value)
        is_applied = isinstance(function, ast.Call)
        if isinstance(function, ast.Call):
            function = function.func
        if isinstance(function, ast.Name) and function.id in self.making:
            return True
        if not isinstance(function, ast.Name | ast.Attribute):
            return False
        name = self.tree.slice(function).expression
        # optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
        if name == "optax.inject_hyperparams":
            return is_applied
        return not is_applied and makes_transformation(name)


def makes_transformation(dotted: str) -> bool:
    """Whether a name of optax is one of a function that makes a transformation."""
    # It is a class, and has a method `gradient_transformation`.
    if dotted == "optax.MultiSteps":
        return True
    root, _, path = dotted.partition(".")
    is_path = all(part.isidentifier() for part in path.split("."))
    if root != "optax" or not is_path:
        return False
    try:
        function = attrgetter(path)(optax)
        result = inspect.signature(function).return_annotation
    except (AttributeError, TypeError, ValueError):
        return False
    return "GradientTransformation" in str(result)


def paired_places(
    expected: Sequence[Place], actual: Sequence[Place]
) -> dict[Place, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    the rest of a scope, then equal texts, then all that is left.
    """
    pairs: dict[Place, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        """Pair places with the same key, among those that have no partner yet."""
        left = _grouped((one for one in expected if one not in pairs), key)
        taken = {*pairs.values()}
        right = _grouped((one for one in actual if one not in taken), key)
        for group, places in left.items():
            others = right.get(group, [])
            if len(places) == len(others) or not only_as_many:
                pairs.update(zip(places, others, strict=False))

    # In `create_optimizer`, `tx = optax.adam(1e-3)` is still the only assignment to `tx`.
    pair(lambda place: (place.scope, place.target))
    pair(lambda place: place.scope)
    # One of two has been removed, and the other is as it was.
    pair(lambda place: (place.scope, place.text), only_as_many=False)
    pair(lambda place: place.text, only_as_many=False)
    # A function has got another name. Here the numbers have to be the same on both sides again.
    pair(lambda _: None)
    return pairs


def _grouped(
    places: Iterable[Place], key: Callable[[Place], Hashable]
) -> dict[Hashable, list[Place]]:
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups


def _unpaired(place: Place) -> Counterpart:
    """A transformation of the new tree that no optimizer of the old one has become."""
    return Counterpart(
        name="optax",
        line=place.node.lineno,
        before="",
        after=place.text,
        legacy_expression="",
        optax_expression=place.text,
        injected=False,
        supports=(),
        reason=UNPAIRED,
    )


def _counterpart(emitted: EmittedOptimizer, **others: Any) -> Counterpart:
    """An optimizer with other fields, and further ones."""
    return Counterpart(**{**vars(emitted), **others})


@dataclass(frozen=True)
class _Pair:
    """An optimizer, its expression in the old tree, and the one that it has become."""

    trees: Pairing
    emitted: EmittedOptimizer
    old: ast.expr
    new: ast.expr

    @property
    def compared(self) -> EmittedOptimizer:
        """The optimizer with the code of the new tree in the place of what `rewrite` emits."""
        wanted, found, legacy = self._slices(in_callers=False)
        same = found.expression == wanted.expression
        if same and self._alike(wanted, found) == found.definitions.keys():
            # Both depend on the same code.
            return self.emitted
        moved = _moved(found.expression, wanted.expression, self.emitted)
        alone = _without(found.expression, moved)
        # optax.adam(config.lr), with `make(config.lr)` and `optim.Adam(rate)` in the old tree
        if {*names_in(alone)} - {*names_in(legacy.expression)}:
            wanted, found, legacy = self._slices(in_callers=True)
            alone = _without(found.expression, moved)
        alike = self._alike(wanted, found)
        common = found.definitions.keys() & (wanted.definitions.keys() | self._helpers)
        return _counterpart(
            self.emitted,
            after=ast.unparse(self.new),
            legacy_expression=legacy.expression,
            optax_expression=_applied(alone, self.emitted),
            supports=tuple(found.definitions.values()),
            legacy_supports=tuple(legacy.definitions.values()),
            # A helper that the new tree has as `rewrite` emits it is known to be harmless.
            known=frozenset(alike & self._helpers.keys()),
            changed=frozenset(common - alike),
            schedule=self._schedule(),
        )

    def _slices(self, in_callers: bool) -> tuple[Slice, Slice, Slice]:
        """What `rewrite` makes of the old definition, what the new tree has, and the old one."""
        old = self.trees.old
        legacy = old.place(self.emitted.legacy_expression, self.old)
        return (
            old.slice(self.old, in_callers=in_callers, become=self.trees.become),
            self.trees.new.slice(self.new, in_callers=in_callers),
            old.slice(legacy, KEPT, in_callers),
        )

    @cached_property
    def _helpers(self) -> dict[str, str]:
        """The helpers that `rewrite` emits, as they are in a slice."""
        old = self.trees.old
        units = (old.add(old.root, source.encode()) for source in self.emitted.supports)
        return {
            node.name: old.definition(node)
            for unit in units
            for node in unit.tree.body
            if isinstance(node, Definition)
        }

    def _alike(self, wanted: Slice, found: Slice) -> set[str]:
        """The definitions of the new tree that are as `rewrite` leaves or emits them."""
        known = {**self._helpers, **wanted.definitions}
        return {
            name for name, text in found.definitions.items() if known.get(name) == text
        }

    def _schedule(self) -> str:
        """The source text of the schedule, with its names followed."""
        if not self.emitted.schedule:
            return ""
        old = self.trees.old
        return old.slice(old.place(self.emitted.schedule, self.old)).expression


def _moved(given: str, expected: str, emitted: EmittedOptimizer) -> int:
    """The number of links that the old definition does not have, at the front of the chain.

    `rewrite` puts the clipping of gradients there, which an old program does in its step:
    `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))`.
    """
    whole = _links(expected)
    moved = max(0, len(whole) - len(_links(emitted.optax_expression)))
    # A new tree that clips otherwise is compared with its clipping.
    return moved if whole[:moved] == _links(given)[:moved] else 0


def _without(expression: str, moved: int) -> str:
    """A chain without its first links."""
    rest = _links(expression)[moved:]
    if len(rest) > 1 and moved:
        return f"optax.chain({', '.join(rest)})"
    return rest[0] if moved and rest else expression


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


def _normal(text: str) -> str:
    """A source text as `ast.unparse` writes it."""
    return ast.unparse(ast.parse(f"({text})", mode="eval"))
