"""The counterparts in the new tree of the optimizers that `rewrite` emits for the old one."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import (
    Container,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any

import optax

from codemods.model import EmittedOptimizer, FileResult
from codemods.sources.modules import Unit
from optim2optax.parity.optimizer.coverage import INJECTED, sets_rate
from optim2optax.parity.optimizer.sampling import names_in
from optim2optax.parity.optimizer.texts import Counterpart, names_defined
from optim2optax.parity.pairing.following import NOTHING, Definition, Slice, Tree
from optim2optax.parity.pairing.places import Place, paired_places

NO_PARTNER = {
    "after": "",
    "optax_expression": "",
    "reason": "the new tree has no transformation at this place, and none elsewhere that can "
    "only have come from it; a command behind -- compares whole runs",
}
UNPAIRED = (
    "no optimizer of the old tree has become this transformation, "
    "so that there is nothing to compare it with"
)

KEPT = frozenset({"optim"})
"""What stays in the old definitions, however a file calls it."""

CLIPPING = re.compile(r"optax\.(clip|adaptive_grad_clip)")
METHOD = "gradient_transformation"

SETTING = re.compile(rb"\bhyperparams\b|tree_set|Inject\w*State")
"""What code has that sets injected hyperparameters."""


class Pairing:
    """The old tree and the new one: what is in their files, by the paths below their roots.

    `results` are those of `rewrite`, by the same paths.
    """

    def __init__(
        self,
        old: Mapping[str, bytes],
        new: Mapping[str, bytes],
        results: Mapping[str, FileResult],
    ) -> None:
        self.results = results
        self.old = Tree(old, results)
        self.new = Tree(new, (path for path in new if b"optax" in new[path]))
        self.nodes = {
            path: [*self._definitions(path, result)] for path, result in results.items()
        }
        # state.opt_state.hyperparams["learning_rate"] = rate
        self.sets_rates = any(SETTING.search(content) for content in new.values())
        found = chain.from_iterable(self.nodes.values())
        self.become = {node: one.after for one, node in found if node is not None}

    def in_new_tree(self, path: str) -> tuple[EmittedOptimizer, ...]:
        """The optimizers of an old file, with the source text of their counterparts.

        They are paired by place: the file, the function or class, and the target of the assignment.
        Definitions that are parts of others are compared within these. What has no counterpart, on
        either side, comes with the reason.
        """
        roots = {place.node: place for place in self._wanted.get(path, ())}
        paired: list[EmittedOptimizer] = []
        for emitted, node in self.nodes.get(path, ()):
            place = None if node is None else roots.get(node)
            # a part is compared within the whole
            if node is not None and place is None:
                continue
            other = None if place is None else self._pairs.get(place)
            if place is None or other is None:
                paired.append(_counterpart(emitted, **NO_PARTNER))
            else:
                pair = _Pair(self, emitted, place.node, other.node)
                paired.append(pair.compared)
        taken = {*self._pairs.values()}
        free = [place for place in self._found.get(path, ()) if place not in taken]
        # a helper that is handed over makes a transformation elsewhere
        made = (place for place in free if isinstance(place.node, ast.Call))
        return (*paired, *map(_unpaired, made))

    @cached_property
    def _pairs(self) -> dict[Place, Place]:
        wanted, found = (
            [*chain.from_iterable(places.values())]
            for places in (self._wanted, self._found)
        )
        return paired_places(wanted, found)

    @cached_property
    def _wanted(self) -> dict[str, list[Place]]:
        """The places for which the new tree may have others, by the paths of their old files."""
        found: dict[str, list[Place]] = {}
        for path, nodes in self.nodes.items():
            texts = {node: one.after for one, node in nodes if node is not None}
            found[path] = _roots(self.old, texts, self.become)
            # what is optax in the old tree, or is made of no single definition, has a partner, too
            known = {place.text for place in found[path]}
            result = self.results[path]
            expected = Tree({path: result.after}, [path])
            others = _transformations(expected, path, result.optimizers)
            found[path] += (place for place in others if place.text not in known)
        return found

    @cached_property
    def _found(self) -> dict[str, list[Place]]:
        """Where the new tree makes transformations, by the paths of its files."""
        emitted = {path: one.optimizers for path, one in self.results.items()}
        everywhere = (*chain.from_iterable(emitted.values()),)
        return {
            path: _transformations(self.new, path, emitted.get(path) or everywhere)
            for path in self.new.units
        }

    def _definitions(
        self, path: str, result: FileResult
    ) -> Iterator[tuple[EmittedOptimizer, ast.expr | None]]:
        """The optimizers of an old file with the expressions that they were."""
        nodes = self.old.units[path].nodes if result.optimizers else ()
        taken: set[ast.expr] = set()
        for emitted in sorted(result.optimizers, key=lambda emitted: emitted.line):
            text = _normal(emitted.before)
            found = (
                node
                for node in nodes
                if isinstance(node, ast.expr) and node not in taken
                if self.old.line(node) == emitted.line and ast.unparse(node) == text
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
    if unpaired:
        text += f"; {unpaired} of the new tree belong to none"
    return (
        f"{text}. Their steps are not compared, nor what calls give to the functions that make "
        "them: a command behind -- runs all of it."
    )


def _transformations(
    tree: Tree, path: str, optimizers: Sequence[EmittedOptimizer]
) -> list[Place]:
    """Where a file makes transformations, beside those that are parts of others."""
    helpers: set[str] = set()
    named: set[str] = set()
    for emitted in optimizers:
        helpers.update(names_defined(emitted.supports))
        # scale_by_lamb(0.9, 0.999); a class of the helpers is not in such an expression
        for text in (emitted.after, emitted.optax_expression):
            named.update(names_in(f"({text})"))
    making = helpers & named
    unit = tree.units[path]
    # The inside of a helper is what `rewrite` has made.
    inside = {
        inner
        for node in unit.nodes
        if isinstance(node, Definition) and node.name in helpers
        for inner in ast.walk(node)
    }
    nodes = [node for node in unit.nodes if isinstance(node, ast.expr)]
    found = [
        node
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))
        if node not in inside
        if _makes(tree, node, making) or _is_handed(unit, node, making)
    ]
    return _roots(tree, {node: ast.unparse(node) for node in found})


def _is_handed(unit: Unit, node: ast.expr, making: Container[str]) -> bool:
    """Whether this is a helper that is called elsewhere: `train(make_optimizer)`."""
    is_named = isinstance(node, ast.Name) and node.id in making
    return is_named and unit.call_of(node) is None


def _roots(
    tree: Tree, texts: Mapping[ast.expr, str], become: Mapping[ast.expr, str] = NOTHING
) -> list[Place]:
    """The places of some expressions, beside those that are parts of others."""
    # kernels = optax.adam(1e-3), a part of `tx = optax.multi_transform({"k": kernels}, labels)`
    parts: set[ast.AST] = set()
    for node in texts:
        parts.update(inner for inner in ast.walk(node) if inner is not node)
        for reached in tree.slice(node, become=become).reached:
            parts.update(ast.walk(reached))
    return [
        Place(
            tree.unit_of(node).path,
            *_place(tree.unit_of(node), node),
            _normal(text),
            node,
        )
        for node, text in texts.items()
        if node not in parts
    ]


def _place(unit: Unit, node: ast.expr) -> tuple[str, str]:
    """The names of the functions and classes around an expression, and what it is assigned to.

    Where it is no assignment, that is the type of the statement.
    """
    around = [*unit.ancestors(node)]
    scopes = [one.name for one in around if isinstance(one, Definition)]
    statement = next(one for one in around if isinstance(one, ast.stmt))
    target = type(statement).__name__
    match statement:
        # tx = optax.adam(1e-3)
        case ast.Assign(targets=[name]) | ast.AnnAssign(target=name):
            target = ast.unparse(name)
    return ".".join(reversed(scopes)), target


def _makes(tree: Tree, node: ast.expr, making: Container[str]) -> bool:
    """Whether an expression is a call that gives a gradient transformation."""
    match node:
        # optax.MultiSteps(optax.adam(1e-3), 4).gradient_transformation()
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name == METHOD:
            return _makes(tree, inner, making)
        case ast.Call(func=ast.Name(id=name)) if name in making:
            return True
        # optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
        case ast.Call(func=ast.Call(func=function)):
            return tree.slice(function).expression == INJECTED
        case ast.Call(func=ast.Name() | ast.Attribute() as function):
            return makes_transformation(tree.slice(function).expression)
    return False


def makes_transformation(dotted: str) -> bool:
    """Whether a name of optax is one of a function that makes a transformation."""
    # It is a class, and has a method `gradient_transformation`.
    if dotted == "optax.MultiSteps":
        return True
    root, _, path = dotted.partition(".")
    if root != "optax" or dotted == INJECTED:
        return False
    try:
        signature = inspect.signature(attrgetter(path)(optax))
    except (AttributeError, TypeError, ValueError):
        return False
    return "GradientTransformation" in str(signature.return_annotation)


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
        emitted = self.emitted
        wanted, found, legacy = self._slices(in_callers=False)
        is_same = found.expression == wanted.expression
        if is_same and self._alike(wanted, found) == found.definitions.keys():
            # Both depend on the same code.
            return emitted
        moved = self._moved(wanted.expression, found.expression)
        alone = _applied(_without(found.expression, moved), emitted)
        # optax.adam(config.lr), with `make(config.lr)` and `optim.Adam(rate)` in the old tree
        if {*names_in(alone)} - {*names_in(legacy.expression)}:
            wanted, found, legacy = self._slices(in_callers=True)
            alone = _applied(_without(found.expression, moved), emitted)
        alike = self._alike(wanted, found)
        is_rated = sets_rate(emitted)
        common = found.definitions.keys() & (wanted.definitions.keys() | self._helpers)
        old = self.trees.old
        schedule, of_schedule = emitted.schedule, dict[str, str]()
        if schedule:
            followed = old.slice(old.place(schedule, self.old))
            schedule, of_schedule = followed.expression, followed.definitions
        return _counterpart(
            emitted,
            injected=is_rated and not schedule,
            after=ast.unparse(self.new),
            legacy_expression=legacy.expression,
            optax_expression=alone,
            supports=tuple(found.definitions.values()),
            legacy_supports=tuple({**legacy.definitions, **of_schedule}.values()),
            # A helper that the new tree has as `rewrite` emits it is known to be harmless.
            known=frozenset(alike & self._helpers.keys()),
            changed=frozenset(common - alike),
            schedule=schedule,
            remarks=tuple(self._remarks(wanted.expression, found.expression, is_rated)),
        )

    def _remarks(self, wanted: str, found: str, is_rated: bool) -> Iterator[str]:
        """What the old step does, and the new transformation does not."""
        if is_rated and INJECTED in found:
            yield "Whether each step sets the learning rate as the old one does is not compared."
        links, others = _links(wanted), _links(found)
        clips = links[: len(links) - len(_links(self.emitted.optax_expression))]
        if clips and others[: len(clips)] != clips:
            yield (
                f"The old step does what `{clips[0]}` does, and the new transformation does not: "
                "whether the new step does is not compared."
            )
        if CLIPPING.match(others[0]) and others[0] not in links:
            yield (
                f"`{others[0]}` is no part of the old definition. If the old step does that, a "
                "command behind -- compares whole runs."
            )

    def _slices(self, in_callers: bool) -> tuple[Slice, Slice, Slice]:
        """What `rewrite` makes of the old definition, what the new tree has, and the old one."""
        old = self.trees.old
        legacy = old.place(self.emitted.legacy_expression, self.old)
        found = self.trees.new.slice(self.new, in_callers=in_callers)
        if not self.trees.sets_rates:
            expression = _not_injected(found.expression)
            found = replace(found, expression=expression)
        return (
            old.slice(self.old, in_callers=in_callers, become=self.trees.become),
            found,
            old.slice(legacy, KEPT, in_callers),
        )

    def _moved(self, whole: str, found: str) -> int:
        """The number of links that the old definition does not have, at the front of the chain.

        `rewrite` puts the clipping of gradients there, which an old program does in its step:
        `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))`.
        """
        links = _links(whole)
        moved = max(0, len(links) - len(_links(self.emitted.optax_expression)))
        # A new tree that clips otherwise is compared with its clipping.
        return moved if links[:moved] == _links(found)[:moved] else 0

    @cached_property
    def _helpers(self) -> dict[str, str]:
        """The helpers that `rewrite` emits, as they are in a slice."""
        found: dict[str, str] = {}
        for source in self.emitted.supports:
            tree = Tree({"helper.py": source.encode()}, ["helper.py"])
            for node in tree.units["helper.py"].tree.body:
                if isinstance(node, Definition):
                    found[node.name] = tree.definition(node)
        return found

    def _alike(self, wanted: Slice, found: Slice) -> set[str]:
        """The definitions of the new tree that are as `rewrite` leaves or emits them."""
        known = {**self._helpers, **wanted.definitions}
        return {
            name for name, text in found.definitions.items() if known.get(name) == text
        }


def _not_injected(text: str) -> str:
    """An expression without the injection of hyperparameters that nothing sets."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        match node:
            # optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
            case ast.Call(func=ast.Call(func=outer, args=[made])) if (
                ast.unparse(outer) == INJECTED
            ):
                node.func = made
    return ast.unparse(tree)


def _without(expression: str, moved: int) -> str:
    """A chain without its first links."""
    rest = _links(expression)[moved:]
    if len(rest) > 1 and moved:
        return f"optax.chain({', '.join(rest)})"
    return rest[0] if moved and rest else expression


def _applied(expression: str, emitted: EmittedOptimizer) -> str:
    """The new expression with sampled arguments, if it is a function that its program calls."""
    # `make_optimizer(0.1)`, where `make_optimizer` is handed over and called elsewhere
    name, _, arguments = emitted.optax_expression.partition("(")
    if name != emitted.after:
        return expression
    return _normal(f"({expression})({arguments}")


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
