"""How a program handles an optimizer as a whole: as a pytree, by comparing or by pickling it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from codemods.analysis.closed_world import world_of
from codemods.analysis.facts import Facts
from codemods.analysis.leaves import in_any_order, reduces_in_any_order
from codemods.analysis.legacy import legacy_optimizer
from codemods.analysis.naming import last_word
from codemods.analysis.origins import LOOPS as REPEATING
from codemods.analysis.origins import Origins, function_of, statement_of
from codemods.analysis.uses import Use
from codemods.flow.binding import values_of
from codemods.flow.objects import (
    Container,
    Derived,
    Instance,
    LegacyObject,
    Object,
    Place,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    AS_DICT,
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
    SAVE,
    TO_BYTES,
    TO_MSGPACK,
    TO_STATE_DICT,
    WITHOUT_PICKLE,
)

REDUCING = REDUCE_TREES | RAVEL_TREE | GLOBAL_NORM | AS_TUPLE
LOOPS = CONTROL | MAP_SLICES
"""Functions that call others and return the result of one, or of each in turn."""

PROCESSES = "concurrent.futures.ProcessPoolExecutor"

OBLIVIOUS = SAVE | TO_BYTES | TO_MSGPACK | {"builtins.isinstance"}
"""Functions that take a state dict without reading its keys, and return nothing like it."""

ITERATING = ("builtins.", "collections.", "itertools.")
"""How the names of functions begin that iterate over the keys of a dict."""

STATE_DICT = "state_dict"
"""The kind of dict that `to_state_dict`, `state_dict` and `dataclasses.asdict` make."""

DICT_METHODS = frozenset(
    ("copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values")
)
ITERATORS = frozenset(
    f"builtins.{name}"
    for name in ("dict", "enumerate", "iter", "list", "set", "sorted", "tuple")
)
"""Functions that iterate over their argument."""
MOVING = (
    ast.Return,
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.Yield,
    ast.Await,
    ast.Lambda,
    ast.Call,
    ast.keyword,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.ListComp,
    ast.GeneratorExp,
    ast.DictComp,
    ast.IfExp,
    ast.BoolOp,
)
"""Nodes by which an object flows to another place, where it is looked at again."""

PICKLED, COMPARED, COUNTED, BY_PATH = "pickled", "compared", "counted", "by path"
KEYED, TYPED = "keyed", "typed"


HaveFixedRates = Callable[[Collection[LegacyObject], Collection[LegacyObject]], bool]
Unlike = tuple[Use, ast.Call | None]
"""A place where a train state is unlike an optimizer; that of a call only if its leaves matter."""


class Handling:
    """Finds what a train state cannot be used for."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)
        self.world = facts.of(world_of)

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
        elif not (tree or names & OBLIVIOUS):
            objects = tuple(self._exposed(call, names))
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
        return ""

    def _pickled(self, unit: Unit, call: ast.Call) -> tuple[LegacyObject, ...]:
        """The optimizers and definitions that a call pickles, or may pickle.

        State dicts do not count: they are only dicts of arrays.
        """
        values = [
            value for value in values_of(call) if not self._gives_state_dicts(value)
        ]
        objects = self.optimizers_in(values, may_be=True)
        if objects:
            return objects
        unknown = [value for value in values if self._is_unknown(value)]
        if not unknown:
            return ()
        found = dict.fromkeys(self.facts.of_unknown_origin(unit))
        for value in unknown:
            for obj in self.world.sources(unit, value):
                if obj in self.world.unaccounted:
                    found[obj] = None
        return tuple(found)

    def _gives_state_dicts(self, node: ast.expr) -> bool:
        """Whether the optimizers within an object are all there as state dicts."""
        pending: list[Place] = [self.flow.places.get(node)]
        seen = {*pending}
        found = False
        while pending:
            for root in self.flow.derivation.roots.of(pending.pop()):
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
        """Whether an object is, holds, or was made out of view of, an optimizer or definition."""
        if isinstance(item, Derived):
            return True
        for token in self.flow.derivation.contents.within(item):
            if isinstance(token, LegacyObject) and token.kind != STATE_DICT:
                return True
        return False

    def _is_unknown(self, node: ast.expr) -> bool:
        """Whether an argument comes from code in view, and nothing is known of it."""
        if [*self.facts.objects(node)]:
            return False
        if self.world.is_something_else(node):
            return False
        return not self.world.comes_from_callers(node)

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

    def _exposed(self, call: ast.Call, names: set[str]) -> Iterator[LegacyObject]:
        """The state dicts whose keys a function that is not in view may read."""
        flow = self.flow
        if names and all(flow.library.function(name) is not None for name in names):
            # sorted(state_dict): the function is known
            if any(name.startswith(ITERATING) for name in names):
                for argument in call.args:
                    yield from self.facts.legacy_objects(argument, STATE_DICT)
        elif call not in self._shown and (
            names or flow.derivation.is_unknown(flow.places[call.func])
        ):
            carriers = (LegacyObject, Container)
            for argument in values_of(call):
                place = flow.places.get(argument)
                yield from self._within(place, STATE_DICT, carriers)

    @cached_property
    def _shown(self) -> set[ast.AST]:
        """The flat dicts that are only written to a log or a summary, a line for each key."""
        found: set[ast.AST] = set()
        for unit in self.facts.project.units:
            for node in unit.nodes:
                if isinstance(node, ast.For):
                    found.update(self._shown_by(node))
        return found

    def _shown_by(self, loop: ast.For) -> tuple[ast.AST, ...]:
        match loop:
            # for key, leaf in flatten_dict(state_dict).items(): writer.scalar(f"{key}", leaf, step)
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=leaf)]),
                iter=ast.Call(
                    func=ast.Attribute(value=ast.Call() as flat, attr="items")
                ) as items,
            ) if FLATTEN_DICT & {*self.facts.externals(flat.func)}:
                if all(self._shows(one, key, leaf) for one in loop.body):
                    return (flat, items)
        return ()

    def _shows(self, statement: ast.stmt, key: str, leaf: str) -> bool:
        """Whether a statement hands a text with a key, and a leaf, to a method such as a log's.

        The result of the call is not used, and the key stands nowhere but in the text.
        """
        match statement:
            # log.info("%s %s", f"{key}", leaf)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=owner), args=arguments)
            ):
                objects = self.facts.objects(owner)
                # shown.append(leaf)
                if any(isinstance(item, Container | LegacyObject) for item in objects):
                    return False
                texts = [text for text in arguments if _is_text(text)]
                in_texts = {node for text in texts for node in ast.walk(text)}
                for node in ast.walk(statement):
                    if not isinstance(node, ast.Name):
                        continue
                    if node.id == key and node not in in_texts:
                        return False
                    if node.id == leaf and node not in arguments:
                        return False
                return True
        return False

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
        """A place for each state dict that escapes, or of which unknown keys are read."""
        for obj, escape in self.flow.derivation.escapes.items():
            if obj.kind == STATE_DICT:
                yield Use("whole", KEYED, escape.unit, escape.node, (obj,))
        found: set[LegacyObject] = set()
        for node, scope in self.flow.reading.scopes.items():
            if not isinstance(node, ast.expr):
                continue
            if isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            parent = scope.unit.parents.get(node)
            dicts = self.facts.legacy_objects(node, STATE_DICT)
            dicts = [obj for obj in dicts if obj not in found]
            optimizers = self._used_as_dict(node, parent)
            if dicts and node not in self._shown and not _moves(node, parent):
                found.update(dicts)
                yield Use("whole", KEYED, scope.unit, node, tuple(dicts))
            elif optimizers:
                objects = [*self.facts.objects(node)]
                if len(optimizers) == len(objects):
                    yield Use("whole", KEYED, scope.unit, node, tuple(optimizers))

    def _used_as_dict(
        self, node: ast.expr, parent: ast.AST | None
    ) -> list[LegacyObject]:
        """The optimizers at an expression that is used as only a dict can be."""
        if not self._makes_dicts:
            return []
        if not (_is_used_as_dict(node, parent) or self._is_iterated(node, parent)):
            return []
        return self.facts.legacy_objects(node, "optimizer")

    @cached_property
    def _makes_dicts(self) -> bool:
        """Whether the project makes dicts of objects, in which an optimizer may be a dict, too."""
        making = AS_DICT | TO_STATE_DICT
        for _, call in self.flow.reading.calls:
            if not making.isdisjoint(self.facts.externals(call.func)):
                return True
        return False

    def _is_iterated(self, node: ast.expr, parent: ast.AST | None) -> bool:
        """Whether an expression is an argument of `list(…)`, `sorted(…)` and the like."""
        if not isinstance(parent, ast.Call) or node not in parent.args:
            return False
        return not ITERATORS.isdisjoint(self.facts.externals(parent.func))

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
        names_of_roots = flow.derivation.roots.names
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
        return self.optimizers_in(pickled, may_be=True)

    def _pickles(self, call: ast.Call) -> bool:
        names = set(names_of(self.facts, call.func))
        return self._kind(call, "", names) == PICKLED

    # What holds optimizers

    def optimizers_in(
        self, arguments: ast.Call | Sequence[ast.expr], may_be: bool = False
    ) -> tuple[LegacyObject, ...]:
        """The optimizers and state dicts in some arguments, or in those of a call.

        With `may_be`, those that only may be there, and definitions, too.
        """
        kinds = ["optimizer", STATE_DICT]
        if may_be:
            kinds.append("definition")
        if isinstance(arguments, ast.Call):
            arguments = values_of(arguments)
        found: dict[LegacyObject, None] = {}
        for argument in arguments:
            node = argument.value if isinstance(argument, ast.Starred) else argument
            place = self.flow.places.get(node)
            for kind in kinds:
                for obj in self._within(place, kind, may_be=may_be):
                    found[obj] = None
        return tuple(found)

    def _within(
        self,
        place: Place,
        kind: str = "optimizer",
        carriers: tuple[type, ...] = (LegacyObject, Container, Instance),
        may_be: bool = False,
    ) -> Iterator[LegacyObject]:
        """The objects of a kind at a place, in containers and in fields of instances there."""
        contents = self.flow.derivation.contents
        for item in self.flow.solver.at(place):
            if isinstance(item, Derived):
                if may_be and item.source.kind == kind:
                    yield item.source
            elif isinstance(item, carriers):
                for token in contents.within(item):
                    if isinstance(token, LegacyObject) and token.kind == kind:
                        yield token

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


def _is_text(node: ast.expr) -> bool:
    """Whether this is `f"{key}"`, `"/".join(key)` or `"{}".format(key)`."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Call(
                func=ast.Attribute(
                    value=ast.Constant(value=str()), attr="join" | "format"
                )
            )
        ):
            return True
    return False


def _moves(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether a state dict only flows on, or is asked for a key that a rule knows."""
    match parent:
        # state_dict["target"]
        case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state")):
            return value is node
        # state_dict is None
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        # target, state = state_dict
        case ast.Assign(targets=targets):
            kinds = (ast.Tuple, ast.List)
            return not any(isinstance(target, kinds) for target in targets)
        # f(**state_dict)
        case ast.keyword(arg=None):
            return False
        # {"optimizer": state_dict}, but not {**state_dict}
        case ast.Dict(keys=keys, values=values):
            return node in values and keys[values.index(node)] is not None
    return isinstance(parent, MOVING)


def _is_used_as_dict(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether an object is asked for keys.

    Of an optimizer, only a dict can be that was made of it together with its container.
    """
    match parent:
        case ast.Attribute(attr=name):
            return name in DICT_METHODS
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return value is node and key not in ("target", "state")
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is node
    # f(**optimizer), {**optimizer}
    if isinstance(parent, ast.keyword | ast.Dict | ast.Starred):
        return not _moves(node, parent)
    return False


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


def _is_countless(definition: LegacyObject) -> bool:
    """Whether the optax state of a definition has no count."""
    found = legacy_optimizer(definition)
    if found is None:
        return False
    return not (found.counts or found.is_composite)
