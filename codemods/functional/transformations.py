"""The gradient transformation, and how it gets to each step without a train state."""

from __future__ import annotations

import ast
from itertools import chain

from codemods.analysis.origins import FunctionNode, Variable, statement_of
from codemods.functional.group import Group
from codemods.functional.interfaces import PARTIAL, Interface, Interfaces
from codemods.functional.names import TRANSFORMATION, Names
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.inference.binding import names_by_position
from codemods.rewriting.edits import ChangeParameters
from codemods.sources.modules import Unit
from codemods.vocabulary import JIT

Owner = FunctionNode | ast.Module
"""The innermost function around some code, or the module."""


class Transformations:
    """The name of the transformation in each function that needs it, and the edits for that.

    `made` has the calls of `create` that set it, `given` the functions that return it ahead of the
    parts, `received` the calls of these, by the name that takes it up, and `taken` the functions
    that have it as a parameter.

    Raises:
      Unproven: if there is no way to a step, or more than one.
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
        self.taken: dict[ast.AST, str] = {}
        self._known: dict[ast.AST, str] = {}
        self._set_at: dict[ast.AST, ast.AST] = {}

    def at(self, node: ast.AST, unit: Unit) -> str:
        """The name of the transformation at a node."""
        return self._in(_owner(node, unit), unit)

    def _in(self, owner: Owner, unit: Unit) -> str:
        if owner not in self._known:
            created = [
                node for node in self._created(unit) if _owner(node, unit) is owner
            ]
            received = [
                call for call in self._fresh(unit) if _owner(call, unit) is owner
            ]
            interface = self.interfaces.found.get(owner)
            takes_some = interface is not None and bool(interface.split)
            if len(created) + len(received) + takes_some > 1:
                where = self.group.where(owner, unit)
                raise Unproven("several optimizers meet in {}", where)
            outer = None if isinstance(owner, ast.Module) else _owner(owner, unit)
            if created:
                self._from_create(created[0], owner, unit)
            elif received:
                self._from_call(received[0], owner, unit)
            elif isinstance(outer, FunctionNode) or (outer and not takes_some):
                self._from_outside(outer, owner, unit)
            elif interface is not None and takes_some:
                self._as_parameter(interface)
            else:
                where = self.group.where(owner, unit)
                raise Unproven("its transformation is not in reach in {}", where)
        return self._known[owner]

    def _created(self, unit: Unit) -> list[ast.Call]:
        """The calls of `create` in a file."""
        return [
            use.call
            for use in self.group.uses
            if use.kind == "definition.create" and use.call and use.unit is unit
        ]

    def _fresh(self, unit: Unit) -> list[ast.Call]:
        """The calls, in a file, of functions that make an optimizer of their own."""
        calls = {
            binding.call: None
            for interface in self.interfaces.found.values()
            # what takes an optimizer may return that one
            if interface.returns and not interface.split and not interface.whole
            for binding in interface.bindings or ()
        }
        return [call for call in calls if call in unit.parents]

    def _from_create(self, call: ast.Call, owner: Owner, unit: Unit) -> None:
        """The name of the definition of which `create` is called, or one for that expression."""
        self._set_at[owner] = call
        definition = call.func.value if isinstance(call.func, ast.Attribute) else None
        variable = self.origins.variable(definition)
        # definition.create(params), and not optim.Adam(1e-3).create(params)
        if variable is not None and self.origins.setting(variable) is not None:
            self._known[owner] = variable.name
        else:
            self._known[owner] = self.made[call] = self._named(call, unit)

    def _from_call(self, call: ast.Call, owner: Owner, unit: Unit) -> None:
        """A function that makes the optimizer returns its transformation, too."""
        self._set_at[owner] = call
        if isinstance(owner, ast.Lambda):
            where = self.group.where(owner, unit)
            raise Unproven("its transformation does not get out of {}", where)
        self._known[owner] = self.received[call] = self._named(call, unit)
        for node in self.group.functions(call):
            self._return_from(self.interfaces.found[node])

    def _return_from(self, interface: Interface) -> None:
        """Let a function return its transformation ahead of the optimizer's parts."""
        where = self.group.where(interface.node, interface.unit)
        is_split = interface.gives_it_alone or self.interfaces.is_flat(interface)
        # jax.jit(create_optimizer)(params), of which the results are arrays
        is_wrapped = any(self.interfaces.wrappers(interface))
        if (
            is_wrapped
            or not is_split
            or not isinstance(interface.node, ast.FunctionDef)
        ):
            raise Unproven("{} cannot return the transformation, too", where)
        self.given.add(interface.node)
        self._in(interface.node, interface.unit)
        for binding in interface.bindings or ():
            self.at(binding.call, binding.unit)
            if binding.call not in self.received:
                place = binding.unit.location(binding.call.lineno)
                raise Unproven("what {} returns is not taken apart at {}", where, place)

    def _from_outside(self, outer: Owner, owner: Owner, unit: Unit) -> None:
        """The name is known to a function from around it, if it does not bind the same name."""
        name = self._in(outer, unit)
        # tx = None, within the function; but `global tx` binds nothing there
        bindings = unit.bindings.get(owner, ())
        if name in {bound for bound, how, _ in bindings if not how}:
            where = self.group.where(owner, unit)
            raise Unproven("the name `{}` is taken in {}", name, where)
        self._known[owner] = name

    def _named(self, call: ast.Call, unit: Unit) -> str:
        """A name for the transformation of what a call gives."""
        scope = self.group.facts.scope(call).function
        variable = Variable(scope, "optimizer")
        statement = statement_of(unit, call)
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        for target in chain.from_iterable(map(ast.walk, targets)):
            # optimizer = create_optimizer(params)
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                found = self.group.target(target, call)
                variable = found if found in self.group.variables else variable
        return self.names.beside(variable, TRANSFORMATION, self.group)

    # A function that takes an optimizer takes its transformation, too

    def _as_parameter(self, interface: Interface) -> None:
        node, unit = interface.node, interface.unit
        where = self.group.where(node, unit)
        bindings = interface.bindings or []
        # def train_step(optimizer, *batches)
        takes_any = node.args.kwarg or node.args.vararg
        if takes_any or not isinstance(node, ast.FunctionDef):
            raise Unproven("{} cannot take its transformation", where)
        defaults = names_by_position(node.args)[-len(node.args.defaults) or None :]
        for binding in bindings:
            for one, argument in binding.given.items():
                if node.args.defaults and argument.keyword is None and one in defaults:
                    raise Unproven("a default of {} is given by its position", where)
        name = self.names.beside(interface.split[0], TRANSFORMATION, self.group)
        self._known[node] = self.taken[node] = name
        change = ChangeParameters(unit.span(node), added=((name, ""),))
        self.edits.put(node, unit, change)
        for decorator in node.decorator_list:
            self._make_static(decorator, unit, name, where)
        by_name: list[ast.AST] = []
        filled: list[bool] = []
        for place, reference in self.origins.references(node):
            parent = place.parents[reference]
            wrapper = (
                self.interfaces.wrapper(parent) if isinstance(parent, ast.Call) else ""
            )
            # train_step(optimizer, batch)
            if isinstance(parent, ast.Call) and parent.func is reference:
                by_name.append(parent)
            # jax.jit(train_step)(optimizer, batch)
            elif not isinstance(parent, ast.Call) or parent.args[:1] != [reference]:
                at = place.location(reference.lineno)
                raise Unproven("{} is handed on at {}", where, at)
            # partial(train_step, model)
            elif wrapper == PARTIAL:
                self._fill(parent, name, place)
                filled.append(True)
            else:
                self._make_static(parent, place, name, where)
                filled.append(False)
        # train_step = partial(train_step, model), and then train_step(optimizer, batch)
        if len({*filled}) > 1 or (any(filled) and len(self._names(node)) > 1):
            raise Unproven("{} has its transformation here and not there", where)
        for binding in bindings:
            if not any(filled) or binding.call in by_name:
                here = self.at(binding.call, binding.unit)
                self.edits.add_argument(binding.call, binding.unit, name, here)

    def _names(self, node: ast.AST) -> set[ast.AST]:
        """What sets the variables by which a function is called."""
        stores: set[ast.AST] = set()
        for _, reference in self.origins.references(node):
            found = self.origins.stores(self.origins.variable(reference))
            stores.update(one for one in found if not isinstance(one, ast.alias))
        return stores

    def _make_static(
        self, wrapper: ast.expr, unit: Unit, name: str, where: object
    ) -> None:
        """Make a parameter static for `jax.jit`."""
        if self.interfaces.wrapper(wrapper) != JIT or wrapper in self.edits:
            at = unit.location(wrapper.lineno)
            raise Unproven("its transformation does not get through {}", at)
        # @functools.partial(jax.jit, static_argnames="tx")
        if isinstance(wrapper, ast.Call):
            self.edits.add_argument(wrapper, unit, "static_argnames", f'"{name}"')
        else:
            template = f'{{partial}}({{it}}, static_argnames="{name}")'
            self.edits.replace(wrapper, unit, template)

    def _fill(self, call: ast.Call, name: str, unit: Unit) -> None:
        """Give the transformation to a partial application."""
        here = self.at(call, unit)
        start = self._set_at.get(_owner(call, unit))
        # step = partial(train_step, model), ahead of optimizer = definition.create(params)
        if start is not None and self.origins.dataflow.may_follow(start, call):
            at = unit.location(call.lineno)
            raise Unproven("it is made only behind {}", at)
        self.edits.add_argument(call, unit, name, here)


def _owner(node: ast.AST, unit: Unit) -> Owner:
    """The innermost function around a node, or the module."""
    for outer in unit.ancestors(node):
        if isinstance(outer, FunctionNode | ast.Module):
            return outer
    return unit.tree
