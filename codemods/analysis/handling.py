"""How a program handles an optimizer as a whole: as a pytree, by comparing or by pickling it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.leaves import in_any_order, reduces_in_any_order
from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.naming import last_word
from codemods.analysis.origins import LOOPS as REPEATING
from codemods.analysis.origins import Origins, function_of, statement_of
from codemods.analysis.state_dicts import KIND as STATE_DICT
from codemods.analysis.state_dicts import KNOWN_KEYS, MAKING
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.objects import (
    Container,
    Instance,
    LegacyObject,
    Object,
    Place,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    AS_TUPLE,
    CONTROL,
    FLATTEN_DICT,
    FROM_STATE_DICT,
    GLOBAL_NORM,
    MAP_SLICES,
    OF_TREES,
    PICKLE,
    RAVEL_TREE,
    REDUCE_TREES,
    TO_STATE_DICT,
    WITHOUT_PICKLE,
)

REDUCING = REDUCE_TREES | RAVEL_TREE | GLOBAL_NORM | AS_TUPLE
LOOPS = CONTROL | MAP_SLICES
"""Functions that call others and return the result of one, or of each in turn."""

PROCESSES = "concurrent.futures.ProcessPoolExecutor"

PICKLED, COMPARED, COUNTED, BY_PATH = "pickled", "compared", "counted", "by path"
KEYED, TYPED, FORMATTED = "keyed", "typed", "formatted"
ATTRIBUTE_OF_FIELD = re.compile(r"\{[\w.\[\]]*\.(?:target|state|optimizer_def)\b")
"""In a text that is formatted, a field such as `{0.state.step}`."""


HaveFixedRates = Callable[[Collection[LegacyObject], Collection[LegacyObject]], bool]
Unlike = tuple[Use, ast.Call | None]
"""A place where a train state is unlike an optimizer; that of a call only if its leaves matter."""


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
        found = []
        for use, counting in self._unlike:
            if counting is None or not self._is_counted_alike(
                counting, have_fixed_rates
            ):
                found.append(use)
        return found

    @cached_property
    def _unlike(self) -> list[Unlike]:
        if not any(obj.kind == "optimizer" for obj in self.facts.groups):
            return []
        found: list[Unlike] = []
        for unit, call in self.flow.reading.calls:
            found += self._of_call(unit, call)
        found += ((use, None) for use in self._of_others())
        return found

    def _of_others(self) -> Iterator[Use]:
        """The places that are no calls, or not of a function that takes an optimizer."""
        for unit, call in self.flow.reading.calls:
            # type(optimizer)
            if "builtins.type" in self.facts.externals(call.func):
                objects = self._typed(unit, call)
                if objects:
                    yield Use("whole", TYPED, unit, call, objects)
        for unit in self.facts.project.units:
            for node in unit.nodes:
                if not isinstance(node, ast.Compare):
                    continue
                objects = self._compared(node)
                if objects:
                    yield Use("whole", COMPARED, unit, node, objects)
        yield from self._unpickled()
        yield from self._keyed()

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
            place = self.flow.places.get(call)
            return tuple(dict.fromkeys(self._within(place)))
        return ()

    def _is_made_often(self, optimizer: LegacyObject) -> bool:
        """Whether an optimizer is made in a loop, or in a function with several call sites."""
        function = function_of(optimizer.unit, optimizer.node)
        if function is None:
            return False
        sites = self.origins.calls(function)
        if len(sites) > 1:
            return True
        for site, _ in sites:
            around = site.unit.ancestors(site.node)
            if any(isinstance(outer, REPEATING) for outer in around):
                return True
        return False

    # Calls

    def _of_call(self, unit: Unit, call: ast.Call) -> Iterator[Unlike]:
        tree = tree_function(self.facts, call)
        names = set(names_of(self.facts, call.func))
        kind = self._kind(call, tree, names)
        objects: tuple[LegacyObject, ...] = ()
        if kind == PICKLED:
            objects = self._pickled(unit, call)
        elif kind:
            objects = self.optimizers_in(call)
        is_reducing = not names.isdisjoint(REDUCING)
        # jax.tree_util.tree_reduce(lambda x, y: x or y, optimizer)
        if objects and is_reducing and names & REDUCE_TREES:
            if not reduces_in_any_order(call, self.facts):
                yield Use("whole", kind, unit, call, objects), None
                return
        elif objects:
            # jax.tree_leaves(optimizer)
            counts = not is_reducing and tree in ("leaves", "flatten")
            yield Use("whole", kind, unit, call, objects), call if counts else None
            return
        # pickle.load(file): what it gives is looked at where it is used
        if kind == PICKLED:
            return
        # flax.serialization.from_state_dict(optimizer, {"target": params, …})
        if names & FROM_STATE_DICT or last_word(call.func) == "restore_state":
            objects = tuple(self.facts.legacy_objects(call, "optimizer"))
            state_dict = values_of(call)[-1:]
            if objects and any(map(self._is_spelled_out, state_dict)):
                yield Use("whole", KEYED, unit, call, objects), None
        # len(state_dict)
        elif "builtins.len" in names:
            objects = tuple(
                obj
                for one in call.args
                for obj in self.facts.legacy_objects(one, STATE_DICT)
            )
            if objects:
                yield Use("whole", KEYED, unit, call, objects), None

    def _kind(self, call: ast.Call, tree: str, names: set[str]) -> str:
        """What a call may do with an optimizer that differs for a train state; empty for others."""
        if names & REDUCING or tree in ("leaves", "flatten"):
            return COUNTED
        # jax.tree_util.tree_flatten_with_path(optimizer)
        if "with_path" in tree:
            return BY_PATH
        if any(map(_is_pickle, names)) or self._by_pickler(call):
            return PICKLED
        return FORMATTED if _reads_attribute(call.func) else ""

    def _pickled(self, unit: Unit, call: ast.Call) -> tuple[LegacyObject, ...]:
        """The optimizers and definitions that a call pickles.

        State dicts do not count: they are only dicts of arrays.
        """
        values = [
            value for value in values_of(call) if not self._gives_state_dicts(value)
        ]
        return self.optimizers_in(values, "optimizer", STATE_DICT, "definition")

    def _gives_state_dicts(self, node: ast.expr) -> bool:
        """Whether the optimizers within an object are all there as state dicts."""
        pending: list[Place] = [self.flow.places.get(node)]
        seen = {*pending}
        found = False
        while pending:
            for root in self.flow.roots(pending.pop()):
                if self._makes_state_dict(root):
                    found = True
                    continue
                elements: set[Place] = set()
                for item in self.flow.solver.at(root):
                    # {"optimizer": to_state_dict(optimizer), "epoch": epoch}
                    if isinstance(item, Container):
                        elements.add(("elements", item))
                    elif self._carries(item):
                        return False
                    elif isinstance(item, LegacyObject) and item.kind == STATE_DICT:
                        found = True
                elements -= seen
                seen |= elements
                pending += elements
        return found

    def _makes_state_dict(self, root: Place) -> bool:
        """Whether this is a call such as `flax.serialization.to_state_dict(optimizer)`."""
        if not isinstance(root, ast.Call):
            return False
        return bool(TO_STATE_DICT & {*self.facts.externals(root.func)})

    def _carries(self, item: Object) -> bool:
        """Whether an object is or holds an optimizer or definition."""
        carried = self.flow.carried(("itself", item))
        return any(obj.kind != STATE_DICT for obj in carried)

    def _is_counted_alike(
        self, call: ast.Call, have_fixed_rates: HaveFixedRates
    ) -> bool:
        """Whether nothing depends on the order of the leaves that a call returns, and their number.

        Where a train state has more of them than an optimizer, the number may.
        """
        objects = self.optimizers_in(call)
        made: list[LegacyObject] = []
        for obj in objects:
            made += self.facts.legacy.definitions(obj) or [obj]
        is_countless = all(map(_is_countless, made)) and have_fixed_rates(made, objects)
        return in_any_order(call, self.facts, counts=not is_countless)

    def _is_spelled_out(self, node: ast.expr) -> bool:
        """Whether an optimizer may be restored from a dict display with the keys of one."""
        pending: list[Place] = [self.flow.places.get(node)]
        dicts: dict[Container, None] = {}
        while pending:
            for item in self.flow.solver.at(pending.pop()):
                if isinstance(item, Container) and item not in dicts:
                    dicts[item] = None
                    pending.append(("elements", item))
        # {"target": params, "state": state}
        for item in dicts:
            keys = item.node.keys if isinstance(item.node, ast.Dict) else []
            for key in keys:
                if isinstance(key, ast.Constant) and key.value == "target":
                    return True
        return False

    def _keyed(self) -> Iterator[Use]:
        """Where a state dict is asked for a key that is not there any more, or for what counts."""
        called = self.flow.engine.index.called
        if not any(called.get(word) for word in MAKING):
            return
        for unit in self.facts.project.units:
            for node in unit.nodes:
                asked = _asked(node)
                if asked is None or not isinstance(node, ast.expr | ast.stmt):
                    continue
                dicts = self.facts.legacy_objects(asked, STATE_DICT)
                if dicts:
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
            function = function_of(unit, call) if dicts else None
            for node in ast.walk(function) if function is not None else ():
                if isinstance(node, ast.Compare) and _names_a_key(node):
                    yield Use("whole", KEYED, unit, node, dicts)

    def _by_pickler(self, call: ast.Call) -> bool:
        """Whether this is a method of an object that pickles, such as a queue of processes."""
        # queue = multiprocessing.Queue(); queue.put(optimizer)
        if not isinstance(call.func, ast.Attribute):
            return False
        variable = self.origins.variable(call.func.value)
        if variable is None:
            return False
        for store in self.origins.stores(variable):
            if not isinstance(store, ast.Name):
                continue
            for maker in _makers(statement_of(variable.unit, store)):
                if any(map(_makes_pickler, names_of(self.facts, maker.func))):
                    return True
        return False

    def _unpickled(self) -> Iterator[Use]:
        """The uses of what may come out of a pickle, also the keys of state dicts in one."""
        flow = self.flow
        names_of_roots = flow.origin_names
        pickled = self._in_pickles
        for node, scope in flow.reading.scopes.items() if pickled else ():
            match node:
                # pickle.load(file)["target"]
                case ast.Subscript(
                    value=value, slice=ast.Constant(value="target" | "state")
                ):
                    if any(map(_is_pickle, names_of_roots(value))):
                        yield Use("whole", KEYED, scope.unit, node, pickled)
        for unit, node in flow.reading.attributes:
            objects = self.facts.legacy_objects(node.value, "optimizer", "definition")
            # pickle.load(file).target
            if objects and any(map(_is_pickle, names_of_roots(node.value))):
                yield Use("whole", PICKLED, unit, node, tuple(objects))

    @cached_property
    def _in_pickles(self) -> tuple[LegacyObject, ...]:
        """The optimizers whose state dicts are pickled."""
        pickled: list[ast.expr] = []
        for _, call in self.flow.reading.calls:
            if self._pickles(call):
                values = values_of(call)
                pickled += [value for value in values if self._gives_state_dicts(value)]
        return self.optimizers_in(pickled, "optimizer", STATE_DICT, "definition")

    def _pickles(self, call: ast.Call) -> bool:
        names = set(names_of(self.facts, call.func))
        return self._kind(call, "", names) == PICKLED

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
            place = self.flow.places.get(node)
            objects: dict[LegacyObject, None] = {}
            for kind in kinds or ("optimizer", STATE_DICT):
                objects |= dict.fromkeys(self._within(place, kind))
            if objects and not self._is_of_parameters(node, place):
                found |= objects
        return tuple(found)

    def _is_of_parameters(self, node: ast.expr, place: Place) -> bool:
        """Whether this is an optimizer's `target`, in which there is none."""
        if self.facts.legacy_objects(node, "optimizer", STATE_DICT):
            return False
        return any(
            isinstance(one, tuple) and one[0] == "target"
            for one in self.flow.behind(place)
        )

    def _within(
        self,
        place: Place,
        kind: str = "optimizer",
        carriers: tuple[type, ...] = (Container, Instance),
    ) -> Iterator[LegacyObject]:
        """The objects of a kind at a place, in containers and in fields of instances there."""
        for obj in self.flow.carried(place, *carriers):
            if obj.kind == kind:
                yield obj

    def _compared(self, node: ast.Compare) -> tuple[LegacyObject, ...]:
        """The optimizers in a comparison other than by `is`, if both sides may have one."""
        by_value = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
        if not any(isinstance(operator, by_value) for operator in node.ops):
            return ()
        objects = self.facts.legacy_objects(node.left, "optimizer")
        # optimizer in optimizers
        others: list[LegacyObject] = []
        for other in node.comparators:
            place = self.flow.places.get(other)
            others += self._within(place)
        return (*objects, *others) if objects and others else ()

    def _typed(self, unit: Unit, call: ast.Call) -> tuple[LegacyObject, ...]:
        """The optimizers and definitions whose type is read, other than to make or check one."""
        if len(call.args) != 1:
            return ()
        objects = self.facts.legacy_objects(call.args[0], "optimizer", "definition")
        parent = unit.parents.get(call)
        # type(optimizer)(…)
        if isinstance(parent, ast.Call) and parent.func is call:
            return ()
        # type(optimizer) == optim.Optimizer
        are_optimizers = all(obj.kind == "optimizer" for obj in objects)
        if isinstance(parent, ast.Compare | ast.Call) and are_optimizers:
            return ()
        return tuple(objects)


def _asked(node: ast.AST) -> ast.expr | None:
    """The dict of which something is asked that differs for a train state."""
    match node:
        # state_dict["momentum"]: of a train state, that is a KeyError
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return None if key in ("target", "state") else value
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
    operands = (node.left, *node.comparators)
    is_equality = isinstance(node.ops[0], ast.Eq | ast.NotEq)
    return is_equality and any(
        isinstance(one, ast.Constant) and one.value in KNOWN_KEYS for one in operands
    )


def _is_pickle(name: str) -> bool:
    """Whether a function writes or reads pickles."""
    return name.startswith(PICKLE) and not name.startswith(WITHOUT_PICKLE)


def _makes_pickler(name: str) -> bool:
    """Whether a function makes an object that pickles what it is given."""
    return _is_pickle(name) or name.startswith(PROCESSES)


def names_of(facts: Facts, node: ast.expr) -> Iterator[str]:
    """The full names that an expression may stand for."""
    yield from facts.externals(node)
    name = facts.full_name(node)
    if name:
        yield name


def tree_function(facts: Facts, call: ast.Call) -> str:
    """`map` for `jax.tree_util.tree_map` and its like; empty for all others."""
    for name in names_of(facts, call.func):
        packages = (prefix for prefix in OF_TREES if name.startswith(prefix))
        package = next(packages, None)
        if package:
            last = name.removeprefix(package)
            if "." not in last:
                return last
    return ""


def _makers(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that may make what a statement assigns."""
    values: list[ast.expr] = []
    # queue = multiprocessing.Queue()
    if isinstance(statement, ast.Assign):
        values = [statement.value]
    # with ProcessPoolExecutor() as pool:
    elif isinstance(statement, ast.With):
        values = [item.context_expr for item in statement.items]
    yield from (value for value in values if isinstance(value, ast.Call))


def _reads_attribute(called: ast.expr) -> bool:
    """Whether this formats a text that has an attribute: `"step {0.state.step}".format`."""
    match called:
        case ast.Attribute(
            value=ast.Constant(value=str(text)), attr="format" | "format_map"
        ):
            return ATTRIBUTE_OF_FIELD.search(text) is not None
    return False


def _is_countless(definition: LegacyObject) -> bool:
    """Whether the optax state of a definition has no count."""
    found = legacy_optimizer(definition)
    if found is None:
        return False
    return not (found.counts or found.is_composite)
