"""What may happen between two moments of a program, and whether that changes what is read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from itertools import chain

from codemods.dataflow.control_flow import EXIT, Order, Owner
from codemods.dataflow.definitions import LOOPS, Definitions
from codemods.dataflow.effects import Cell, Effects, Field, Variable
from codemods.dataflow.elsewhere import Elsewhere
from codemods.dataflow.evaluation import Evaluations, evaluated, given
from codemods.dataflow.handing import Handing
from codemods.dataflow.program import EvaluationSite, Program
from codemods.inference.binding import parameters_of
from codemods.inference.objects import (
    Class,
    Function,
    Instance,
    Module,
    Object,
)
from codemods.inference.reading import FunctionNode
from codemods.inference.view import View
from codemods.sources.modules import Unit

Numbers = dict[Owner, set[int]]
Run = tuple[Order, int, int]


class Dataflow:
    """Answers when things happen, and whether that matters, for a whole project.

    Args:
      flow: what is known of the files that are analysed.
      others: the texts of files that are not, and import them.
    """

    def __init__(self, flow: View, others: Iterable[str] = ()) -> None:
        self.flow = flow
        self.elsewhere = Elsewhere(flow, others)
        self.program = Program(flow)
        self.definitions = Definitions(self.program)
        self.evaluations = Evaluations(self.program, self.definitions)
        self.handing = Handing(self.program)
        self._changed: dict[object, bool] = {}

    # Effects

    def effects(self, node: ast.AST) -> Effects:
        """What evaluating an expression or statement reads and writes."""
        unit = self.program.unit_of(node)
        return self.evaluations.whole(unit, node)

    def has_no_effect(self, node: ast.AST) -> bool:
        """Whether the evaluation of an expression changes nothing else."""
        return self.effects(node).are_none

    def may_swap(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether two expressions may change places."""
        one = self.effects(first)
        other = self.effects(second)
        # The order of what two of them print or store would change.
        is_seen = one.acts or one.world
        if is_seen and (other.acts or other.world):
            return False
        return not (
            self._disturbs(one, other, second) or self._disturbs(other, one, first)
        )

    def _disturbs(self, effects: Effects, other: Effects, node: ast.AST) -> bool:
        """Whether something with some effects sees or changes what an expression does."""
        if effects.acts:
            # What is out of view may read what the other changes.
            if any(map(self._is_in_reach, other.writes)):
                return True
            if self.handing.may_meet(effects.handed, _given_in(node)):
                return True
        return self.changes(effects, replace(other, reads=other.reads | other.writes))

    def changes(self, effects: Effects, read: Effects) -> bool:
        """Whether something with some effects changes what another reads, as far as code shows.

        Code out of view may change what it is handed, call functions that have escaped, and set
        what is set anywhere. That it is called shows nothing of other objects.
        """
        if any(self._is_written(cell, effects.writes) for cell in read.reads):
            return True
        fields = [cell for cell in read.reads if isinstance(cell, Field)]
        if self.handing.may_change(fields, read.through, effects.handed):
            return True
        if not effects.acts:
            return False
        for cell in fields:
            is_set = (
                cell.name in self.handing.set_somewhere
                or self._set_elsewhere & cell.owners
            )
            if is_set and self._is_in_reach(cell):
                return True
        return any(
            not self._is_local(cell) and self._is_written(cell, self._behind.writes)
            for cell in read.reads
        )

    def _is_local(self, cell: Cell) -> bool:
        """Whether a variable is set within its own function alone."""
        if not isinstance(cell, Variable):
            return False
        if isinstance(cell.scope.node, ast.Module | ast.ClassDef):
            return False
        # nonlocal count, in a function within
        stores = self.definitions.stores(cell)
        return not any(isinstance(store, ast.Nonlocal) for store in stores)

    def _is_in_reach(self, cell: Cell) -> bool:
        """Whether code out of view may have the object of an attribute or element."""
        return isinstance(cell, Field) and not self._is_hidden(cell)

    def _is_written(self, cell: Cell, written: Collection[Cell]) -> bool:
        if isinstance(cell, Variable):
            return cell in written
        fields = (other for other in written if isinstance(other, Field))
        return any(self._may_be_one(cell, other) for other in fields)

    def _may_be_one(self, one: Field, other: Field) -> bool:
        """Whether a change of one may be a change of the other."""
        if one.owners and other.owners:
            has_name = one.name == other.name or None in (one.name, other.name)
            return has_name and not one.owners.isdisjoint(other.owners)
        # If the owner of one is not known, the attributes have one name, and it is at least no
        # object that has not escaped.
        is_hidden = self._is_hidden(one) or self._is_hidden(other)
        return one.name == other.name and not is_hidden

    def _is_hidden(self, cell: Field) -> bool:
        """Whether the objects of a cell have not escaped to code out of view."""
        return bool(cell.owners) and cell.owners.isdisjoint(self._escaped)

    # Escape

    @cached_property
    def _escaped(self) -> frozenset[Object]:
        """The objects that get to code out of view, and all that can be reached from them."""
        escaping: list[Object] = []
        for unit in self.flow.project.read:
            for node in unit.nodes:
                for value in self._given_away(unit, node):
                    escaping += self.program.objects(value)
        return frozenset(self.handing.within(escaping) | self._set_elsewhere)

    @cached_property
    def _set_elsewhere(self) -> frozenset[Object]:
        """The objects that files which are not analysed change, and all within them."""
        found: list[Object] = []
        for variable in self.elsewhere.changed:
            items = self.program.objects_at(variable.scope, variable.name)
            # of a module, the variables that are set are known by their names
            found += (item for item in items if not isinstance(item, Module))
        return frozenset(self.handing.within(found))

    def _given_away(self, unit: Unit, node: ast.AST) -> Iterable[ast.AST]:
        """The values that get to code out of view at a node."""
        match node:
            # registry.best = value, where nothing is known of `registry`
            case (
                ast.Attribute(value=owner, ctx=ast.Store())
                | ast.Subscript(value=owner, ctx=ast.Store())
            ):
                statement = unit.parents.get(node)
                is_known = bool(self.program.states(owner))
                if isinstance(statement, ast.Assign) and not is_known:
                    return [statement.value]
            case (
                ast.Call()
                | ast.Yield()
                | ast.YieldFrom()
                | ast.Attribute(attr="__dict__")
                | ast.FunctionDef()
                | ast.AsyncFunctionDef()
            ):
                effects = self.evaluations.own(unit, node)
                return effects.handed if effects.acts else ()
        return ()

    @cached_property
    def _behind(self) -> Effects:
        """The effects of the functions in view that code out of view may call."""
        modules: set[Cell] = set()
        functions: list[FunctionNode] = []
        for item in self._escaped:
            if isinstance(item, Function):
                functions.append(item.node)
            if isinstance(item, Instance | Class):
                cls = item.cls if isinstance(item, Instance) else item
                for members in self.program.members(cls).values():
                    functions += members
            # Code that has a module may set its variables.
            if isinstance(item, Module) and item.unit is not None:
                scope = self.flow.modules[item.unit]
                modules |= {Variable(scope, name) for name in scope.names}
        found = self.evaluations.of_all(functions)
        found.writes |= modules | self.elsewhere.assigned
        return found

    # Within one run of a function

    def stays(
        self,
        nodes: Iterable[ast.expr],
        first: ast.AST,
        second: ast.AST,
        known: bool = True,
    ) -> bool:
        """Whether expressions have the same values at two moments of one run of a function.

        The first moment comes before the second. The expressions must be `known` to change nothing
        themselves; else it is not checked what functions out of view that they call do.
        """
        read = Effects()
        for node in nodes:
            read.add(self.effects(node))
        if known and not read.are_none:
            return False
        return not self._may_change_between(first, second, read)

    def is_kept(self, path: ast.expr, later: ast.AST) -> bool:
        """Whether a path, and those that it comes from, lead to the same until a later moment."""
        chain = self.definitions.chain(path)
        return all(self.stays([one], one, later) for one in chain)

    def unchanged(self, variable: Variable, first: ast.AST, second: ast.AST) -> bool:
        """Whether a variable has the same value at two moments of one run of a function.

        The first moment comes before the second.
        """
        if not self.is_before(first, second):
            return False
        return not self._may_change_between(first, second, Effects({variable}))

    def is_before(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether one node is always evaluated before another in a run of a function."""
        run = self._run(first, second)
        if run is None:
            return False
        order, start, end = run
        return order.dominates(start, end)

    def between(self, first: ast.AST, second: ast.AST) -> list[ast.AST] | None:
        """What may be evaluated after one node and before another is next.

        None if they are not of one run of a function.
        """
        run = self._run(first, second)
        if run is None:
            return None
        order, start, end = run
        after = order.forward(start, without=end)
        before = order.backward(end, without=start)
        return [order.nodes[number] for number in sorted(after & before)]

    def may_follow(self, second: ast.AST, first: ast.AST) -> bool:
        """Whether one node may be evaluated after another in a run of a function."""
        run = self._run(first, second)
        if run is None:
            return True
        order, start, end = run
        return end in order.forward(start)

    def _run(self, first: ast.AST, second: ast.AST) -> Run | None:
        """The order in which two nodes are evaluated, and their numbers in it.

        None if they are not of one function.
        """
        unit = self.program.unit_of(first)
        start = self.program.site(unit, first)
        end = self.program.site(unit, second)
        if start is None or end is None or start.owner is not end.owner:
            return None
        order = self.program.order(start.owner)
        return order, start.number, end.number

    def _may_change_between(
        self, first: ast.AST, second: ast.AST, read: Effects
    ) -> bool:
        """Whether what is read may change from one moment to another, also of another run."""
        run = self._run(first, second)
        if run is None:
            return True
        order, start, end = run
        return self._change(order, order.between(start, end), read)

    def _change(self, order: Order, numbers: Iterable[int], read: Effects) -> bool:
        """Whether some evaluations may change what is read."""
        if not read.reads:
            return False
        unit = self.program.unit_of(order.owner)
        # The beginning and the end are no evaluations.
        nodes = (order.nodes[number] for number in numbers if number > EXIT)
        return any(self.changes(self.evaluations.at(unit, one), read) for one in nodes)

    # From one function to another

    def lasts(
        self,
        nodes: Iterable[ast.expr],
        made: ast.AST,
        later: ast.AST,
        carriers: Collection[Object],
    ) -> bool:
        """Whether evaluations find the same where something is made, and where it is used later.

        Args:
          nodes: the expressions, each without those within it.
          made: what makes something, such as an optimizer.
          later: where it is used, in whatever function.
          carriers: what is made, and what comes of that.
        """
        read = Effects()
        for node in nodes:
            read.add(self.evaluations.at(self.program.unit_of(node), node))
        if not read.are_none:
            return False
        read.reads = {one for one in read.reads if not self.is_settled(one, carriers)}
        if not read.reads:
            return True
        start = self._site(made)
        end = self._site(later)
        if start is None or end is None:
            return False
        first = (start.owner, start.number)
        last = (end.owner, end.number)
        key = (first, last, frozenset(read.reads), frozenset(read.through))
        if key not in self._changed:
            self._changed[key] = self._may_change(start, end, read, carriers)
        return not self._changed[key]

    def _site(self, node: ast.AST) -> EvaluationSite | None:
        return self.program.site(self.program.unit_of(node), node)

    def is_settled(self, cell: Cell, carriers: Collection[Object]) -> bool:
        """Whether a variable has one value wherever what is made in its scope is used.

        It has one value in each run of its scope, and what is made in a run is used in that alone.
        """
        if not isinstance(cell, Variable) or not self._is_steady(cell):
            return False
        owner = cell.scope.function.node
        return isinstance(owner, Owner) and not self._may_have_older(owner, carriers)

    def _is_steady(self, variable: Variable) -> bool:
        """Whether a variable is set once and for all in each run of its scope."""
        stores = self.definitions.stores(variable)
        if len(stores) != 1:
            # Several imports of one name count as one: `try: import x; except ImportError: …`
            are_imports = all(isinstance(store, ast.alias) for store in stores)
            if not are_imports:
                return False
        # In a loop, one statement sets it many times.
        for store in stores:
            for outer in variable.unit.ancestors(store):
                if outer is variable.scope.node:
                    break
                if isinstance(outer, LOOPS):
                    return False
        return variable not in self._set_from_outside

    @cached_property
    def _set_from_outside(self) -> set[Cell]:
        """The variables of modules that are set as attributes, or may be by `globals()`."""
        index = self.flow.engine.index
        stores = chain.from_iterable(index.stores.values())
        found = {*self._behind.writes}
        for node in (one.target for one in (*stores, *index.stores_by_key)):
            found |= self.evaluations.own(self.program.unit_of(node), node).writes
        for word in ("globals", "exec", "eval"):
            for call in index.called.get(word, ()):
                if self.program.full_name(call.func) == f"builtins.{word}":
                    scope = self.flow.reading.scopes[call].module
                    found |= {Variable(scope, name) for name in scope.names}
        return {cell for cell in found if isinstance(cell, Variable)}

    def _may_change(
        self,
        made: EvaluationSite,
        later: EvaluationSite,
        read: Effects,
        carriers: Collection[Object],
    ) -> bool:
        """Whether what is read may change between something being made and a later place.

        Goes up the call graph from both, until they meet in a function of which a run cannot have
        got what is made from an earlier run.
        """
        above = self._up(made)
        shared = {one for one in above if not self._may_have_older(one, carriers)}
        below = self._up(later, shared)
        for owner, numbers in below.items():
            order = self.program.order(owner)
            between = {one for number in numbers for one in order.backward(number)}
            if owner in shared:
                # Both happen in one run of this function, so what is between them is all there is.
                between &= _after(order, above[owner])
            elif self.program.callers(owner) is None or _are_own(read.reads, owner):
                # What uses it is called from elsewhere: the change may be there.
                return True
            if self._change(order, between, read):
                return True
        # On the way up from where it is made, to where they meet.
        meeting = shared & below.keys()
        for owner, numbers in self._up(made, meeting).items():
            order = self.program.order(owner)
            if owner not in meeting and self._change(
                order, _after(order, numbers), read
            ):
                return True
        return False

    def _up(self, site: EvaluationSite, until: Collection[Owner] = ()) -> Numbers:
        """The evaluations in which another happens, by the function that they are in.

        They are itself, and the calls that lead to it, not further than to some functions.
        """
        found: Numbers = {}
        pending = [site]
        while pending:
            current = pending.pop()
            numbers = found.setdefault(current.owner, set())
            if current.number not in numbers:
                numbers.add(current.number)
                if current.owner not in until:
                    pending += self.program.callers(current.owner) or ()
        return found

    def _may_have_older(self, owner: Owner, carriers: Collection[Object]) -> bool:
        """Whether a run of a function may get something that an earlier run has made."""
        if isinstance(owner, ast.Module):
            return False
        function = self.flow.engine.functions[owner]
        items: list[Object] = []
        arguments = owner.args
        several = (arguments.vararg, arguments.kwarg)
        for parameter in (*parameters_of(arguments), *several):
            if parameter is not None:
                items += self.program.objects_at(function.scope, parameter.arg)
        # Variables of the functions and the module around it, as well as its arguments.
        scope = function.scope.parent
        while scope is not None:
            for name in scope.names:
                items += self.program.objects_at(scope, name)
            scope = scope.parent
        return not self.handing.within(items).isdisjoint(carriers)


def _are_own(cells: Iterable[Cell], owner: Owner) -> bool:
    """Whether some of the cells are variables that each run of a function has for itself."""
    variables = (cell for cell in cells if isinstance(cell, Variable))
    return any(variable.scope.function.node is owner for variable in variables)


def _after(order: Order, numbers: Iterable[int]) -> set[int]:
    """What may come after any of some evaluations."""
    return {one for number in numbers for one in order.forward(number)}


def _given_in(node: ast.AST) -> set[ast.AST]:
    """What the calls in an expression give to their functions."""
    calls = (inner for inner in evaluated(node) if isinstance(inner, ast.Call))
    return {value for call in calls for value in given(call)}
