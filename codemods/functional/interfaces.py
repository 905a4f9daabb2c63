"""What functions take and return once an optimizer is in parts."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from codemods.analysis.origins import (
    Binding,
    PassedArgument,
    Variable,
    function_of,
)
from codemods.functional.group import Group, no_counterpart
from codemods.inference.binding import parameters_of
from codemods.sources.modules import Unit
from codemods.vocabulary import JIT

POSITIONS = (
    *("donate_argnums", "static_argnums", "donate_argnames", "static_argnames"),
    None,
)
"""Arguments of `jax.jit` that say of which parameters something holds."""


@dataclass(eq=False)
class Interface:
    """A function that takes optimizers or returns one.

    `split` are the parameters that become several, `whole` those that become a tuple; `bindings`
    are its calls, or None if some of them are made by JAX. `returns` has the optimizers that it
    returns, each with the tuple around it, if there is one.
    """

    node: ast.FunctionDef
    unit: Unit
    bindings: list[Binding] | None
    split: list[Variable] = field(default_factory=list)
    whole: list[Variable] = field(default_factory=list)
    returns: list[tuple[ast.expr, ast.Tuple | None]] = field(default_factory=list)

    @property
    def is_flat(self) -> bool:
        """Whether it returns the parts as elements of a tuple with others.

        `optimizer, loss = train_step(…)` becomes `params, opt_state, loss = train_step(…)`.
        """
        return bool(self.bindings) and any(around for _, around in self.returns)


class Interfaces:
    """The functions through which optimizers go, and the `arguments` for their parameters."""

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

    def of(self, node: ast.FunctionDef, unit: Unit) -> Interface:
        """The interface of a function, new if none is known."""
        if node not in self.found:
            self.found[node] = Interface(node, unit, self.origins.bindings(node))
        return self.found[node]

    def _take(self, variable: Variable) -> None:
        """Note a parameter that is an optimizer, and the arguments for it."""
        node, unit = variable.scope.node, variable.unit
        # def train_step(*optimizers), or def train_step(optimizer: optim.Optimizer)
        if not isinstance(node, ast.FunctionDef) or not any(
            one.arg == variable.name and one.annotation is None
            for one in parameters_of(node.args)
        ):
            raise no_counterpart(node, unit)
        interface = self.of(node, unit)
        # jax.lax.scan(step, optimizer, batches)
        if interface.bindings is None:
            sites = [site.node for site, _ in self.origins.calls(node)]
            if not sites or not all(map(self.group.is_loop, sites)):
                raise no_counterpart(node, unit)
            interface.whole.append(variable)
            return
        # a name that is bound to several functions
        if not self.origins.are_its_own(node, interface.bindings):
            raise no_counterpart(node, unit)
        self.jitted(interface)
        for binding in interface.bindings:
            argument = binding.given.get(variable.name)
            # train_step(None, batch), or one of the default
            if argument is None or argument.value not in self.group.expressions:
                raise no_counterpart(binding.call, binding.unit)
            self.arguments[argument.value].append((variable, argument))
        interface.split.append(variable)

    def _give(self, node: ast.expr, unit: Unit) -> None:
        """Note where an optimizer is returned."""
        outer, around = unit.parents[node], None
        # return optimizer, loss
        if isinstance(outer, ast.Tuple):
            around, outer = outer, unit.parents[outer]
        function = function_of(unit, outer) if isinstance(outer, ast.Return) else None
        if isinstance(function, ast.FunctionDef):
            self.of(function, unit).returns.append((node, around))

    def _check_returns(self, interface: Interface) -> None:
        """Refuse a function that gives an optimizer in one branch alone, or not taken apart."""
        unit, node = interface.unit, interface.node
        shapes = {
            (len(around.elts), around.elts.index(one)) if around else None
            for one, around in interface.returns
        }
        known = {unit.parents[around or one] for one, around in interface.returns}
        others = (inner for inner in ast.walk(node) if isinstance(inner, ast.Return))
        is_mixed = any(
            inner not in known and function_of(unit, inner) is node for inner in others
        )
        if len(shapes) > 1 or (known and is_mixed):
            raise no_counterpart(node, unit)
        for binding in interface.bindings or () if interface.is_flat else ():
            statement = binding.unit.parents[binding.call]
            [(size, _)] = filter(None, shapes)
            is_its_own = self.group.functions(binding.call) == [node]
            if not is_its_own or not _unpacks(statement, size):
                raise no_counterpart(binding.call, binding.unit)

    def is_flat_call(self, node: ast.AST) -> bool:
        """Whether what a call gives has the parts as elements of its tuple."""
        functions = self.group.functions(node) if isinstance(node, ast.Call) else []
        return any(one in self.found and self.found[one].is_flat for one in functions)

    # What JAX makes of functions

    def jitted(self, interface: Interface) -> list[tuple[Unit, ast.expr]]:
        """The calls and decorators that compile a function."""
        node, unit = interface.node, interface.unit
        found = [(unit, one) for one in node.decorator_list]
        for place, reference in self.origins.references(node):
            parent = place.parents[reference]
            if isinstance(parent, ast.Call) and parent.args[:1] == [reference]:
                found.append((place, parent))
            # train_step(optimizer, batch)
            elif getattr(parent, "func", None) is not reference:
                raise no_counterpart(reference, place)
        for place, wrapper in found:
            if not self._compiles(wrapper):
                raise no_counterpart(wrapper, place)
        return found

    def _compiles(self, node: ast.expr) -> bool:
        """Whether this is `jax.jit`, or a call of it that says nothing of single parameters."""
        externals = self.group.facts.externals
        if isinstance(node, ast.Call):
            words = {word.arg for word in node.keywords}
            # functools.partial(jax.jit, inline=True)
            is_partial = externals(node.func) == ["functools.partial"] and node.args
            node = node.args[0] if is_partial else node.func
            if not words.isdisjoint(POSITIONS):
                return False
        return externals(node) == [JIT]


def _unpacks(statement: ast.AST, size: int) -> bool:
    """Whether a statement takes a tuple apart, or drops what a call gives."""
    match statement:
        case ast.Expr():
            return True
        case ast.Assign(targets=[ast.Tuple(elts=elements)]):
            starred = any(isinstance(one, ast.Starred) for one in elements)
            return len(elements) == size and not starred
    return False
