"""What may happen between two moments of a program, and whether that changes what is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from itertools import chain, takewhile

from codemods.dataflow.definitions import LOOPS, Definitions
from codemods.dataflow.effects import Cell, Effects, Field, Variable
from codemods.dataflow.evaluation import Evaluations, evaluated, given
from codemods.dataflow.handing import Handing
from codemods.dataflow.program import EvaluationSite, Program
from codemods.inference.control_flow import EXIT, Order, Owner
from codemods.inference.objects import Class, Function, Instance, Module, Object
from codemods.inference.reading import FunctionNode
from codemods.inference.view import View
from codemods.sources.modules import Unit

WORD = re.compile(r"\w+")
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
        self._others = list(others)
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
        one, other = self.effects(first), self.effects(second)
        # The order of what two of them print or store would change.
        are_seen = (one.acts or one.world) and (other.acts or other.world)
        return not (
            are_seen
            or self._disturbs(one, other, second)
            or self._disturbs(other, one, first)
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
        fields = [cell for cell in read.reads if isinstance(cell, Field)]
        if self._is_any_written(read.reads, effects.writes) or self.handing.may_change(
            fields, read.through, effects.handed
        ):
            return True
        if not effects.acts:
            return False
        named = self.handing.set_somewhere
        is_set = any(
            (cell.name in named or self._set_elsewhere & cell.owners)
            and self._is_in_reach(cell)
            for cell in fields
        )
        if is_set:
            return True
        shared = [cell for cell in read.reads if self._may_be_set(cell)]
        return bool(shared) and self._is_any_written(shared, self._behind.writes)

    def _may_be_set(self, cell: Cell) -> bool:
        """Whether a function in view may change something that is not its own, by its name."""
        if isinstance(cell, Variable):
            return not self._is_local(cell)
        # of an unknown object, only the attribute of that name
        return bool(cell.owners) or cell.name in self.handing.set_somewhere

    def _is_local(self, cell: Cell) -> bool:
        """Whether a variable is set within its own function alone."""
        # nonlocal count, in a function within
        return (
            isinstance(cell, Variable)
            and not isinstance(cell.scope.node, ast.Module | ast.ClassDef)
            and not any(
                isinstance(store, ast.Nonlocal)
                for store in self.definitions.stores(cell)
            )
        )

    def _is_in_reach(self, cell: Cell) -> bool:
        """Whether code out of view may have the object of an attribute or element."""
        return isinstance(cell, Field) and not self._is_hidden(cell)

    def _is_any_written(self, cells: Iterable[Cell], written: Collection[Cell]) -> bool:
        """Whether a change of some cells may be one of others."""
        fields = [other for other in written if isinstance(other, Field)]
        return any(
            cell in written
            if isinstance(cell, Variable)
            else any(self._may_be_one(cell, other) for other in fields)
            for cell in cells
        )

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
        escaping = (
            item
            for unit in self.flow.project.read
            for node in unit.nodes
            for value in self._given_away(unit, node)
            for item in self.program.objects(value)
        )
        return frozenset(self.handing.within(escaping) | self._set_elsewhere)

    @cached_property
    def _set_elsewhere(self) -> frozenset[Object]:
        """The objects that files which are not analysed change, and all within them."""
        # of a module, the variables that are set are known by their names
        found = (
            item
            for variable in self._named_elsewhere
            for item in self.program.objects_at(variable.scope, variable.name)
            if not isinstance(item, Module)
        )
        return frozenset(self.handing.within(found))

    @cached_property
    def _named_elsewhere(self) -> frozenset[Variable]:
        """The variables of modules that files which are not analysed may set or change.

        Such a file has their names, or may call a function in view that declares them global.
        """
        words = {word for text in self._others for word in WORD.findall(text)}
        return frozenset(
            Variable(scope, name)
            for unit, scope in self.flow.modules.items()
            for bound in (unit.bindings.values() if words else ())
            for name, declared, _ in bound
            if declared == "global" or (name in words and name in scope.names)
        )

    def _given_away(self, unit: Unit, node: ast.AST) -> Iterable[ast.AST]:
        """The values that get to code out of view at a node."""
        match node:
            # registry.best = value, where nothing is known of `registry`
            case (
                ast.Attribute(value=owner, ctx=ast.Store())
                | ast.Subscript(value=owner, ctx=ast.Store())
            ):
                statement = unit.parents.get(node)
                if isinstance(statement, ast.Assign):
                    return [] if self.program.states(owner) else [statement.value]
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
        found.writes |= modules | self._named_elsewhere
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
        return self.is_before(first, second) and not self._may_change_between(
            first, second, Effects({variable})
        )

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
        start, end = self._site(first), self._site(second)
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
        unit = self.program.unit_of(order.owner)
        # The beginning and the end are no evaluations.
        return bool(read.reads) and any(
            self.changes(self.evaluations.at(unit, order.nodes[number]), read)
            for number in numbers
            if number > EXIT
        )

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
        start, end = self._site(made), self._site(later)
        if start is None or end is None:
            return False
        moments = (start.owner, start.number, end.owner, end.number)
        key = (moments, frozenset(read.reads), frozenset(read.through))
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
        # Several imports of one name count as one: `try: import x; except ImportError: …`
        are_imports = all(isinstance(store, ast.alias) for store in stores)
        if variable in self._set_from_outside or not (len(stores) == 1 or are_imports):
            return False
        # In a loop, one statement sets it many times.
        return not any(
            isinstance(outer, LOOPS)
            for store in stores
            for outer in takewhile(
                lambda one: one is not variable.scope.node,
                variable.unit.ancestors(store),
            )
        )

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
        # Variables of the functions and the module around it, as well as its arguments.
        names = [
            (function.scope, one.arg)
            for one in ast.walk(owner.args)
            if isinstance(one, ast.arg)
        ]
        scope = function.scope.parent
        while scope is not None:
            names += ((scope, name) for name in scope.names)
            scope = scope.parent
        items = chain.from_iterable(self.program.objects_at(*one) for one in names)
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
    return {
        value
        for call in evaluated(node)
        if isinstance(call, ast.Call)
        for value in given(call)
    }
