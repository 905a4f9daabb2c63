"""The gradient transformation, and how it gets to each step without a train state."""

from __future__ import annotations

import ast

from codemods.analysis.origins import FunctionNode, Variable, statement_of
from codemods.functional.group import Group, no_counterpart
from codemods.functional.interfaces import Interface, Interfaces
from codemods.functional.names import TRANSFORMATION, Names
from codemods.idioms.order import Edits
from codemods.inference.binding import names_by_position
from codemods.rewriting.edits import ChangeParameters
from codemods.sources.modules import Unit

Owner = FunctionNode | ast.Module
"""The innermost function around some code, or the module."""


class Transformations:
    """The name of the transformation in each function that needs it, and the edits for that.

    `made` has the calls of `create` that set it, `given` the functions that return it ahead of the
    parts, and `received` the calls of these, by the name that takes it up.
    """

    def __init__(
        self, group: Group, interfaces: Interfaces, names: Names, edits: Edits
    ) -> None:
        self.group = group
        self.origins = group.origins
        self.interfaces = interfaces
        self.names = names
        self.edits = edits
        self.made: dict[ast.expr, str] = {}
        self.given: set[ast.AST] = set()
        self.received: dict[ast.expr, str] = {}
        self._known: dict[ast.AST, str] = {}
        self._sources = self._all_sources()

    def _all_sources(self) -> list[tuple[ast.Call, Unit]]:
        """The calls that make an optimizer: of `create`, and of functions with one of their own."""
        found = {
            use.call: use.unit
            for use in self.group.uses
            if use.kind == "definition.create" and use.call
        }
        for interface in self.interfaces.found.values():
            # what takes an optimizer may return that one
            if interface.returns and not interface.split and not interface.whole:
                for binding in interface.bindings or ():
                    found[binding.call] = binding.unit
        return list(found.items())

    def at(self, node: ast.AST, unit: Unit) -> str:
        """The name of the transformation at a node."""
        return self._in(_owner(node, unit), unit)

    def _in(self, owner: Owner, unit: Unit) -> str:
        if owner not in self._known:
            sources = [
                call
                for call, place in self._sources
                if place is unit and _owner(call, unit) is owner
            ]
            interface = self.interfaces.found.get(owner)
            takes_some = interface is not None and bool(interface.split)
            if len(sources) + takes_some > 1:
                raise no_counterpart(owner, unit)
            outer = None if isinstance(owner, ast.Module) else _owner(owner, unit)
            if sources and sources[0] in self.group.makers:
                self._from_create(sources[0], owner, unit)
            elif sources:
                self._from_call(sources[0], owner, unit)
            elif isinstance(outer, FunctionNode) or (outer and not takes_some):
                self._from_outside(outer, owner, unit)
            elif interface is not None and takes_some:
                self._as_parameter(interface)
            else:
                raise no_counterpart(owner, unit)
        return self._known[owner]

    def _from_create(self, call: ast.Call, owner: Owner, unit: Unit) -> None:
        """The name of the definition of which `create` is called, or one for that expression."""
        definition = call.func.value if isinstance(call.func, ast.Attribute) else None
        variable = self.origins.variable(definition)
        # definition.create(params), and not optim.Adam(1e-3).create(params)
        if variable is not None and self.origins.setting(variable) is not None:
            self._known[owner] = variable.name
        else:
            self._known[owner] = self.made[call] = self._named(call, unit)

    def _from_call(self, call: ast.Call, owner: Owner, unit: Unit) -> None:
        """A function that makes the optimizer returns its transformation, too."""
        self._known[owner] = self.received[call] = self._named(call, unit)
        for node in self.group.functions(call):
            self._return_from(self.interfaces.found[node])

    def _return_from(self, interface: Interface) -> None:
        """Let a function return its transformation ahead of the optimizer's parts."""
        # jax.jit(create_optimizer)(params), of which the results are arrays
        if self.interfaces.jitted(interface):
            raise no_counterpart(interface.node, interface.unit)
        self.given.add(interface.node)
        self._in(interface.node, interface.unit)
        for binding in interface.bindings or ():
            self.at(binding.call, binding.unit)

    def _from_outside(self, outer: Owner, owner: Owner, unit: Unit) -> None:
        """The name is known to a function from around it, if it does not bind the same name."""
        name = self._in(outer, unit)
        # tx = None, within the function; but `global tx` binds nothing there
        bindings = unit.bindings.get(owner, ())
        if name in {bound for bound, how, _ in bindings if not how}:
            raise no_counterpart(owner, unit)
        self._known[owner] = name

    def _named(self, call: ast.Call, unit: Unit) -> str:
        """A name for the transformation of what a call gives."""
        inside = {*ast.walk(statement_of(unit, call))}
        # optimizer = create_optimizer(params), or return create_optimizer(params)
        variable = Variable(self.group.facts.scope(call).function, "optimizer")
        for one in self.group.variables:
            if not inside.isdisjoint(self.origins.stores(one)):
                variable = one
        return self.names.beside(variable, TRANSFORMATION)

    def _as_parameter(self, interface: Interface) -> None:
        """A function that takes an optimizer takes its transformation, too."""
        node, unit = interface.node, interface.unit
        # def train_step(optimizer, *batches)
        if node.args.kwarg or node.args.vararg:
            raise no_counterpart(node, unit)
        name = self.names.beside(interface.split[0], TRANSFORMATION)
        self._known[node] = name
        change = ChangeParameters(unit.span(node), added=((name, ""),))
        self.edits.put(node, unit, change)
        for place, wrapper in self.interfaces.jitted(interface):
            self._make_static(wrapper, place, name)
        defaults = names_by_position(node.args)[-len(node.args.defaults) or None :]
        for binding in interface.bindings or ():
            for one, argument in binding.given.items():
                if node.args.defaults and argument.keyword is None and one in defaults:
                    raise no_counterpart(binding.call, binding.unit)
            here = self.at(binding.call, binding.unit)
            self.edits.add_argument(binding.call, binding.unit, name, here)

    def _make_static(self, wrapper: ast.expr, unit: Unit, name: str) -> None:
        """Make a parameter static for `jax.jit`."""
        if wrapper in self.edits:
            raise no_counterpart(wrapper, unit)
        # @functools.partial(jax.jit, static_argnames="tx")
        if isinstance(wrapper, ast.Call):
            self.edits.add_argument(wrapper, unit, "static_argnames", f'"{name}"')
        else:
            template = f'{{partial}}({{it}}, static_argnames="{name}")'
            self.edits.replace(wrapper, unit, template)


def _owner(node: ast.AST, unit: Unit) -> Owner:
    """The innermost function around a node, or the module."""
    for outer in unit.ancestors(node):
        if isinstance(outer, FunctionNode | ast.Module):
            return outer
    return unit.tree
