"""Where the optimizers of a group are: the expressions and variables that hold one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from codemods.analysis.facts import Facts
from codemods.analysis.origins import FunctionNode, Variable, block_of
from codemods.analysis.stepping import Stepping
from codemods.analysis.steps import Steps
from codemods.analysis.uses import Use
from codemods.dataflow.program import functions_in
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.idioms.order import Edits
from codemods.inference.binding import values_of
from codemods.inference.holders import unwrapped
from codemods.inference.objects import (
    Derivative,
    External,
    Function,
    LegacyObject,
    Result,
)
from codemods.model import Location
from codemods.sources.modules import Unit
from codemods.vocabulary import PYTREES


class Index:
    """The expressions of a project that hold an optimizer."""

    def __init__(self, facts: Facts) -> None:
        self.holders: dict[LegacyObject, list[tuple[Unit, ast.expr]]]
        self.holders = defaultdict(list)
        places = facts.flow.places
        for unit in facts.project.units:
            for node in unit.nodes:
                if not isinstance(node, ast.expr) or node not in places:
                    continue
                if _is_read(node):
                    for obj in facts.legacy_objects(node, "optimizer"):
                        self.holders[obj].append((unit, node))


def _is_read(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load | None)


@dataclass(frozen=True)
class Beside:
    """What is known of steps, and what the idioms before this one do with them."""

    stepping: Stepping
    results: Results

    def removed(self, objects: Collection[LegacyObject]) -> set[ast.AST]:
        """The nodes that other idioms remove for some optimizers: rates and clippings."""
        return self.results.removed(objects)

    def edits(self, objects: Collection[LegacyObject]) -> list[Edits]:
        """What other idioms change for some objects."""
        return [*self.results.edits_of(objects)]


class Group:
    """Optimizers that migrate together, with all that holds one of them and all that uses one.

    `counts` says whether the number of steps is read.

    Raises:
      Unproven: if one of them is kept, used or passed on in a way that has no counterpart in parts.
    """

    def __init__(
        self,
        beside: Beside,
        index: Index,
        members: list[LegacyObject],
        counts: bool,
    ) -> None:
        self.beside = beside
        self.facts = beside.stepping.facts
        self.origins = beside.stepping.origins
        self.counted = self.facts.of(Steps)
        self.members = {*members}
        self.optimizers = [obj for obj in members if obj.kind == "optimizer"]
        self.removed = beside.removed(members)
        self.expressions: dict[ast.expr, Unit] = {}
        for obj in self.optimizers:
            for unit, node in index.holders[obj]:
                if node not in self.removed:
                    self.expressions[node] = unit
        self.uses = self._own_uses()
        self.by_call: dict[ast.Call, Use] = {}
        for use in self.uses:
            call = use.call
            if call is not None and "." in use.kind:
                self.by_call[call] = use
        reads_step = any(use.kind == "state.step" for use in self.uses)
        self.counts = counts or reads_step
        self.variables: dict[Variable, None] = {}
        self._find_variables()
        for variable in self.variables:
            self._check(variable)

    def _own_uses(self) -> list[Use]:
        """The uses of the group that stay."""
        staying = (use for use in self.facts.uses if use.node not in self.removed)
        return [use for use in staying if self.members & {*use.objects}]

    def _find_variables(self) -> None:
        """Note the variables that optimizers are read from or assigned to."""
        for node, unit in self.expressions.items():
            self._check_alone(node, unit)
            if isinstance(node, ast.Name):
                variable = self.origins.variable(node)
                if variable is None:
                    where = unit.location(node.lineno)
                    raise Unproven("nothing tells what `{}` is at {}", node.id, where)
                self.variables[variable] = None
            # optimizers[0], or train.optimizer
            elif not isinstance(node, ast.Call):
                where = unit.location(node.lineno)
                raise Unproven("it is kept in something else at {}", where)
        for node, unit in self.expressions.items():
            parent = unit.parents[node]
            if isinstance(parent, ast.Assign):
                self._note_target(parent, node, unit)

    def where(self, node: ast.AST, unit: Unit) -> str | Location:
        """What a message calls a scope: a function by its name, others by their place."""
        if isinstance(node, ast.FunctionDef):
            return f"`{node.name}`"
        return unit.location(getattr(node, "lineno", 1))

    def _check_alone(self, node: ast.expr, unit: Unit) -> None:
        """Refuse an expression that may be something else than an optimizer of the group."""
        for item in self.facts.objects(node):
            match item:
                case LegacyObject() if item in self.members:
                    continue
                # jax_utils.replicate(optimizer)
                case Result(name=name) if name in PYTREES:
                    continue
            where = unit.location(node.lineno)
            raise Unproven("something else may be in its place at {}", where)

    def _note_target(self, statement: ast.Assign, node: ast.expr, unit: Unit) -> None:
        [target, *more] = statement.targets
        # state.optimizer = …, or best = optimizer = …
        if not isinstance(target, ast.Name) or more:
            where = unit.location(node.lineno)
            raise Unproven("it is kept in something else at {}", where)
        self.variables[self.target(target, node)] = None

    def target(self, name: ast.Name, value: ast.expr) -> Variable:
        """The variable that an assignment of a value sets."""
        scope = self.facts.scope(value).binding(name.id)
        assert scope is not None
        return Variable(scope, name.id)

    def _check(self, variable: Variable) -> None:
        """Refuse a variable that is set or read in a way that has no counterpart."""
        unit = variable.unit
        for load in self.origins.loads(variable):
            if load not in self.expressions and load not in self.removed:
                where = unit.location(load.lineno)
                raise Unproven("nothing tells what `{}` is at {}", variable.name, where)
        stores = self.origins.stores(variable)
        # nonlocal optimizer
        if not stores:
            raise Unproven(f"`{variable.name}` is set from within another function")
        for store in stores:
            if isinstance(store, ast.arg):
                continue
            # with make() as optimizer, or optimizer += 1
            if not isinstance(store, ast.Name) or not self._is_plain(store, unit):
                where = unit.location(getattr(store, "lineno", 1))
                why = "`{}` is set in a way that has no counterpart at {}"
                raise Unproven(why, variable.name, where)

    def _is_plain(self, store: ast.Name, unit: Unit) -> bool:
        """Whether an assignment or a loop sets a variable, by itself or in a tuple; or `del`."""
        outer: ast.AST = store
        # del optimizer
        if isinstance(unit.parents[store], ast.Delete):
            return True
        # (optimizer, loss), rng = …
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        match parent:
            case ast.Assign(targets=[target], value=value) if target is outer:
                return outer is not store or value in self.expressions
        # for optimizer in optimizers:
        return isinstance(parent, ast.For) and parent.target is outer

    def alias(
        self,
        other: Variable,
        variable: Variable,
        attribute: str,
    ) -> ast.stmt | None:
        """The statement `other = variable.attribute`, if the other variable is always this part."""
        setting = self.origins.setting(other)
        value = setting.value if isinstance(setting, ast.Assign) else None
        reads = (use for use in self.uses if use.name == attribute)
        use = next((use for use in reads if use.node is value), None)
        # the variable in `variable.state.step`, or in `variable.state[0].step`
        owner: ast.AST | None = value
        while isinstance(owner, ast.Attribute | ast.Subscript):
            owner = owner.value
        if use is None or not isinstance(owner, ast.Name):
            return None
        if self.origins.variable(owner) != variable:
            return None
        # what needs an array gets one that is made of the number
        if use.kind == "state.step" and self.counted.read(use, owner, "") != "":
            return None
        if setting is None or len(block_of(other.unit, setting)) < 2:
            return None
        is_always = self._stays(variable, setting, self.origins.loads(other))
        return setting if is_always else None

    def made_for(self, variable: Variable) -> str:
        """The variable with the parameters that an optimizer is made for, if neither changes."""
        setting = self.origins.setting(variable)
        value = setting.value if isinstance(setting, ast.Assign) else None
        if setting is None or not isinstance(value, ast.Call):
            return ""
        # optimizer = definition.create(params)
        if self.use_of(value, "definition.create") is None:
            return ""
        given = values_of(value)
        if len(given) != 1:
            return ""
        other = self.origins.variable(given[0])
        if other is None or other.scope is not variable.scope:
            return ""
        stays = self._stays(other, setting, self.origins.loads(variable))
        return other.name if stays else ""

    def _stays(
        self,
        variable: Variable,
        setting: ast.stmt,
        loads: list[ast.Name],
    ) -> bool:
        """Whether a variable is the same at a statement and at some later places."""
        unchanged = self.facts.dataflow.unchanged
        return all(unchanged(variable, setting, load) for load in loads)

    # What is called

    def functions(self, call: ast.Call) -> list[Function]:
        """The functions of the project that a call is of, if it is of nothing else."""
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        functions: list[Function] = []
        for item in items:
            # jax.value_and_grad(loss_fn), which returns other things than the function
            if not isinstance(item, Derivative):
                functions += functions_in([item])
        return functions if len(functions) == len(items) else []

    def is_derivative(self, call: ast.Call) -> bool:
        """Whether a call may be of what `jax.grad` and the like make."""
        called = self.facts.objects(call.func)
        return any(isinstance(item, Derivative) for item in called)

    def is_of_pytrees(self, call: ast.Call, names: frozenset[str] = PYTREES) -> bool:
        """Whether a call is of something that takes any pytree."""
        items = list(self.facts.objects(call.func))
        for item in items:
            if not isinstance(item, External):
                return False
            if item.name not in names:
                return False
        return bool(items)

    def use_of(self, call: ast.Call, kind: str) -> Use | None:
        """The use that a call is, if it is one of a kind."""
        use = self.by_call.get(call)
        return use if use is not None and use.kind == kind else None


def function_around(node: ast.AST, unit: Unit) -> FunctionNode:
    """The function in which a node is."""
    around = unit.ancestors(node)
    return next(outer for outer in around if isinstance(outer, FunctionNode))
