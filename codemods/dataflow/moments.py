"""What may happen between two moments of a program, and whether that changes what is read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import takewhile

from codemods.dataflow.control_flow import EXIT, FunctionNode, Order, Owner
from codemods.dataflow.definitions import LOOPS, Definitions
from codemods.dataflow.effects import Cell, Effects, Field, Variable
from codemods.dataflow.elsewhere import Elsewhere
from codemods.dataflow.evaluation import Evaluations, evaluated
from codemods.dataflow.handing import Handing
from codemods.dataflow.program import EvaluationSite, Program, is_any
from codemods.inference.binding import parameters_of, values_of
from codemods.inference.objects import (
    Class,
    Container,
    Function,
    Instance,
    Module,
    Object,
)
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
        # What is out of view may read what the other changes.
        if one.acts and any(map(self._is_in_reach, other.writes)):
            return False
        if other.acts and any(map(self._is_in_reach, one.writes)):
            return False
        if one.acts and self._is_taken(one.handed, second):
            return False
        if other.acts and self._is_taken(other.handed, first):
            return False
        if self.changes(one, other.reads | other.writes, other.through):
            return False
        return not self.changes(other, one.reads | one.writes, one.through)

    def _is_taken(self, handed: Collection[Object | Cell], node: ast.AST) -> bool:
        """Whether a call in an expression takes something that code out of view is handed."""
        calls = (inner for inner in evaluated(node) if isinstance(inner, ast.Call))
        taken = {item for call in calls for item in self.evaluations.given(call)}
        return not taken.isdisjoint(handed)

    def changes(
        self,
        effects: Effects,
        cells: Collection[Cell],
        through: Collection[Cell] = (),
    ) -> bool:
        """Whether something with some effects changes what is in some cells, as far as code shows.

        Code out of view may change what it is handed, call functions that have escaped, and set
        what is set anywhere. That it is called shows nothing of other objects. Those of which
        nothing is known are read `through` some variables and fields.
        """
        if any(self._is_written(cell, effects.writes) for cell in cells):
            return True
        fields = [cell for cell in cells if isinstance(cell, Field)]
        if self.handing.may_change(fields, through, effects.handed):
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
            not _is_local(cell) and self._is_written(cell, self._behind.writes)
            for cell in cells
        )

    def _is_in_reach(self, cell: Cell) -> bool:
        """Whether code out of view may have the object of an attribute or element."""
        return isinstance(cell, Field) and not self._is_hidden(cell)

    def _is_written(self, cell: Cell, written: Collection[Cell]) -> bool:
        if isinstance(cell, Variable):
            return cell in written
        fields = (other for other in written if isinstance(other, Field))
        return any(self._overlap(cell, other) for other in fields)

    def _overlap(self, one: Field, other: Field) -> bool:
        if not one.overlaps(other):
            return False
        # If the owner of one is not known, the attributes have one name, and it is at least no
        # object that has not escaped.
        if one.owners and not other.owners:
            return one.name == other.name and not self._is_hidden(one)
        if other.owners and not one.owners:
            return one.name == other.name and not self._is_hidden(other)
        return bool(one.owners) or one.name == other.name

    def _is_hidden(self, cell: Field) -> bool:
        """Whether the objects of a cell have not escaped to code out of view."""
        if not cell.owners:
            return False
        return cell.owners.isdisjoint(self._escaped)

    # Escape

    @cached_property
    def _escaped(self) -> frozenset[Object]:
        """The objects that get to code out of view, and all that can be reached from them."""
        escaping: list[Object] = []
        for unit, call in self.flow.all_calls:
            if self.evaluations.own(unit, call).acts:
                escaping += self._passed(call)
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

    def _passed(self, call: ast.Call) -> Iterator[Object]:
        """The objects that a call passes to a function out of view."""
        for argument in values_of(call):
            value = argument.value if isinstance(argument, ast.Starred) else argument
            yield from self.program.objects(value)
        # model.fit(batch): a method out of view has the model, too
        if isinstance(call.func, ast.Attribute):
            for owner in self.program.objects(call.func.value):
                if self.evaluations.may_inherit(owner):
                    yield owner

    def _given_away(self, unit: Unit, node: ast.AST) -> Iterable[ast.AST]:
        """The values that get to code out of view at a node that is no call."""
        match node:
            # Whoever takes the next element may be out of view.
            case ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value):
                return [value]
            case ast.Attribute(value=value, attr="__dict__"):
                return [value]
            # registry.best = value, where nothing is known of `registry`
            case (
                ast.Attribute(value=owner, ctx=ast.Store())
                | ast.Subscript(value=owner, ctx=ast.Store())
            ):
                statement = unit.parents.get(node)
                if isinstance(statement, ast.Assign) and not self._are_in_view(owner):
                    return [statement.value]
            # @register, of which nothing is known
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any(map(self.evaluations.is_unknown_decorator, node.decorator_list)):
                    return [node]
        return []

    def _are_in_view(self, node: ast.expr) -> bool:
        """Whether it is known what an expression may be, and all of that is made in view."""
        owners = self.program.objects(node)
        for owner in owners:
            is_made_in_view = isinstance(owner, Instance | Container | Class | Module)
            if not is_made_in_view or is_any(owner):
                return False
        return bool(owners)

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
                    functions += [one.node for one in members]
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
        found = [self.effects(node) for node in nodes]
        run = self._run(first, second)
        if run is None:
            return False
        cells: set[Cell] = set()
        through: set[Cell] = set()
        for effects in found:
            if known and not effects.are_none:
                return False
            cells |= effects.reads
            through |= effects.through
        order, start, end = run
        between = order.between(start, end)
        return not self._change(order, between, cells, through)

    def unchanged(self, variable: Variable, first: ast.AST, second: ast.AST) -> bool:
        """Whether a variable has the same value at two moments of one run of a function.

        The first moment comes before the second.
        """
        run = self._run(first, second)
        if run is None:
            return False
        order, start, end = run
        if not order.dominates(start, end):
            return False
        between = order.between(start, end)
        return not self._change(order, between, {variable})

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

    def _change(
        self,
        order: Order,
        numbers: Iterable[int],
        cells: Collection[Cell],
        through: Collection[Cell] = (),
    ) -> bool:
        """Whether some evaluations may change what is in some cells."""
        unit = self.program.unit_of(order.owner)
        if not cells:
            return False
        for number in numbers:
            # The beginning and the end are no evaluations.
            if number <= EXIT:
                continue
            effects = self.evaluations.at(unit, order.nodes[number])
            if self.changes(effects, cells, through):
                return True
        return False

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
        cells: set[Cell] = set()
        through: set[Cell] = set()
        for node in nodes:
            unit = self.program.unit_of(node)
            effects = self.evaluations.at(unit, node)
            if not effects.are_none:
                return False
            cells |= effects.reads
            through |= effects.through
        unsettled = {
            cell for cell in cells if not self._is_settled_cell(cell, carriers)
        }
        if not unsettled:
            return True
        start = self._site(made)
        end = self._site(later)
        if start is None or end is None:
            return False
        first = (start.owner, start.number)
        last = (end.owner, end.number)
        key = (first, last, frozenset(unsettled), frozenset(through))
        if key not in self._changed:
            self._changed[key] = self._may_change(
                start, end, unsettled, through, carriers
            )
        return not self._changed[key]

    def _site(self, node: ast.AST) -> EvaluationSite | None:
        unit = self.program.unit_of(node)
        return self.program.site(unit, node)

    def _is_settled_cell(self, cell: Cell, carriers: Collection[Object]) -> bool:
        if not isinstance(cell, Variable):
            return False
        return self.is_settled(cell, carriers)

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
            around = self._around(store, variable)
            if any(isinstance(outer, LOOPS) for outer in around):
                return False
        return variable not in self._set_from_outside

    def is_settled(self, variable: Variable, carriers: Collection[Object]) -> bool:
        """Whether a variable has one value wherever what is made in its scope is used.

        It has one value in each run of its scope, and what is made in a run is used in that alone.
        """
        return self._is_steady(variable) and self.is_shared(variable, carriers)

    def is_shared(self, variable: Variable, carriers: Collection[Object]) -> bool:
        """Whether what is made in a run of a variable's function is used in that run alone."""
        owner = variable.scope.function.node
        if not isinstance(owner, Owner):
            return False
        return not self._may_have_older(owner, carriers)

    @staticmethod
    def _around(store: ast.AST, variable: Variable) -> Iterable[ast.AST]:
        return takewhile(
            lambda outer: outer is not variable.scope.node,
            variable.unit.ancestors(store),
        )

    @cached_property
    def _set_from_outside(self) -> set[Cell]:
        """The variables of modules that are set as attributes, or may be by `globals()`."""
        found: set[Cell] = set(self._behind.writes)
        for unit, node in self.flow.all_attributes:
            if not isinstance(node.ctx, ast.Load):
                found |= self.evaluations.own(unit, node).writes
        for unit, call in self.flow.all_calls:
            function = self.program.full_name(call.func)
            if function in ("builtins.globals", "builtins.exec", "builtins.eval"):
                scope = self.flow.modules[unit]
                found |= {Variable(scope, name) for name in scope.names}
            elif function == "builtins.setattr":
                found |= self.evaluations.own(unit, call).writes
        return {cell for cell in found if isinstance(cell, Variable)}

    def _may_change(
        self,
        made: EvaluationSite,
        later: EvaluationSite,
        cells: set[Cell],
        through: set[Cell],
        carriers: Collection[Object],
    ) -> bool:
        """Whether cells may change between something being made and a later place.

        Goes up the call graph from both, until they meet in a function of which a run cannot have
        got what is made from an earlier run.
        """
        above = self._up(made)
        below = self._up(later)
        pending = [later.owner]
        seen = set[Owner]()
        meeting = set[Owner]()
        while pending:
            owner = pending.pop()
            if owner in seen:
                continue
            seen.add(owner)
            order = self.program.order(owner)
            ends: set[int] = set()
            for number in below[owner]:
                ends |= order.backward(number)
            if owner in above and not self._may_have_older(owner, carriers):
                # Both happen in one run of this function, so what is between them is all there is.
                meeting.add(owner)
                starts = _after(order, above[owner])
                if self._change(order, starts & ends, cells, through):
                    return True
                continue
            # What uses it is called from elsewhere: the change may be there.
            callers = self._callers(owner)
            if callers is None or self._are_own(cells, owner):
                return True
            if self._change(order, ends, cells, through):
                return True
            pending += [site.owner for site in callers]
        return self._changes_on_the_way(made, meeting, above, cells, through)

    @staticmethod
    def _are_own(cells: Iterable[Cell], owner: Owner) -> bool:
        """Whether some of the cells are variables that each run of a function has for itself."""
        variables = (cell for cell in cells if isinstance(cell, Variable))
        return any(variable.scope.function.node is owner for variable in variables)

    def _changes_on_the_way(
        self,
        made: EvaluationSite,
        meeting: set[Owner],
        above: Numbers,
        cells: set[Cell],
        through: set[Cell],
    ) -> bool:
        """Whether cells may change after something is made, on the way up to functions.

        These are the functions in which `_may_change` has met what uses it.
        """
        pending = [made.owner]
        seen = set[Owner]()
        while pending:
            owner = pending.pop()
            if owner in seen or owner in meeting:
                continue
            seen.add(owner)
            order = self.program.order(owner)
            numbers = _after(order, above[owner])
            if self._change(order, numbers, cells, through):
                return True
            callers = self._callers(owner) or ()
            pending += [site.owner for site in callers]
        return False

    def _callers(self, owner: Owner) -> list[EvaluationSite] | None:
        """The calls of an owner; None if there may be others, or it is a module."""
        if not isinstance(owner, FunctionNode):
            return None
        return self.program.callers(owner)

    def _up(self, site: EvaluationSite) -> Numbers:
        """The evaluations in which another happens, by the function that they are in.

        They are itself, and the calls that lead to it.
        """
        found: Numbers = {}
        pending = [site]
        while pending:
            current = pending.pop()
            numbers = found.setdefault(current.owner, set())
            if current.number in numbers:
                continue
            numbers.add(current.number)
            pending += self._callers(current.owner) or ()
        return found

    def _may_have_older(self, owner: Owner, carriers: Collection[Object]) -> bool:
        """Whether a run of a function may get something that an earlier run has made."""
        if isinstance(owner, ast.Module):
            return False
        function = self.program.functions.get(owner)
        if function is None:
            return True
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


def _is_local(cell: Cell) -> bool:
    """Whether a variable is set within its own function alone."""
    if not isinstance(cell, Variable):
        return False
    if isinstance(cell.scope.node, ast.Module | ast.ClassDef):
        return False
    for node in ast.walk(cell.scope.node):
        # nonlocal count, in a function within
        if isinstance(node, ast.Nonlocal) and cell.name in node.names:
            return False
    return True


def _after(order: Order, numbers: Iterable[int]) -> set[int]:
    """What may come after any of some evaluations."""
    found: set[int] = set()
    for number in numbers:
        found |= order.forward(number)
    return found
