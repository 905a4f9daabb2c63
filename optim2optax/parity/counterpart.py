"""The counterparts in the new tree of the optimizers that `rewrite` emits for the old one."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import optax

from codemods.model import EmittedOptimizer, FileResult
from optim2optax.parity.definitions import Definition, Definitions, Slice, Tree
from optim2optax.parity.emitted import Counterpart, helper_names

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
    helpers = _Helpers(result.optimizers)
    nodes = _nodes(result.optimizers, before, expected)
    wanted = _Places(expected, helpers, [node for _, node in nodes if node is not None])
    found = _Places(actual, helpers)
    pairs = _paired(wanted.roots, found.roots)
    whole = {node for _, node in nodes}
    paired: list[EmittedOptimizer] = []
    for emitted, node in nodes:
        if node is None:
            if not _is_part_of_another(emitted, result.optimizers):
                paired.append(_without(emitted))
            continue
        root = wanted.root_of(node)
        # The kernels' `optim.Adam` is compared within the `MultiOptimizer` around it.
        if root is not None and root.node is not node and root.node in whole:
            continue
        place = pairs.get(node)
        if place is None:
            paired.append(_without(emitted))
        else:
            sides = _Side(expected, node), _Side(actual, place.node)
            paired.append(_counterpart(emitted, before, *sides))
    taken = {place.node for place in pairs.values()}
    free = [place for place in found.roots if place.node not in taken and place.makes]
    return (*paired, *map(_nobodys, free))


def _is_part_of_another(emitted: EmittedOptimizer, optimizers: Sequence[EmittedOptimizer]) -> bool:
    """Whether another definition contains this one, so that `rewrite` has made one of both."""
    others = (other for other in optimizers if other is not emitted)
    return any(emitted.legacy_expression in other.legacy_expression for other in others)


def of_new_file(path: Path, among: Trees) -> tuple[EmittedOptimizer, ...]:
    """The transformations of a file that the old tree does not have."""
    actual = among.new.file(path) if "optax" in among.new.text(path) else None
    if actual is None:
        return ()
    return tuple(map(_nobodys, _Places(actual, _Helpers(())).roots))


def paired_count(optimizers: Sequence[EmittedOptimizer]) -> str:
    """The numbers of optimizers with a counterpart, and of transformations without one."""
    counterparts = [emitted for emitted in optimizers if isinstance(emitted, Counterpart)]
    reasons = [emitted.reason for emitted in counterparts if emitted.reason]
    nobodys = reasons.count(NOBODYS)
    old = len(optimizers) - nobodys
    pairs = len(optimizers) - len(reasons)
    text = f"{pairs} of {old} optimizers of the old tree are paired with the new one"
    return f"{text}; {nobodys} of the new tree belong to none" if nobodys else text


def _without(emitted: EmittedOptimizer) -> Counterpart:
    """An optimizer that has no counterpart."""
    return replace(_as_counterpart(emitted), after="", optax_expression="", reason=MISSING)


def _nobodys(place: Place) -> Counterpart:
    """A transformation of the new tree that no optimizer of the old one has become."""
    text = ast.unparse(place.node)
    return Counterpart("optax", place.node.lineno, "", text, "", text, False, (), reason=NOBODYS)


def _as_counterpart(emitted: EmittedOptimizer) -> Counterpart:
    return Counterpart(*(getattr(emitted, field.name) for field in fields(EmittedOptimizer)))


@dataclass(frozen=True)
class _Side:
    """An expression in its file."""

    file: Definitions
    node: ast.expr

    @cached_property
    def slice(self) -> Slice:
        return self.file.slice_of(self.node)


def _counterpart(
    emitted: EmittedOptimizer, before: Definitions, expected: _Side, actual: _Side
) -> EmittedOptimizer:
    """The optimizer with the code of the new tree in the place of what `rewrite` emits.

    It is the optimizer itself where both depend on the same code.
    """
    if expected.slice == actual.slice:
        return emitted
    legacy = before.slice_of_text(emitted.legacy_expression, emitted.line, frozenset({"optim"}))
    alone = _without_clips(actual.slice.expression, expected.slice.expression, emitted)
    definitions = dict(actual.slice.definitions)
    wanted = dict(expected.slice.definitions)
    helpers = helper_names(emitted)
    return replace(
        _as_counterpart(emitted),
        after=ast.unparse(actual.node),
        legacy_expression=legacy.expression,
        optax_expression=_applied(alone, emitted),
        supports=tuple(definitions.values()),
        legacy_supports=tuple(source for _, source in legacy.definitions),
        known=frozenset(name for name in helpers if definitions.get(name, "") == wanted.get(name)),
        changed=frozenset(
            name for name, source in definitions.items() if source != wanted.get(name, source)
        ),
        schedule=_schedule(emitted, expected),
    )


def _schedule(emitted: EmittedOptimizer, expected: _Side) -> str:
    """The source text of the schedule, with its names followed."""
    if not emitted.schedule:
        return ""
    wanted = _normal(emitted.schedule)
    for node in ast.walk(expected.node):
        if isinstance(node, ast.expr) and ast.unparse(node) == wanted:
            return expected.file.slice_of(node).expression
    return wanted


def _without_clips(expression: str, expected: str, emitted: EmittedOptimizer) -> str:
    """The new expression without the links that the old definition does not have.

    `rewrite` puts the clipping of gradients, which an old program does in its step, into the front
    of the chain: `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))`.
    """
    whole = _links(expected)
    given = _links(expression)
    moved = len(whole) - len(_links(emitted.optax_expression))
    if moved <= 0 or whole[:moved] != given[:moved] or not given[moved:]:
        return expression
    rest = given[moved:]
    return rest[0] if len(rest) == 1 else f"optax.chain({', '.join(rest)})"


def _applied(expression: str, emitted: EmittedOptimizer) -> str:
    """The new expression with sampled arguments, if it is a function that its program calls."""
    match ast.parse(emitted.optax_expression, mode="eval").body:
        # `make_optimizer(0.1)`, where `make_optimizer` is handed over and called elsewhere
        case ast.Call(func=ast.Name(id=name)) as call if name == emitted.after:
            arguments = emitted.optax_expression[len(ast.unparse(call.func)) :]
            return f"({expression}){arguments}"
    return expression


def _links(text: str) -> list[str]:
    """The parts of a chain; anything else is a single part."""
    match ast.parse(text, mode="eval").body:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="optax"), attr="chain"), args=links):
            return [ast.unparse(link) for link in links]
    return [text]


def _normal(text: str) -> str:
    """A source text as `ast.unparse` writes it."""
    return ast.unparse(ast.parse(f"({text})", mode="eval"))


class _Helpers:
    """The names of the helpers that `rewrite` emits into a file.

    `making` are those among them that make transformations.
    """

    def __init__(self, optimizers: Sequence[EmittedOptimizer]) -> None:
        self.all: set[str] = set()
        named: set[str] = set()
        for emitted in optimizers:
            self.all.update(helper_names(emitted))
            for text in (emitted.after, emitted.optax_expression):
                nodes = ast.walk(ast.parse(f"({text})"))
                named.update(node.id for node in nodes if isinstance(node, ast.Name))
        self.making = self.all & named


def _nodes(
    optimizers: Sequence[EmittedOptimizer], before: Definitions, expected: Definitions
) -> list[tuple[EmittedOptimizer, ast.expr | None]]:
    """The expression that each optimizer has become, or None.

    It is one in the same function or class, if there is one; equal ones are taken in their order.
    """
    kinds = {type(ast.parse(f"({emitted.after})", mode="eval").body) for emitted in optimizers}
    free: dict[str, list[ast.expr]] = {}
    for place in _expressions(expected.tree, kinds):
        free.setdefault(ast.unparse(place), []).append(place)
    found: list[tuple[EmittedOptimizer, ast.expr | None]] = []
    for emitted in sorted(optimizers, key=lambda emitted: emitted.line):
        same = free.get(_normal(emitted.after), [])
        scope = before.path(before.scope_at(emitted.line))
        in_scope = (node for node in same if expected.path(node) == scope)
        node = next(in_scope, same[0] if same else None)
        if node is not None:
            same.remove(node)
        found.append((emitted, node))
    return found


def _expressions(tree: ast.AST, kinds: set[type[ast.expr]]) -> list[ast.expr]:
    """The expressions of these types that are read, in the order of the file."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.expr) and type(node) in kinds)
    # Names, attributes and subscripts may also be assigned to.
    loaded = (node for node in nodes if isinstance(getattr(node, "ctx", ast.Load()), ast.Load))
    return sorted(loaded, key=lambda node: (node.lineno, node.col_offset))


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


class _Places:
    """The places of one file; the roots are those that are no part of another one."""

    def __init__(
        self, file: Definitions, helpers: _Helpers, known: Iterable[ast.expr] = ()
    ) -> None:
        self.file = file
        self.helpers = helpers
        self._known = set(known)
        self.all = [self._place(node) for node in self._within(file.tree)]
        parts: set[ast.AST] = set()
        for place in self.all:
            for reached in place.reached:
                parts.update(ast.walk(reached))
        self.roots = [place for place in self.all if place.node not in parts]

    def root_of(self, node: ast.expr) -> Place | None:
        """The root that an expression is, or is a part of."""
        for place in self.roots:
            if place.node is node:
                return place
            if any(node in ast.walk(part) for part in (place.node, *place.reached)):
                return place
        return None

    def _within(self, node: ast.AST) -> Iterator[ast.expr]:
        """The outermost expressions below a node that make transformations."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and self._is_place(child, node):
                yield child
            # The helpers themselves are the work of `rewrite`.
            elif not (isinstance(child, Definition) and child.name in self.helpers.all):
                yield from self._within(child)

    def _is_place(self, node: ast.expr, parent: ast.AST) -> bool:
        return node in self._known or self._makes(node) or self._is_handed_over(node, parent)

    def _place(self, node: ast.expr) -> Place:
        _, _, reached = self.file.followed(node)
        scope = self.file.path(node)
        target = self._target(node)
        return Place(scope, target, node, tuple(reached), self._makes(node))

    def _target(self, node: ast.expr) -> str:
        """The target of the assignment around an expression, else the type of the statement."""
        ancestors = self.file.ancestors(node)
        statement = next((found for found in ancestors if isinstance(found, ast.stmt)), None)
        match statement:
            # tx = optax.adam(1e-3)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return ast.unparse(target)
        return type(statement).__name__

    def _makes(self, node: ast.expr) -> bool:
        """Whether an expression is a call that gives a gradient transformation."""
        if not isinstance(node, ast.Call):
            return False
        # optax.MultiSteps(optax.adam(1e-3), 4).gradient_transformation()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "gradient_transformation":
            return self._makes(node.func.value)
        is_applied = isinstance(node.func, ast.Call)
        function = node.func.func if isinstance(node.func, ast.Call) else node.func
        if isinstance(function, ast.Name) and function.id in self.helpers.making:
            return True
        dotted = self.file.dotted(function)
        # optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
        if dotted == "optax.inject_hyperparams":
            return is_applied
        return not is_applied and makes_transformation(dotted)

    def _is_handed_over(self, node: ast.expr, parent: ast.AST) -> bool:
        """Whether this is the name of a helper that is not called: `train(make_optimizer)`."""
        is_called = isinstance(parent, ast.Call) and parent.func is node
        return isinstance(node, ast.Name) and node.id in self.helpers.making and not is_called


def makes_transformation(dotted: str) -> bool:
    """Whether a name of optax is one of a function that makes a transformation."""
    root, _, path = dotted.partition(".")
    if dotted == "optax.MultiSteps":
        return True
    if root != "optax" or not all(part.isidentifier() for part in path.split(".")):
        return False
    try:
        result = inspect.signature(attrgetter(path)(optax)).return_annotation
        return "GradientTransformation" in str(result)
    except (AttributeError, TypeError, ValueError):
        return False


def _paired(expected: Sequence[Place], actual: Sequence[Place]) -> dict[ast.expr, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    the rest of a scope, then equal texts, then all that is left.
    """
    pairs: dict[ast.expr, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        taken = {place.node for place in pairs.values()}
        left = _grouped([place for place in expected if place.node not in pairs], key)
        right = _grouped([place for place in actual if place.node not in taken], key)
        for group, places in left.items():
            others = right.get(group, [])
            if len(places) == len(others) or not only_as_many:
                pairs.update(zip((place.node for place in places), others, strict=False))

    pair(lambda place: (place.scope, place.target))
    pair(lambda place: place.scope)
    pair(lambda place: (place.scope, ast.unparse(place.node)), only_as_many=False)
    pair(lambda place: ast.unparse(place.node), only_as_many=False)
    # Here the number of places has to be the same on both sides again.
    pair(lambda _: None)
    return pairs


def _grouped(
    places: Iterable[Place], key: Callable[[Place], Hashable]
) -> dict[Hashable, list[Place]]:
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups
