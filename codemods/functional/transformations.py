"""The gradient transformation, and how it gets to each step without a train state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.origins import FunctionNode, Variable, names_read, statement_of
from codemods.analysis.uses import Use
from codemods.functional.group import Group
from codemods.functional.interfaces import Interface, Interfaces
from codemods.functional.parts import TRANSFORMATION, Names
from codemods.functional.wrappers import PARTIAL, Wrappers, required
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.inference.objects import Function
from codemods.model import Location
from codemods.renaming.new_names import DEFINITIONS
from codemods.rewriting.edits import ChangeParameters
from codemods.sources.modules import Unit

Owner = FunctionNode | ast.Module
"""The innermost function around some code, or the module."""


class Transformations:
    """The name of the transformation in each function that needs it, and the edits for that.

    `made` has the calls of `create` that set it, `given` the functions that return it ahead of all
    else, `received` the calls of these, by the name that takes it up.

    Raises:
      Unproven: if there is no way to a step, or more than one.
    """

    def __init__(self, group: Group, interfaces: Interfaces, names: Names) -> None:
        self.group = group
        self.origins = group.origins
        self.interfaces = interfaces
        self.names = names
        self.wrappers = Wrappers(group)
        self.edits = Edits()
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
        if owner in self._known:
            return self._known[owner]
        created = self._created_in(owner, unit)
        fresh = self._fresh_calls_in(owner, unit)
        definitions: set[str] = set()
        for use in created:
            if isinstance(use.node, ast.Attribute):
                definitions.add(ast.dump(use.node.value))
        interface = self.interfaces.found.get(owner)
        takes_some = interface is not None and bool(interface.split)
        sources = len(definitions) + len(fresh)
        if sources > 1 or (sources and takes_some):
            where = self.group.where(owner, unit)
            raise Unproven("several optimizers meet in {}", where)
        if created:
            return self._from_create(created, owner, unit)
        if fresh:
            return self._from_call(fresh[0], owner, unit)
        outer = None if isinstance(owner, ast.Module) else _owner(owner, unit)
        is_nested = isinstance(outer, FunctionNode)
        # a function within a function, or one that reads an optimizer of the module
        if outer is not None and (is_nested or not takes_some):
            return self._from_outside(outer, owner, unit)
        if interface is None or not takes_some:
            where = self.group.where(owner, unit)
            raise Unproven("its transformation is not in reach in {}", where)
        return self._as_parameter(interface, unit)

    def _from_outside(self, outer: Owner, owner: Owner, unit: Unit) -> str:
        """The name is known to a function from around it, if it does not bind the same name."""
        name = self._in(outer, unit)
        # tx = None, within the function; but `global tx` binds nothing there
        bindings = unit.bindings.get(owner, ())
        own_names = {bound for bound, how, _ in bindings if not how}
        if name in own_names:
            where = self.group.where(owner, unit)
            raise Unproven("the name `{}` is taken in {}", name, where)
        self._known[owner] = name
        return name

    # Where it is made

    def _created(self) -> list[Use]:
        return [use for use in self.group.uses if use.kind == "definition.create"]

    def _created_in(self, owner: Owner, unit: Unit) -> list[Use]:
        """The calls of `create` in a function."""
        in_file = (use for use in self._created() if use.unit is unit)
        return [use for use in in_file if _owner(use.node, unit) is owner]

    def _fresh_calls(self) -> Iterator[ast.Call]:
        """The calls of functions that make an optimizer of their own."""
        for interface in self.interfaces.found.values():
            # what takes an optimizer may return that one
            if not interface.returns or interface.split or interface.whole:
                continue
            if self._makes(interface):
                for binding in interface.bindings or ():
                    yield binding.call

    def _fresh_calls_in(self, owner: Owner, unit: Unit) -> list[ast.Call]:
        """Such calls in a function."""
        # each once, though it may be of several functions
        calls = dict.fromkeys(self._fresh_calls())
        in_file = (call for call in calls if call in unit.parents)
        return [call for call in in_file if _owner(call, unit) is owner]

    def _makes(self, interface: Interface, depth: int = 4) -> bool:
        """Whether a function makes an optimizer, itself or by functions that it calls."""
        inside = set(ast.walk(interface.node))
        if any(use.node in inside for use in self._created()):
            return True
        # functions that call each other
        if depth == 0:
            return False
        for other in self.interfaces.found.values():
            if other is interface or not other.returns or other.split:
                continue
            bindings = other.bindings or ()
            is_called = any(binding.call in inside for binding in bindings)
            if is_called and self._makes(other, depth - 1):
                return True
        return False

    def _from_create(self, created: list[Use], owner: Owner, unit: Unit) -> str:
        """The name of the definition of which `create` is called, or one for that expression."""
        node = created[0].node
        definition = node.value if isinstance(node, ast.Attribute) else None
        calls = [call for use in created if (call := use.call) is not None]
        self._set_at[owner] = calls[0]
        variable = self.origins.variable(definition)
        is_settled = definition is not None and self._is_settled(definition, calls[0])
        if len(calls) > 1 and not is_settled:
            where = self.group.where(owner, unit)
            raise Unproven("several optimizers meet in {}", where)
        # definition.create(params), and not optim.Adam(1e-3).create(params)
        if variable is not None and is_settled:
            name = self._renamed(variable)
        else:
            name = self._named(calls[0], unit)
            self.made.update(dict.fromkeys(calls, name))
        self._known[owner] = name
        return name

    def _is_settled(self, definition: ast.expr, call: ast.Call) -> bool:
        """Whether a definition is the same wherever it is read behind a call."""
        for name in names_read([definition]):
            stores = self.origins.stores(self.origins.variable(name))
            if len(stores) == 1:
                continue
            if not all(self._is_ahead(store, call) for store in stores):
                return False
        return True

    def _is_ahead(self, store: ast.AST, call: ast.Call) -> bool:
        """Whether a place that sets a variable never runs after a call: another branch does not."""
        if isinstance(store, ast.arg):
            return True
        if not isinstance(store, ast.Name):
            return False
        return not self.origins.dataflow.may_follow(store, call)

    def _renamed(self, variable: Variable) -> str:
        """The new name of a variable for the transformation."""
        setting = self.origins.setting(variable)
        is_local = setting is not None and variable.scope.parent is not None
        # optimizer_def = optim.Adam(1e-3)
        if not is_local or variable.name not in DEFINITIONS:
            return variable.name
        optimizer = Variable(variable.scope, "optimizer")
        try:
            name = self.names.beside(optimizer, TRANSFORMATION[:1], self.group)
        except Unproven:
            return variable.name
        unit = variable.unit
        mentions = (*self.origins.stores(variable), *self.origins.loads(variable))
        for node in mentions:
            if isinstance(node, ast.Name):
                self.edits.replace(node, unit, name)
        return name

    def _named(self, call: ast.Call, unit: Unit) -> str:
        """A name for the transformation of what a call gives."""
        statement = statement_of(unit, call)
        scope = self.group.facts.scope(call).function
        variable = Variable(scope, "optimizer")
        match statement:
            # model, optimizer = create_model(rng)
            case ast.Assign(targets=[ast.Tuple(elts=elements), *_]):
                names = (one for one in elements if isinstance(one, ast.Name))
                within = (self.group.target(name, call) for name in names)
                own = (one for one in within if one in self.group.variables)
                variable = next(own, variable)
            # optimizer = create_optimizer(params)
            case ast.Assign(targets=targets):
                names = (target for target in targets if isinstance(target, ast.Name))
                within = (self.group.target(name, call) for name in names)
                variable = next(within, variable)
        return self.names.beside(variable, TRANSFORMATION, self.group)

    def _from_call(self, call: ast.Call, owner: Owner, unit: Unit) -> str:
        """A function that makes the optimizer returns its transformation, too.

        A lambda passes all that it returns on.
        """
        # lambda params: (create_optimizer(params), 0)
        if isinstance(owner, ast.Lambda) and owner.body is not call:
            where = self.group.where(owner, unit)
            raise Unproven("its transformation does not get out of {}", where)
        name = "" if isinstance(owner, ast.Lambda) else self._named(call, unit)
        self._known[owner] = name
        self._set_at[owner] = call
        for function in self.group.functions(call):
            self._return_from(function)
        self.received[call] = name or "_"
        return name

    def _return_from(self, function: Function) -> None:
        """Let a function return its transformation ahead of what it returns."""
        interface = self.interfaces.of(function.node)
        bindings = interface.bindings or ()
        where = self.group.where(function.node, function.unit)
        cannot = Unproven("{} cannot return the transformation, too", where)
        # jax.jit(create_optimizer)(params), of which the results are arrays
        if any(self.wrappers.of(function.node, function.unit)):
            raise cannot
        if any(self.wrappers.name(binding.call) for binding in bindings):
            raise cannot
        if not interface.flat and not interface.gives_it_alone:
            raise cannot
        self.given.add(function.node)
        self._in(function.node, function.unit)
        for binding in bindings:
            statement = statement_of(binding.unit, binding.call)
            if not isinstance(statement, ast.Assign | ast.Return | ast.Expr):
                place = binding.unit.location(binding.call.lineno)
                raise Unproven("what {} returns is not taken apart at {}", where, place)
            self.received.setdefault(binding.call, "_")

    # Where it is passed on

    def _as_parameter(self, interface: Interface, unit: Unit) -> str:
        """A function that takes an optimizer takes its transformation, too, from each call."""
        node = interface.node
        where = self.group.where(node, unit)
        # def train_step(optimizer, *batches)
        takes_any = node.args.kwarg or node.args.vararg
        if takes_any or not isinstance(node, ast.FunctionDef):
            raise Unproven("{} cannot take its transformation", where)
        name = self.names.beside(interface.split[0], TRANSFORMATION, self.group)
        self._known[node] = self.taken[node] = name
        # def train_step(params, opt_state, batch, tx)
        change = ChangeParameters(unit.span(node), added=((name, ""),))
        # def train_step(params, opt_state, batch, rate=0.1, *, tx), where a call gives the rate
        if self._is_given_defaults(interface) or node.args.kwonlyargs:
            change = ChangeParameters(unit.span(node), by_keyword=(name,))
        self.edits.put(node, unit, change)
        for decorator in node.decorator_list:
            self.wrappers.make_static(decorator, unit, name, self.edits)
        self._give_to_calls(interface, node, name, where)
        return name

    def _give_to_calls(
        self,
        interface: Interface,
        node: ast.FunctionDef,
        name: str,
        where: str | Location,
    ) -> None:
        """Let each call of a function give it the transformation."""
        static = bool(node.decorator_list)
        reached: set[ast.Call] = set()
        for unit, reference in self.origins.references(node):
            if not self._is_itself(reference, node):
                continue
            parent = unit.parents[reference]
            handed_on = Unproven(
                "{} is handed on at {}", where, unit.location(reference.lineno)
            )
            if not isinstance(parent, ast.Call):
                raise handed_on
            # train_step(optimizer, batch)
            if parent.func is reference:
                self._give(parent, name, unit)
                reached.add(parent)
            # map(train_step, optimizers)
            elif parent.args[:1] != [reference] or not self.wrappers.name(parent):
                raise handed_on
            # partial(train_step, model)
            elif self._fill(parent, reference, name, unit):
                reached.update(self._calls_behind(interface, parent))
            # jax.jit(train_step), which is called elsewhere
            else:
                wrapper = self._jitted(parent, unit)
                self.wrappers.make_static(wrapper, unit, name, self.edits)
                static = True
        for binding in interface.bindings or ():
            if binding.call in reached:
                continue
            if not static:
                place = binding.unit.location(binding.call.lineno)
                raise Unproven("its transformation does not get to {}", place)
            self._give(binding.call, name, binding.unit)

    @staticmethod
    def _is_given_defaults(interface: Interface) -> bool:
        """Whether a call gives by position what has a default.

        Behind that, a further argument can only be named.
        """
        for binding in interface.bindings or ():
            keywords = [argument.keyword for argument in binding.given.values()]
            if keywords.count(None) > required(interface.node):
                return True
        return False

    def is_by_position(self, interface: Interface) -> bool:
        """Whether a function has the transformation as a parameter ahead of those with defaults."""
        node = interface.node
        if node not in self.taken or node.args.kwonlyargs:
            return False
        return not self._is_given_defaults(interface)

    def _is_itself(self, reference: ast.expr, node: ast.FunctionDef) -> bool:
        """Whether a reference is the function's own name, and not that of a wrapped one."""
        # steps.train_step
        if isinstance(reference, ast.Attribute):
            return reference.attr == node.name
        stores = self.origins.stores(self.origins.variable(reference))
        # train_step = jax.jit(train_step)
        if node in stores and len(stores) > 1:
            raise Unproven(f"`{node.name}` is set several times")
        if not stores:
            return False
        if stores == [node]:
            return True
        # from steps import train_step
        return all(isinstance(store, ast.alias) for store in stores)

    def _give(self, call: ast.Call, name: str, unit: Unit) -> None:
        """Give the transformation to a call, by the name that it has there."""
        here = self.at(call, unit)
        self.edits.add_argument(call, unit, name, here)

    def _fill(self, call: ast.Call, reference: ast.expr, name: str, unit: Unit) -> bool:
        """Give the transformation to a wrapper, and return whether it is known there already."""
        owner = _owner(call, unit)
        if isinstance(owner, ast.Module):
            return False
        here = self._in(owner, unit)
        start = self._set_at.get(owner)
        # step = jax.jit(train_step), ahead of optimizer = definition.create(params)
        if start is not None and self.origins.dataflow.may_follow(start, call):
            return False
        if self.wrappers.name(call.func) == PARTIAL:
            self._give(call, name, unit)
        # jax.jit(partial(train_step, tx=tx))
        else:
            template = f"{{partial}}({{it}}, {name}={here})"
            self.edits.replace(reference, unit, template)
        return True

    def _jitted(self, call: ast.Call, unit: Unit) -> ast.Call:
        """The call around a partial application that wraps it; any other call itself."""
        if self.wrappers.name(call.func) != PARTIAL:
            return call
        match unit.parents[call]:
            # jax.jit(partial(train_step, model))
            case ast.Call(args=[first, *_]) as outer if first is call:
                return outer
        return call

    def _calls_behind(self, interface: Interface, wrapper: ast.Call) -> list[ast.Call]:
        """The calls that reach a function through a wrapper, and not by its own name."""
        node = interface.node
        assert isinstance(node, ast.FunctionDef)
        direct: set[ast.AST] = set()
        for unit, reference in self.origins.references(node):
            if self._is_itself(reference, node):
                direct.add(unit.parents[reference])
        calls = [binding.call for binding in interface.bindings or ()]
        return [call for call in calls if call is wrapper or call not in direct]


def _owner(node: ast.AST, unit: Unit) -> Owner:
    """The innermost function around a node, or the module."""
    for outer in unit.ancestors(node):
        if isinstance(outer, FunctionNode | ast.Module):
            return outer
    return unit.tree
