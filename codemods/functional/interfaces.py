"""What functions take and return once an optimizer is in parts: several values, or one tuple."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from codemods.analysis.origins import Binding, FunctionNode, PassedArgument, Variable
from codemods.functional.group import Group, function_around
from codemods.idioms import Unproven
from codemods.inference.binding import parameters_of
from codemods.sources.modules import Unit
from codemods.vocabulary import CONTROL


@dataclass(eq=False)
class Interface:
    """A function that takes optimizers or returns one.

    `split` are the parameters that become several, `whole` those that become a tuple; `bindings`
    are its calls, or None if some of them are made by JAX. `returns` has each return statement with
    the position of the optimizer in a tuple, or None where it is all that is returned. It is `flat`
    if the parts are elements of that tuple themselves.
    """

    node: FunctionNode
    split: list[Variable] = field(default_factory=list)
    whole: list[Variable] = field(default_factory=list)
    bindings: list[Binding] | None = None
    returns: list[tuple[ast.AST, int | None]] = field(default_factory=list)
    flat: bool = False

    @property
    def gives_it_alone(self) -> bool:
        """Whether it returns an optimizer and nothing else."""
        indices = {index for _, index in self.returns}
        return indices == {None}


Given = tuple[Interface, PassedArgument]
"""A function that takes an optimizer, and the argument for it at a call."""


class Interfaces:
    """The functions through which the optimizers of a group go.

    Raises:
      Unproven: if one of them is called in a way that is not in view.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.origins = group.origins
        self.found: dict[ast.AST, Interface] = {}
        self.arguments: dict[ast.expr, list[Given]] = defaultdict(list)
        for variable in group.variables:
            stores = self.origins.stores(variable)
            # def train_step(optimizer, batch)
            if any(isinstance(store, ast.arg) for store in stores):
                self._take(variable)
        for node, unit in group.expressions.items():
            self._give(node, unit)
        self._flatten()

    def of(self, node: FunctionNode) -> Interface:
        """The interface of a function, new if none is known."""
        if node not in self.found:
            bindings = self.origins.bindings(node)
            self.found[node] = Interface(node, bindings=bindings)
        return self.found[node]

    def _take(self, variable: Variable) -> None:
        """Note a parameter that is an optimizer, and the arguments for it."""
        node, unit = variable.scope.node, variable.unit
        assert isinstance(node, FunctionNode)
        interface = self.of(node)
        where = self.group.where(node, unit)
        plain = [argument.arg for argument in parameters_of(node.args)]
        is_set_anew = len(self.origins.stores(variable)) != 1
        if variable.name not in plain or (is_set_anew and isinstance(node, ast.Lambda)):
            raise Unproven("{} takes any arguments", where)
        # jax.lax.scan(step, optimizer, batches)
        if interface.bindings is None:
            is_called_by_jax = self._is_called_by_jax(node)
            if not is_called_by_jax or not isinstance(node, ast.FunctionDef):
                raise Unproven("not every call of {} is in view", where)
            interface.whole.append(variable)
            return
        # a name that is bound to several functions
        if not self.origins.are_its_own(node, interface.bindings):
            raise Unproven("a call of {} may be one of another function", where)
        for binding in interface.bindings:
            argument = binding.given.get(variable.name)
            # train_step(None, batch), or one of the default
            if argument is None or argument.value not in self.group.expressions:
                place = binding.unit.location(binding.call.lineno)
                raise Unproven("{} is called without an optimizer at {}", where, place)
            self.arguments[argument.value].append((interface, argument))
        interface.split.append(variable)

    def _is_called_by_jax(self, node: FunctionNode) -> bool:
        """Whether all calls of a function are made by a loop of JAX."""
        sites = [site.node for site, _ in self.origins.calls(node)]
        for site in sites:
            # jax.lax.fori_loop(0, 10, body, optimizer)
            if not isinstance(site, ast.Call):
                return False
            if not self.group.is_of_pytrees(site, CONTROL):
                return False
        return bool(sites)

    def _give(self, node: ast.expr, unit: Unit) -> None:
        """Note where an optimizer is returned."""
        parent, index = unit.parents[node], None
        # return optimizer, loss
        if isinstance(parent, ast.Tuple):
            index = parent.elts.index(node)
            parent = unit.parents[parent]
        if isinstance(parent, ast.Return):
            function = function_around(parent, unit)
            self.of(function).returns.append((parent, index))
        # lambda params: create_optimizer(params)
        elif isinstance(parent, ast.Lambda) and parent.body is node:
            self.of(parent).returns.append((parent, index))

    def _flatten(self) -> None:
        """Let tuples have the parts as elements where each call unpacks the result."""
        for interface in self.found.values():
            returns = interface.returns
            # return optimizer, in one branch, and return optimizer, loss, in another
            if any(index is None for _, index in returns):
                if not interface.gives_it_alone:
                    line = interface.node.lineno
                    where = f"the function that returns it at line {line}"
                    raise Unproven("{} returns other things, too", where)
                continue
            interface.flat = bool(returns) and interface.bindings is not None
        # a call may be of several functions: that one is not flat may make another not flat
        changed = True
        while changed:
            changed = False
            for interface in self.found.values():
                if interface.flat and not self._are_taken_apart(interface):
                    interface.flat, changed = False, True

    def _are_taken_apart(self, interface: Interface) -> bool:
        bindings = interface.bindings or ()
        return all(self._is_taken_apart(one, interface) for one in bindings)

    def _is_taken_apart(self, binding: Binding, interface: Interface) -> bool:
        """Whether a call unpacks what a function returns, as `optimizer, loss = train_step(…)`."""
        call, unit = binding.call, binding.unit
        statement = unit.parents[call]
        # train_step(optimizer, batch), whose result is dropped
        if isinstance(statement, ast.Expr):
            return True
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target = statement.targets[0]
        if self.group.is_derivative(call) or not self.is_flat(call):
            return False
        if not isinstance(target, ast.Tuple):
            return False
        # optimizer, *metrics = train_step(optimizer, batch)
        if any(isinstance(element, ast.Starred) for element in target.elts):
            return False
        indices: set[int | None] = set()
        for one in self.group.functions(call):
            returns = self.found[one.node].returns
            indices.update(index for _, index in returns)
        own_indices = {index for _, index in interface.returns}
        sizes = {_size(place) for place, _ in interface.returns}
        if sizes != {len(target.elts)}:
            return False
        # other functions that the call may be of return the optimizer at the same place
        return len(indices) == len(own_indices)

    def is_flat(self, call: ast.expr) -> bool:
        """Whether what a call gives has the parts as elements of its tuple."""
        functions = self.group.functions(call) if isinstance(call, ast.Call) else []
        for one in functions:
            interface = self.found.get(one.node)
            if interface is None or not interface.flat:
                return False
        return bool(functions)


def _size(place: ast.AST) -> int:
    """How many values a return statement, or a lambda, returns."""
    match place:
        case (
            ast.Lambda(body=ast.Tuple(elts=elements))
            | ast.Return(value=ast.Tuple(elts=elements))
        ):
            return len(elements)
    return 1
