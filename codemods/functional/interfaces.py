"""What functions take and return once an optimizer is in parts, and what JAX makes of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from codemods.analysis.origins import (
    Binding,
    FunctionNode,
    PassedArgument,
    Variable,
    function_of,
)
from codemods.dataflow.program import functions_in
from codemods.functional.group import Group
from codemods.idioms import Unproven
from codemods.inference.binding import parameters_of
from codemods.sources.modules import Unit
from codemods.vocabulary import CONTROL, JIT, MAP_OVER_AXES, REMATERIALIZE

PARTIAL = "functools.partial"
PLAIN = MAP_OVER_AXES | REMATERIALIZE | {JIT, PARTIAL}
"""What may be made of a function that gets several parameters for one."""

POSITIONS = (
    *("donate_argnums", "static_argnums", "static_broadcasted_argnums", "in_axes"),
    *("donate_argnames", "static_argnames"),
)
"""Arguments that say of which parameters something holds."""


@dataclass(eq=False)
class Interface:
    """A function that takes optimizers or returns one.

    `split` are the parameters that become several, `whole` those that become a tuple; `bindings`
    are its calls, or None if some of them are made by JAX. `returns` has the optimizers that it
    returns, each with the tuple around it, if there is one.
    """

    node: FunctionNode
    unit: Unit
    bindings: list[Binding] | None
    split: list[Variable] = field(default_factory=list)
    whole: list[Variable] = field(default_factory=list)
    returns: list[tuple[ast.expr, ast.Tuple | None]] = field(default_factory=list)

    @property
    def gives_it_alone(self) -> bool:
        """Whether it returns an optimizer and nothing else."""
        return all(around is None for _, around in self.returns)


class Interfaces:
    """The functions through which the optimizers of a group go.

    `arguments` has the arguments that are optimizers, each with the parameters for it.

    Raises:
      Unproven: if one of them is called in a way that is not in view.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.origins = group.origins
        self.found: dict[ast.AST, Interface] = {}
        self.arguments: dict[ast.expr, list[tuple[Variable, PassedArgument]]]
        self.arguments = defaultdict(list)
        for variable in group.variables:
            stores = self.origins.stores(variable)
            # def train_step(optimizer, batch)
            if any(isinstance(store, ast.arg) for store in stores):
                self._take(variable)
        for node, unit in group.expressions.items():
            self._give(node, unit)
        for interface in self.found.values():
            self._check_returns(interface)

    def of(self, node: FunctionNode, unit: Unit) -> Interface:
        """The interface of a function, new if none is known."""
        if node not in self.found:
            self.found[node] = Interface(node, unit, self.origins.bindings(node))
        return self.found[node]

    def _take(self, variable: Variable) -> None:
        """Note a parameter that is an optimizer, and the arguments for it."""
        node, unit = variable.scope.node, variable.unit
        assert isinstance(node, FunctionNode)
        interface = self.of(node, unit)
        where = self.group.where(node, unit)
        if variable.name not in [one.arg for one in parameters_of(node.args)]:
            raise Unproven("{} takes any arguments", where)
        # jax.lax.scan(step, optimizer, batches)
        if interface.bindings is None:
            if not self._is_called_by_jax(node) or isinstance(node, ast.Lambda):
                raise Unproven("not every call of {} is in view", where)
            interface.whole.append(variable)
            return
        # a name that is bound to several functions
        if not self.origins.are_its_own(node, interface.bindings):
            raise Unproven("a call of {} may be one of another function", where)
        self._check_wrappers(interface)
        for binding in interface.bindings:
            argument = binding.given.get(variable.name)
            # train_step(None, batch), or one of the default
            if argument is None or argument.value not in self.group.expressions:
                place = binding.unit.location(binding.call.lineno)
                raise Unproven("{} is called without an optimizer at {}", where, place)
            self.arguments[argument.value].append((variable, argument))
        interface.split.append(variable)

    def _is_called_by_jax(self, node: FunctionNode) -> bool:
        """Whether all calls of a function are made by a loop of JAX."""
        sites = [site.node for site, _ in self.origins.calls(node)]
        calls = [site for site in sites if isinstance(site, ast.Call)]
        is_of_loops = all(
            self.group.facts.externals(call.func)
            and CONTROL.issuperset(self.group.facts.externals(call.func))
            for call in calls
        )
        return bool(sites) and len(calls) == len(sites) and is_of_loops

    def _give(self, node: ast.expr, unit: Unit) -> None:
        """Note where an optimizer is returned."""
        outer, around = unit.parents[node], None
        # return optimizer, loss
        if isinstance(outer, ast.Tuple):
            around, outer = outer, unit.parents[outer]
        # lambda params: create_optimizer(params)
        function: ast.AST | None = outer
        if isinstance(outer, ast.Return):
            function = function_of(unit, outer)
        if isinstance(function, FunctionNode):
            self.of(function, unit).returns.append((node, around))

    def _check_returns(self, interface: Interface) -> None:
        """Refuse a function that returns an optimizer in one branch alone."""
        unit, node = interface.unit, interface.node
        alone = {around is None for _, around in interface.returns}
        known = {unit.parents[around or one] for one, around in interface.returns}
        others = (inner for inner in ast.walk(node) if isinstance(inner, ast.Return))
        is_mixed = any(
            inner not in known and function_of(unit, inner) is node for inner in others
        )
        if len(alone) > 1 or (known and is_mixed):
            raise Unproven("{} returns other things, too", self.group.where(node, unit))

    # Tuples in which the parts are elements of their own

    def is_flat(self, interface: Interface) -> bool:
        """Whether each call unpacks the tuple that a function returns at once.

        `optimizer, loss = train_step(…)` becomes `params, opt_state, loss = train_step(…)`.
        """
        arounds = [around for _, around in interface.returns]
        sizes = {len(around.elts) for around in arounds if around is not None}
        places = {
            around.elts.index(node)
            for node, around in interface.returns
            if around is not None
        }
        if None in arounds or len(sizes) != 1 or len(places) != 1:
            return False
        # -> tuple[optim.Optimizer, jax.Array], and what says so in other words
        node = interface.node
        if not isinstance(node, ast.FunctionDef) or node.returns is not None:
            return False
        calls = [(one.unit, one.call) for one in interface.bindings or ()]
        [size] = sizes
        return bool(calls) and all(
            self._unpacks(unit, call, size)
            and self.group.functions(call) == [interface.node]
            for unit, call in calls
        )

    @staticmethod
    def _unpacks(unit: Unit, call: ast.Call, size: int) -> bool:
        match unit.parents[call]:
            # train_step(optimizer, batch), whose result is dropped
            case ast.Expr():
                return True
            case ast.Assign(targets=[ast.Tuple(elts=elements)]):
                starred = any(isinstance(one, ast.Starred) for one in elements)
                return len(elements) == size and not starred
        return False

    def is_flat_call(self, node: ast.AST) -> bool:
        """Whether what a call gives has the parts as elements of its tuple."""
        functions = self.group.functions(node) if isinstance(node, ast.Call) else []
        found = [self.found[one] for one in functions if one in self.found]
        return bool(found) and all(map(self.is_flat, found))

    # What JAX makes of functions

    def wrappers(self, interface: Interface) -> Iterator[tuple[Unit, ast.expr]]:
        """The calls that wrap a function, as `jax.jit(train_step)`, and its decorators."""
        for decorator in getattr(interface.node, "decorator_list", ()):
            yield interface.unit, decorator
        for unit, call in self.group.facts.flow.reading.calls:
            if call.args and self.wrapper(call):
                functions = functions_in(self.group.facts.objects(call.args[0]))
                if any(one.node is interface.node for one in functions):
                    yield unit, call

    def wrapper(self, node: ast.expr) -> str:
        """The full name of what wraps a function; empty for anything else.

        It is `jax.jit` for that itself, `jax.jit(f)` and `functools.partial(jax.jit, …)`.
        """
        if isinstance(node, ast.Call):
            name = self.wrapper(node.func)
            if name == PARTIAL and node.args:
                return self.wrapper(node.args[0]) or name
            return name
        names = self.group.facts.externals(node)
        return next(
            (one for one in names if one == PARTIAL or one.startswith("jax.")), ""
        )

    def _check_wrappers(self, interface: Interface) -> None:
        """Refuse what is told by their positions or names of which parameters something holds."""
        for unit, wrapper in self.wrappers(interface):
            name = self.wrapper(wrapper)
            words: set[str | None] = set()
            by_position = 0
            if isinstance(wrapper, ast.Call):
                words = {word.arg for word in wrapper.keywords}
                by_position = len(wrapper.args)
            is_told = not words.isdisjoint((None, *POSITIONS))
            # jax.vmap(train_step, (0, None))
            if name != PARTIAL and by_position > 1:
                is_told = True
            if name not in PLAIN or is_told:
                where = unit.location(wrapper.lineno)
                raise Unproven(
                    "its parameters are told by positions or names at {}", where
                )
