"""How a program handles an optimizer as a whole: as a pytree, or by its type."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.leaves import in_any_order, reduces_in_any_order
from codemods.analysis.legacy import legacy_name, legacy_optimizer
from codemods.analysis.origins import LOOPS as REPEATING
from codemods.analysis.origins import Origins, function_of
from codemods.analysis.reflection import is_restored
from codemods.analysis.state_dicts import KIND as STATE_DICT
from codemods.analysis.state_dicts import KNOWN_KEYS, MAKING
from codemods.analysis.uses import TRAIN_STATE, Use
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    AS_TUPLE,
    CONTROL,
    FLATTEN_DICT,
    GLOBAL_NORM,
    MAP_SLICES,
    OF_TREES,
    RAVEL_TREE,
    REDUCE_TREES,
    listed,
)

REDUCING = REDUCE_TREES | RAVEL_TREE | GLOBAL_NORM | AS_TUPLE
LOOPS = CONTROL | MAP_SLICES
"""Functions that call others and return the result of one, or of each in turn."""

COUNTED, BY_PATH = "counted", "by path"
KEYED = "keyed"
TYPED, TAKEN, NESTED = "typed", "taken for another", "taken for a tuple"
FORMATTED = "formatted"
ATTRIBUTE_OF_FIELD = re.compile(r"\{[\w.\[\]]*\.(?:target|state|optimizer_def)\b")
"""In a text that is formatted, a field such as `{0.state.step}`."""

TUPLES = listed("""
    builtins: tuple
    optax: GradientTransformation GradientTransformationExtraArgs
    typing collections.abc: Collection Container Iterable NamedTuple Reversible Sequence
    typing collections.abc: Sized Tuple
""")
"""The types of which a transformation is an instance: it is a tuple."""


HaveFixedRates = Callable[[Collection[LegacyObject], Collection[LegacyObject]], bool]
Unlike = tuple[Use, bool]
"""A place where a train state is unlike an optimizer, and whether only if its leaves matter."""


class Handling:
    """Finds what a train state cannot be used for."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)

    def uses(self, have_fixed_rates: HaveFixedRates) -> list[Use]:
        """The places where a train state would not do what an optimizer did.

        Args:
          have_fixed_rates: whether the learning rates that some definitions were made with hold
            for all of some optimizers, so that a train state has no leaf for one.
        """
        return [
            use
            for use, counts in self._unlike
            if not counts or not self._is_counted_alike(use, have_fixed_rates)
        ]

    @cached_property
    def _unlike(self) -> list[Unlike]:
        if not self.facts.groups:
            return []
        found: list[Unlike] = []
        for unit, call in self.flow.reading.calls:
            found += self._of_call(unit, call)
            found += ((use, False) for use in self._told_apart(unit, call))
        found += ((use, False) for use in self._keyed())
        found += self._measured()
        return found

    @cached_property
    def joined(self) -> frozenset[LegacyObject]:
        """The optimizers that meet others in one tree function, branch or loop.

        Everything in them that is not an array has to be equal there.
        """
        found: set[LegacyObject] = set()
        for _, call in self.flow.reading.calls:
            meeting = self._meeting(call)
            # One allocation site may stand for several optimizers.
            if len(meeting) > 1 or any(map(self._is_made_often, meeting)):
                found.update(meeting)
        return frozenset(found)

    def _meeting(self, call: ast.Call) -> tuple[LegacyObject, ...]:
        """The optimizers that meet in a call."""
        # jax.tree_map(f, optimizer, other)
        if tree_function(self.facts, call) in ("map", "multimap"):
            is_starred = any(isinstance(one, ast.Starred) for one in call.args)
            if len(call.args) <= 2 and not is_starred:
                return ()
            return self.optimizers_in(call)
        # jax.lax.cond(condition, step, skip, optimizer)
        if not LOOPS.isdisjoint(self.facts.externals(call.func)):
            found = self.flow.carried(self.flow.places.read(call))
            return tuple(obj for obj in found if obj.kind == "optimizer")
        return ()

    def _is_made_often(self, optimizer: LegacyObject) -> bool:
        """Whether an optimizer is made in a loop, or in a function with several call sites."""
        function = function_of(optimizer.unit, optimizer.node)
        sites = self.origins.calls(function) if function is not None else []
        return len(sites) > 1 or any(
            isinstance(outer, REPEATING)
            for site, _ in sites
            for outer in site.unit.ancestors(site.node)
        )

    # Calls

    def _of_call(self, unit: Unit, call: ast.Call) -> Iterator[Unlike]:
        tree = tree_function(self.facts, call)
        names = self.facts.names(call.func)
        # jax.tree_util.tree_reduce(lambda x, y: x or y, optimizer)
        if names & REDUCE_TREES and reduces_in_any_order(call, self.facts):
            return
        kind = _kind(tree, names) or (FORMATTED if _reads_attribute(call.func) else "")
        objects = self.optimizers_in(call) if kind else ()
        # jax.tree_leaves(optimizers, is_leaf=lambda x: isinstance(x, optim.Optimizer))
        if objects and not (tree and self._ends_at_optimizers(call)):
            # jax.tree_leaves(optimizer)
            counts = tree in ("leaves", "flatten")
            yield Use("whole", kind, unit, call, objects), counts

    def _ends_at_optimizers(self, call: ast.Call) -> bool:
        """Whether the leaves of a tree are whole optimizers."""
        stops = (word.value for word in call.keywords if word.arg == "is_leaf")
        functions = [one for stop in stops for one in self.facts.functions(stop)]
        # lambda x: isinstance(x, optim.Optimizer)
        return len(functions) == 1 and any(
            "Optimizer" in map(legacy_name, self.facts.externals(node))
            for node in ast.walk(functions[0].node)
            if isinstance(node, ast.Name | ast.Attribute)
        )

    def _measured(self) -> Iterator[Unlike]:
        """Where it is asked how many leaves or nodes the structure of an optimizer has."""
        for unit, node in self.flow.reading.attributes:
            if node.attr not in ("num_leaves", "num_nodes"):
                continue
            # jax.tree_util.tree_structure(optimizer).num_leaves: it stands for the tree
            objects = self.optimizers_in([node.value])
            made = self.flow.sources.origins(self.flow.places.get(node.value))
            calls = [one for one in made if isinstance(one, ast.Call)]
            if objects and not any(map(self._ends_at_optimizers, calls)):
                use = Use("whole", COUNTED, unit, node, objects)
                yield use, node.attr == "num_leaves"

    def _is_counted_alike(self, use: Use, have_fixed_rates: HaveFixedRates) -> bool:
        """Whether nothing depends on the order of the leaves that a call returns, and their number.

        Where a train state has more of them than an optimizer, the number may.
        """
        made: list[LegacyObject] = []
        for obj in use.objects:
            made += self.facts.legacy.definitions(obj) or [obj]
        is_countless = all(map(_is_countless, made)) and have_fixed_rates(
            made, use.objects
        )
        if not isinstance(use.node, ast.Call):
            return is_countless
        return in_any_order(use.node, self.facts, counts=not is_countless)

    def _keyed(self) -> Iterator[Use]:
        """Where a state dict is asked for a key that is not there any more, or for what counts."""
        called = self.flow.engine.index.called
        is_made = any(called.get(word) for word in MAKING)
        for unit in self.facts.project.units if is_made else ():
            for node in unit.nodes:
                asked = _asked(node)
                dicts = self.facts.legacy_objects(asked, STATE_DICT) if asked else ()
                if dicts and isinstance(node, ast.expr | ast.stmt):
                    yield Use("whole", KEYED, unit, node, tuple(dicts))
        yield from self._sorted_out()

    def _sorted_out(self) -> Iterator[Use]:
        """Where the entries of a flat state dict are told apart by keys that are gone.

        No error comes of it: `path[0] == "target"` is never true any more.
        """
        for unit, call in self.flow.reading.calls:
            if FLATTEN_DICT.isdisjoint(self.facts.externals(call.func)):
                continue
            dicts = self.optimizers_in(call, STATE_DICT)
            is_read = any(is_restored(self.facts, one) for one in values_of(call))
            function = function_of(unit, call) if dicts or is_read else None
            for node in ast.walk(function) if function is not None else ():
                if isinstance(node, ast.Compare) and _names_a_key(node):
                    if dicts:
                        yield Use("whole", KEYED, unit, node, dicts)
                    else:
                        yield Use("checkpoint", "target", unit, node, ())

    # What holds optimizers

    def optimizers_in(
        self,
        arguments: ast.Call | Sequence[ast.expr],
        *kinds: str,
    ) -> tuple[LegacyObject, ...]:
        """The objects of some kinds in some arguments, or in those of a call.

        Without any kind, these are optimizers and state dicts.
        """
        if isinstance(arguments, ast.Call):
            arguments = values_of(arguments)
        found: dict[LegacyObject, None] = {}
        for argument in arguments:
            node = argument.value if isinstance(argument, ast.Starred) else argument
            held = self.flow.carried(self.flow.places.read(node))
            for kind in kinds or ("optimizer", STATE_DICT):
                objects = [obj for obj in held if obj.kind == kind]
                if objects and not self.facts.are_params(node):
                    found |= dict.fromkeys(objects)
        return tuple(found)

    # Types

    def _told_apart(self, unit: Unit, call: ast.Call) -> Iterator[Use]:
        """The uses of objects whose type is asked for, where their replacements have another."""
        if len(call.args) not in (1, 2):
            return
        called = {*self.facts.externals(call.func)}
        first = call.args[0]
        kind, objects = TAKEN, list[LegacyObject]()
        # type(optimizer), other than to make or check one
        if "builtins.type" in called:
            kind = TYPED
            objects = self._typed(unit, call)
        # callable(traversal), isinstance(traversal, Callable)
        elif called & {"builtins.callable", "builtins.isinstance"}:
            objects += self.facts.legacy_objects(first, "traversal")
            # isinstance(definition, tuple)
            if "builtins.isinstance" in called:
                of_types = [*self._of_types(first, call.args[-1])]
                is_definition = all(obj.kind == "definition" for obj in of_types)
                is_of_optax = "GradientTransformation" in ast.dump(call)
                if not objects and is_definition and not is_of_optax:
                    kind = NESTED
                objects += of_types
        if objects:
            yield Use("whole", kind, unit, call, tuple(objects))

    def _typed(self, unit: Unit, call: ast.Call) -> list[LegacyObject]:
        # type(optimizer)(…)
        if unit.call_of(call) is not None:
            return []
        objects = self.facts.legacy_objects(call.args[0], "optimizer", "definition")
        match call.args[0]:
            # type(optimizer.optimizer_def), of an optimizer that is made out of view
            case ast.Attribute(value=owner, attr="optimizer_def"):
                made = self.facts.legacy_objects(owner, "optimizer")
                if not objects or any(obj.evidence != "proven" for obj in made):
                    return made
        # type(optimizer) == optim.Optimizer
        are_optimizers = all(obj.kind == "optimizer" for obj in objects)
        is_checked = isinstance(unit.parents.get(call), ast.Compare | ast.Call)
        return [] if is_checked and are_optimizers else objects

    def _of_types(self, node: ast.expr, types: ast.expr) -> Iterator[LegacyObject]:
        """The objects that were of none of some types, but their replacements are."""
        # NESTED = (tuple, list)
        types = self.origins.value(self.origins.variable(types)) or types
        parts = (one for one in ast.walk(types) if isinstance(one, ast.expr))
        names = {name for one in parts for name in self.facts.externals(one)}
        legacy = {*map(legacy_name, names)}
        if names & TUPLES and "OptimizerDef" not in legacy:
            yield from self.facts.legacy_objects(node, "definition")
        if TRAIN_STATE in names and "Optimizer" not in legacy:
            yield from self.facts.legacy_objects(node, "optimizer")


def _asked(node: ast.AST) -> ast.expr | None:
    """The dict of which something is asked that differs for a train state."""
    match node:
        # state_dict.values(): in another order, with counts among them
        case ast.Call(func=ast.Attribute(value=value, attr="values")):
            return value
        # for key, leaf in state_dict.items(): total += leaf.sum()
        case ast.For(iter=ast.Call(func=ast.Attribute(value=value, attr="items"))):
            inner = (one for part in node.body for one in ast.walk(part))
            return (
                value if any(isinstance(one, ast.AugAssign) for one in inner) else None
            )
    return None


def _names_a_key(node: ast.Compare) -> bool:
    """Whether something is compared with a key of a legacy state dict."""
    # path[0] == "target", path[:2] == ("optimizer", "target")
    is_equality = isinstance(node.ops[0], ast.Eq | ast.NotEq)
    return is_equality and any(
        isinstance(one, ast.Constant) and one.value in KNOWN_KEYS
        for one in ast.walk(node)
    )


def _kind(tree: str, names: set[str]) -> str:
    """What a call may do with an optimizer that differs for a train state; empty for others."""
    if names & REDUCING or tree in ("leaves", "flatten"):
        return COUNTED
    # jax.tree_util.tree_flatten_with_path(optimizer)
    return BY_PATH if "with_path" in tree else ""


def _reads_attribute(called: ast.expr) -> bool:
    """Whether this formats a text that has an attribute: `"step {0.state.step}".format`."""
    match called:
        case ast.Attribute(
            value=ast.Constant(value=str(text)), attr="format" | "format_map"
        ):
            return ATTRIBUTE_OF_FIELD.search(text) is not None
    return False


def tree_function(facts: Facts, call: ast.Call) -> str:
    """`map` for `jax.tree_util.tree_map` and its like; empty for all others."""
    for name in sorted(facts.names(call.func)):
        for package in OF_TREES:
            last = name.removeprefix(package)
            if last != name and "." not in last:
                return last
    return ""


def _is_countless(definition: LegacyObject) -> bool:
    """Whether the optax state of a definition has no count."""
    found = legacy_optimizer(definition)
    return found is not None and not (found.counts or found.is_composite)
