"""How a program handles an optimizer as a whole: as a tree, by comparing or by pickling it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from codemods.analysis.evidence import last_word
from codemods.analysis.facts import Facts
from codemods.analysis.leaves import in_any_order, reduces_in_any_order
from codemods.analysis.origins import LOOPS as REPEATING
from codemods.analysis.origins import function_of, statement_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.flow.binding import values_of
from codemods.flow.objects import Container, Derived, Instance, Object, Place, Thing
from codemods.optimizers import optimizers
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
"""What calls functions and gives the result of one, or of each in turn."""

PROCESSES = "concurrent.futures.ProcessPoolExecutor"

OBLIVIOUS = SAVE | TO_BYTES | TO_MSGPACK | {"builtins.isinstance"}
"""What takes a state dict without asking for its keys, and gives nothing like it."""

ITERATING = ("builtins.", "collections.", "itertools.")
"""How the names begin of what goes through the keys of a dict that it is given."""

STATE_DICT = "state_dict"
"""The kind of what `to_state_dict`, `state_dict` and `dataclasses.asdict` make of an optimizer."""

DICT_METHODS = frozenset(
    ("copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values")
)
GOING_THROUGH = frozenset(
    f"builtins.{name}" for name in ("dict", "enumerate", "iter", "list", "set", "sorted", "tuple")
)
MOVING = (
    *(
        ast.Return,
        ast.Expr,
        ast.Assign,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.Yield,
        ast.Await,
        ast.Lambda,
        ast.Call,
    ),
    *(
        ast.keyword,
        ast.Dict,
        ast.List,
        ast.Tuple,
        ast.ListComp,
        ast.GeneratorExp,
        ast.DictComp,
        ast.IfExp,
        ast.BoolOp,
    ),
)
"""Where something goes on to another place, at which it is met again."""

PICKLED, COMPARED, COUNTED, BY_PATH = "pickled", "compared", "counted", "by path"
KEYED, TYPED = "keyed", "typed"


class Handling:
    """Finds what a train state cannot be used for."""

    def __init__(
        self,
        stepping: Stepping,
        has_fixed_rates: Callable[[Collection[Thing], Collection[Thing]], bool],
    ) -> None:
        self.facts = stepping.facts
        self.origins = stepping.origins
        self.world = stepping.world
        self._has_fixed_rates = has_fixed_rates

    def uses(self) -> list[Use]:
        """The places where a train state would not do what an optimizer did."""
        if not any(thing.kind == "optimizer" for thing in self.facts.groups):
            return []
        called = (
            found
            for unit, call in self.facts.flow.reading.calls
            for found in self._of_call(unit, call)
        )
        typed = (
            Use("whole", TYPED, unit, call, things)
            for unit, call in self.facts.flow.reading.calls
            if "builtins.type" in self.facts.externals(call.func)
            and (things := self._typed(unit, call))
        )
        compared = (
            Use("whole", COMPARED, unit, node, things)
            for unit in self.facts.project.units
            for node in unit.nodes
            if isinstance(node, ast.Compare) and (things := self._compared(node))
        )
        return [*called, *typed, *compared, *self._unpickled(), *self._keyed()]

    @cached_property
    def joined(self) -> frozenset[Thing]:
        """The optimizers that meet others in one tree function, branch or loop, where all that is no array has to be the same."""
        found: set[Thing] = set()
        for _, call in self.facts.flow.reading.calls:
            met: tuple[Thing, ...] = ()
            if tree_function(self.facts, call) in ("map", "multimap"):
                several = len(call.args) > 2 or any(
                    isinstance(one, ast.Starred) for one in call.args
                )
                met = self.held(call) if several else ()
            elif not LOOPS.isdisjoint(self.facts.externals(call.func)):
                met = tuple(dict.fromkeys(self._within(self.facts.flow.places.get(call))))
            if len(met) > 1 or any(map(self._is_made_often, met)):
                found.update(met)
        return frozenset(found)

    def _is_made_often(self, optimizer: Thing) -> bool:
        """Whether what makes an optimizer is in a function that is called at several places, or in a loop."""
        function = function_of(optimizer.unit, optimizer.node)
        sites = [] if function is None else self.origins.calls(function)
        around = (outer for site, _ in sites for outer in site.unit.ancestors(site.node))
        return len(sites) > 1 or any(isinstance(outer, REPEATING) for outer in around)

    # Calls

    def _of_call(self, unit: Unit, call: ast.Call) -> Iterator[Use]:
        tree = tree_function(self.facts, call)
        names = set(names_of(self.facts, call.func))
        kind = self._kind(call, tree, names)
        things = self._pickled(unit, call) if kind == PICKLED else self.held(call) if kind else ()
        if things and not self._is_in_any_order(call, tree, names):
            yield Use("whole", kind, unit, call, things)
        elif kind == PICKLED:
            return  # what is read from there is looked at where it is
        elif names & FROM_STATE_DICT or last_word(call.func) == "restore_state":
            things = tuple(self.facts.things(call, "optimizer"))
            if things and any(map(self._is_spelled_out, values_of(call)[-1:])):
                yield Use("whole", KEYED, unit, call, things)
        elif not (tree or names & OBLIVIOUS) and (things := tuple(self._exposed(call, names))):
            yield Use("whole", KEYED, unit, call, things)

    def _kind(self, call: ast.Call, tree: str, names: set[str]) -> str:
        """What a call may do with an optimizer that is not the same for a train state; empty if it does nothing such."""
        if names & REDUCING or tree in ("leaves", "flatten"):
            return COUNTED
        if "with_path" in tree:
            return BY_PATH
        return PICKLED if any(map(_is_pickle, names)) or self._by_pickler(call) else ""

    def _pickled(self, unit: Unit, call: ast.Call) -> tuple[Thing, ...]:
        """The optimizers and definitions that a call pickles, or may pickle: state dicts are no more than dicts of arrays."""
        values = [value for value in values_of(call) if not self._gives_state_dicts(value)]
        things = self.held(values, may_be=True)
        unknown = [] if things else [value for value in values if self._is_unknown(value)]
        if not unknown:
            return things
        lost = (
            thing
            for value in unknown
            for thing in self.world.sources(unit, value)
            if thing in self.world.lost
        )
        return tuple(dict.fromkeys((*self.facts.of_unknown_origin(unit), *lost)))

    def _gives_state_dicts(self, node: ast.expr) -> bool:
        """Whether something holds optimizers as state dicts, and none otherwise."""
        pending: list[Place] = [self.facts.flow.places.get(node)]
        seen = {*pending}
        found = False
        while pending:
            for root in self.facts.flow.derivation.roots.of(pending.pop()):
                if isinstance(root, ast.Call) and TO_STATE_DICT & {
                    *self.facts.externals(root.func)
                }:
                    found = True
                    continue
                items = [*self.facts.flow.solver.at(root)]
                found = found or any(
                    isinstance(item, Thing) and item.kind == STATE_DICT for item in items
                )
                within = {
                    ("elements", item) for item in items if isinstance(item, Container)
                } - seen
                if any(not isinstance(item, Container) and self._carries(item) for item in items):
                    return False
                seen |= within
                pending += within
        return found

    def _carries(self, item: Object) -> bool:
        """Whether something is an optimizer or a definition, or holds one, or was made of one out of view."""
        if isinstance(item, Derived):
            return True
        tokens = self.facts.flow.derivation.contents.within(item)
        return any(isinstance(token, Thing) and token.kind != STATE_DICT for token in tokens)

    def _is_unknown(self, node: ast.expr) -> bool:
        """Whether nothing tells what an argument is, which comes from code in view."""
        if [*self.facts.objects(node)]:
            return False
        return not (self.world.is_something_else(node) or self.world.comes_from_callers(node))

    def _is_in_any_order(self, call: ast.Call, tree: str, names: set[str]) -> bool:
        """Whether the leaves that a call is given, or gives, are used alike in any order."""
        if names & REDUCING:
            return bool(names & REDUCE_TREES) and reduces_in_any_order(call, self.facts)
        return tree in ("leaves", "flatten") and in_any_order(
            call, self.facts, counts=not self._is_countless(call)
        )

    def _exposed(self, call: ast.Call, names: set[str]) -> Iterator[Thing]:
        """The state dicts of which a function that is not in view may ask for the keys."""
        flow = self.facts.flow
        if names and all(flow.library.function(name) is not None for name in names):
            for argument in call.args if any(name.startswith(ITERATING) for name in names) else ():
                yield from self.facts.things(argument, STATE_DICT)
        elif call not in self._shown and (
            names or flow.derivation.is_unknown(flow.places[call.func])
        ):
            for argument in values_of(call):
                yield from self._within(flow.places.get(argument), STATE_DICT, (Thing, Container))

    @cached_property
    def _shown(self) -> set[ast.AST]:
        """The flat dicts of which nothing is made but a line for each key, as a summary writer or a log has it."""
        loops = (
            node
            for unit in self.facts.project.units
            for node in unit.nodes
            if isinstance(node, ast.For)
        )
        return {shown for loop in loops for shown in self._shown_by(loop)}

    def _shown_by(self, loop: ast.For) -> tuple[ast.AST, ...]:
        match loop:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=leaf)]),
                iter=ast.Call(func=ast.Attribute(value=ast.Call() as flat, attr="items")) as items,
            ) if FLATTEN_DICT & {*self.facts.externals(flat.func)}:
                return (
                    (flat, items) if all(self._shows(one, key, leaf) for one in loop.body) else ()
                )
        return ()

    def _shows(self, statement: ast.stmt, key: str, leaf: str) -> bool:
        """Whether a statement hands a text of a key, and a leaf, to a method such as a log's, and throws away what that gives."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner), args=arguments)):
                keeps = any(
                    isinstance(item, Container | Thing) for item in self.facts.objects(owner)
                )
                texts = [text for text in arguments if _is_text(text)]
                read = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                within = {node for text in texts for node in ast.walk(text)}
                keys, leaves = ([node for node in read if node.id == name] for name in (key, leaf))
                return not keeps and within.issuperset(keys) and set(arguments).issuperset(leaves)
        return False

    def _is_spelled_out(self, node: ast.expr) -> bool:
        """Whether what an optimizer is restored from may be a dict with the keys of one, written by hand."""
        pending: list[Place] = [self.facts.flow.places.get(node)]
        dicts: dict[Container, None] = {}
        while pending:
            for item in self.facts.flow.solver.at(pending.pop()):
                if isinstance(item, Container) and item not in dicts:
                    dicts[item] = None
                    pending.append(("elements", item))
        displays = (item.node for item in dicts if isinstance(item.node, ast.Dict))
        return any(
            isinstance(key, ast.Constant) and key.value == "target"
            for one in displays
            for key in one.keys
        )

    def _keyed(self) -> Iterator[Use]:
        """Where state dicts get out of view, or are asked for other keys than those of which a rule knows: a place for each."""
        for thing, escape in self.facts.flow.derivation.escapes.items():
            if thing.kind == STATE_DICT:
                yield Use("whole", KEYED, escape.unit, escape.node, (thing,))
        named: set[Thing] = set()
        for node, scope in self.facts.flow.reading.scopes.items():
            if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
                parent = scope.unit.parents.get(node)
                dicts = [
                    thing for thing in self.facts.things(node, STATE_DICT) if thing not in named
                ]
                is_dict = self._makes_dicts and (
                    _is_used_as_dict(node, parent) or self._is_gone_through(node, parent)
                )
                optimizers = self.facts.things(node, "optimizer") if is_dict else []
                if dicts and node not in self._shown and not _moves(node, parent):
                    named.update(dicts)
                    yield Use("whole", KEYED, scope.unit, node, tuple(dicts))
                elif optimizers and len(optimizers) == len([*self.facts.objects(node)]):
                    yield Use("whole", KEYED, scope.unit, node, tuple(optimizers))

    @cached_property
    def _makes_dicts(self) -> bool:
        """Whether the project makes dicts of objects, in which what was an optimizer may be a dict, too."""
        making = AS_DICT | TO_STATE_DICT
        return any(
            making & {*self.facts.externals(call.func)} for _, call in self.facts.flow.reading.calls
        )

    def _is_gone_through(self, node: ast.expr, parent: ast.AST | None) -> bool:
        called = (
            self.facts.externals(parent.func)
            if isinstance(parent, ast.Call) and node in parent.args
            else []
        )
        return not GOING_THROUGH.isdisjoint(called)

    def _by_pickler(self, call: ast.Call) -> bool:
        """Whether this is a method of something that pickles, such as a queue between processes."""
        if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
            return False
        variable = self.origins.variable(call.func.value)
        stores = [] if variable is None else self.origins.stores(variable)
        return any(
            any(
                _is_pickle(name) or name.startswith(PROCESSES)
                for name in names_of(self.facts, maker.func)
            )
            for store in stores
            if isinstance(store, ast.Name) and variable is not None
            for maker in _makers(statement_of(variable.unit, store))
        )

    def _unpickled(self) -> Iterator[Use]:
        """The uses of what may come out of a pickle, and the keys of state dicts that are read from one."""
        pickled = self._in_pickles
        for node, scope in self.facts.flow.reading.scopes.items() if pickled else ():
            match node:
                case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state")):
                    if any(map(_is_pickle, self.facts.flow.derivation.roots.names(value))):
                        yield Use("whole", KEYED, scope.unit, node, pickled)
        for unit, node in self.facts.flow.reading.attributes:
            things = tuple(self.facts.things(node.value, "optimizer", "definition"))
            names = self.facts.flow.derivation.roots.names(node.value) if things else ()
            if any(map(_is_pickle, names)):
                yield Use("whole", PICKLED, unit, node, things)

    @cached_property
    def _in_pickles(self) -> tuple[Thing, ...]:
        """The optimizers whose state dicts are pickled."""
        calls = (call for _, call in self.facts.flow.reading.calls if self._pickles(call))
        values = [value for call in calls for value in values_of(call)]
        return self.held([value for value in values if self._gives_state_dicts(value)], may_be=True)

    def _pickles(self, call: ast.Call) -> bool:
        return self._kind(call, "", set(names_of(self.facts, call.func))) == PICKLED

    def _is_countless(self, call: ast.Call) -> bool:
        """Whether the train states of all optimizers that a call is given have as many leaves as the optimizers had."""
        things = self.held(call)
        made = [
            found for thing in things for found in self.facts.legacy.definitions(thing) or [thing]
        ]
        return all(_is_countless(thing.name) for thing in made) and self._has_fixed_rates(
            made, things
        )

    # What holds optimizers

    def held(
        self, arguments: ast.Call | Sequence[ast.expr], may_be: bool = False
    ) -> tuple[Thing, ...]:
        """The optimizers and their state dicts among some arguments, or those of a call, and in what they hold.

        With `may_be`, those that only may be there, and definitions, too.
        """
        found: dict[Thing, None] = {}
        for argument in values_of(arguments) if isinstance(arguments, ast.Call) else arguments:
            node = argument.value if isinstance(argument, ast.Starred) else argument
            for kind in ("optimizer", STATE_DICT, *(["definition"] if may_be else ())):
                found.update(
                    dict.fromkeys(
                        self._within(self.facts.flow.places.get(node), kind, may_be=may_be)
                    )
                )
        return tuple(found)

    def _within(
        self,
        place: Place,
        kind: str = "optimizer",
        carriers: tuple[type, ...] = (Thing, Container, Instance),
        may_be: bool = False,
    ) -> Iterator[Thing]:
        """The things of a kind at a place, in containers and in fields of instances there."""
        contents = self.facts.flow.derivation.contents
        for item in self.facts.flow.solver.at(place):
            if isinstance(item, Derived):
                yield from [item.source] if may_be and item.source.kind == kind else []
            elif isinstance(item, carriers):
                for token in contents.within(item):
                    if isinstance(token, Thing) and token.kind == kind:
                        yield token

    def _compared(self, node: ast.Compare) -> tuple[Thing, ...]:
        """The optimizers that a comparison other than by `is` is about, if there may be one on both sides."""
        first, *others = [node.left, *node.comparators]
        if not any(
            isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in node.ops
        ):
            return ()
        things = self.facts.things(first, "optimizer")
        met = [
            thing for other in others for thing in self._within(self.facts.flow.places.get(other))
        ]
        return (*things, *met) if things and met else ()

    def _typed(self, unit: Unit, call: ast.Call) -> tuple[Thing, ...]:
        """The optimizers and definitions whose type is asked for, other than to make or to tell optimizers."""
        things = (
            self.facts.things(call.args[0], "optimizer", "definition")
            if len(call.args) == 1
            else []
        )
        parent = unit.parents.get(call)
        makes = isinstance(parent, ast.Call) and parent.func is call
        tells = isinstance(parent, ast.Compare | ast.Call) and all(
            thing.kind == "optimizer" for thing in things
        )
        return () if makes or tells else tuple(things)


def _is_text(node: ast.expr) -> bool:
    match node:
        case (
            ast.JoinedStr()
            | ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join" | "format"))
        ):
            return True
    return False


def _moves(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether a state dict only goes on, or is asked for a key of which a rule knows."""
    match parent:
        case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state")):
            return value is node
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        case ast.Assign(targets=targets):
            return not any(isinstance(target, ast.Tuple | ast.List) for target in targets)
        case ast.keyword(arg=None):
            return False
        case ast.Dict(keys=keys, values=values):
            return node in values and keys[values.index(node)] is not None
    return isinstance(parent, MOVING)


def _is_used_as_dict(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether something is asked for keys: of an optimizer, only a dict that was made of it with what holds it can be."""
    match parent:
        case ast.Attribute(attr=name):
            return name in DICT_METHODS
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return value is node and key not in ("target", "state")
        case ast.For(iter=gone_through) | ast.comprehension(iter=gone_through):
            return gone_through is node
    return isinstance(parent, ast.keyword | ast.Dict | ast.Starred) and not _moves(node, parent)


def _is_pickle(name: str) -> bool:
    """Whether a function writes or reads pickles."""
    return name.startswith(PICKLE) and not name.startswith(WITHOUT_PICKLE)


def names_of(facts: Facts, node: ast.expr) -> Iterator[str]:
    """The full names that an expression may stand for."""
    yield from facts.externals(node)
    if name := facts.full_name(node):
        yield name


def tree_function(facts: Facts, call: ast.Call) -> str:
    """`map` for `jax.tree_util.tree_map` and its like; empty for all else."""
    for name in names_of(facts, call.func):
        tree = next((tree for tree in OF_TREES if name.startswith(tree)), "")
        if tree and "." not in (last := name.removeprefix(tree)):
            return last
    return ""


def _makers(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that may make what a statement sets."""
    values: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        values = [statement.value]
    elif isinstance(statement, ast.With):
        values = [item.context_expr for item in statement.items]
    yield from (value for value in values if isinstance(value, ast.Call))


def _is_countless(name: str) -> bool:
    """Whether the optax state of an optimizer has no count."""
    found = optimizers().get(name)
    return found is not None and not (found.counts or found.is_composite)
