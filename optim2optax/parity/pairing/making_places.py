"""The expressions of a file that make gradient transformations."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import optax

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.sampling import names_in
from optim2optax.parity.optimizer.texts import helper_names
from optim2optax.parity.pairing.bound_names import Definition, File
from optim2optax.parity.pairing.following import dotted, slice_of

METHOD = "gradient_transformation"


class Helpers:
    """The names of the helpers that `rewrite` emits into a file.

    `making` are those among them that make transformations.
    """

    def __init__(self, optimizers: Sequence[EmittedOptimizer]) -> None:
        self.all: set[str] = set()
        named: set[str] = set()
        for emitted in optimizers:
            self.all.update(helper_names(emitted))
            # scale_by_lamb(0.9, 0.999); a class of the helpers is not in such an expression
            for text in (emitted.after, emitted.optax_expression):
                named.update(names_in(f"({text})"))
        self.making = self.all & named


@dataclass(frozen=True)
class Place:
    """An expression that makes a transformation: where it stands, and what it depends on.

    `makes` is False for a helper that is handed over, and makes a transformation elsewhere.
    """

    scope: str
    target: str
    node: ast.expr
    reached: tuple[ast.AST, ...]
    makes: bool


class Places:
    """The places of one file; the roots are those that are no part of another one."""

    def __init__(
        self, file: File, helpers: Helpers, known: Iterable[ast.expr] = ()
    ) -> None:
        self.file = file
        self.helpers = helpers
        self._known = set(known)
        places = [
            Place(
                scope=file.path(node),
                target=self._target(node),
                node=node,
                reached=slice_of(file, node).reached,
                makes=self._makes(node),
            )
            for node in self._within(file.unit.tree)
        ]
        # kernels = optax.adam(1e-3), a part of `tx = optax.multi_transform({"k": kernels}, labels)`
        parts: set[ast.AST] = set()
        for place in places:
            for reached in place.reached:
                parts.update(ast.walk(reached))
        self.roots = [place for place in places if place.node not in parts]

    def root_of(self, node: ast.expr) -> Place | None:
        """The root that an expression is, or is a part of."""
        for place in self.roots:
            # tx = optax.chain(clip, adam), with `adam = optax.adam(1e-3)` ahead of it
            for part in (place.node, *place.reached):
                if node in ast.walk(part):
                    return place
        return None

    def _within(self, node: ast.AST) -> Iterator[ast.expr]:
        """The outermost expressions below a node that make transformations."""
        for child in ast.iter_child_nodes(node):
            # The inside of a helper is what `rewrite` has made.
            is_helper = isinstance(child, Definition) and child.name in self.helpers.all
            if isinstance(child, ast.expr) and self._is_place(child, node):
                yield child
            elif not is_helper:
                yield from self._within(child)

    def _is_place(self, node: ast.expr, parent: ast.AST) -> bool:
        if node in self._known or self._makes(node):
            return True
        # A helper that is handed over: `train(make_optimizer)`
        is_called = isinstance(parent, ast.Call) and parent.func is node
        is_helper = isinstance(node, ast.Name) and node.id in self.helpers.making
        return is_helper and not is_called

    def _target(self, node: ast.expr) -> str:
        """The target of the assignment around an expression, else the type of the statement."""
        ancestors = self.file.unit.ancestors(node)
        statements = (found for found in ancestors if isinstance(found, ast.stmt))
        statement = next(statements, None)
        match statement:
            # tx = optax.adam(1e-3)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return ast.unparse(target)
        return type(statement).__name__

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
        if isinstance(function, ast.Name) and function.id in self.helpers.making:
            return True
        name = dotted(self.file, function)
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
) -> dict[ast.expr, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    the rest of a scope, then equal texts, then all that is left.
    """
    pairs: dict[ast.expr, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        """Pair places with the same key, among those that have no partner yet."""
        taken = {place.node for place in pairs.values()}
        left = [place for place in expected if place.node not in pairs]
        right = [place for place in actual if place.node not in taken]
        partners = _grouped(right, key)
        for group, places in _grouped(left, key).items():
            others = partners.get(group, [])
            if len(places) == len(others) or not only_as_many:
                for place, other in zip(places, others, strict=False):
                    pairs[place.node] = other

    # In `create_optimizer`, `tx = optax.adam(1e-3)` is still the only assignment to `tx`.
    pair(lambda place: (place.scope, place.target))
    pair(lambda place: place.scope)
    # One of two has been removed, and the other is as it was.
    pair(lambda place: (place.scope, ast.unparse(place.node)), only_as_many=False)
    pair(lambda place: ast.unparse(place.node), only_as_many=False)
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


def what_they_become(
    optimizers: Sequence[EmittedOptimizer], before: File, expected: File
) -> list[tuple[EmittedOptimizer, ast.expr | None]]:
    """The expression that each optimizer has become, or None.

    It is one in the same function or class, if there is one; equal ones are taken in their order.

    Args:
        optimizers: of one file.
        before: the file in the old tree.
        expected: the file as `rewrite` leaves it.
    """
    free: dict[str, list[ast.expr]] = {normal(each.after): [] for each in optimizers}
    kinds = tuple(type(ast.parse(text, mode="eval").body) for text in free)
    for node in expected.unit.nodes:
        # Names, attributes and subscripts may also be assigned to.
        context = getattr(node, "ctx", None)
        if isinstance(node, kinds) and not isinstance(context, ast.Store | ast.Del):
            free.get(ast.unparse(node), []).append(node)
    for nodes in free.values():
        nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    found: list[tuple[EmittedOptimizer, ast.expr | None]] = []
    for emitted in sorted(optimizers, key=lambda emitted: emitted.line):
        same = free[normal(emitted.after)]
        scope = before.path(before.scope_at(emitted.line))
        # `optax.adam(1e-3)` may stand in `create_generator` and in `create_critic`.
        in_scope = (node for node in same if expected.path(node) == scope)
        first = same[0] if same else None
        chosen = next(in_scope, first)
        if chosen is not None:
            same.remove(chosen)
        found.append((emitted, chosen))
    return found


def normal(text: str) -> str:
    """A source text as `ast.unparse` writes it."""
    return ast.unparse(ast.parse(f"({text})", mode="eval"))
