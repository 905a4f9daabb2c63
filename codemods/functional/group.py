"""Where the optimizers of a group are: the expressions and variables that hold one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from codemods.analysis.facts import Facts
from codemods.analysis.origins import FunctionNode, Variable
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.dataflow.program import functions_in
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.inference.holders import unwrapped
from codemods.inference.objects import Derivative, LegacyObject
from codemods.sources.modules import Unit
from codemods.vocabulary import CONTROL

MAKERS = ("definition.create", "optimizer.apply_gradient")
KNOWN = (
    *("definition", "custom", "class", "value", "dynamic", "base", "import", "module"),
    *("optimizer.target", "filter"),
    *MAKERS,
)
"""The uses that have a counterpart in parts, or are not uses of an optimizer."""


Holders = Mapping[LegacyObject, list[tuple[Unit, ast.expr]]]
"""The expressions of a project that hold each optimizer."""


def holders(facts: Facts) -> Holders:
    found: Holders = defaultdict(list)
    for unit in facts.project.units:
        for node in unit.nodes:
            if not isinstance(node, ast.expr) or node not in facts.flow.places:
                continue
            if isinstance(getattr(node, "ctx", None), ast.Load | None):
                for obj in facts.legacy_objects(node, "optimizer"):
                    found[obj].append((unit, node))
    return found


class Group:
    """Optimizers that migrate together, with all that holds one of them and all that uses one."""

    def __init__(
        self,
        stepping: Stepping,
        results: Results,
        held: Holders,
        members: list[LegacyObject],
    ) -> None:
        self.stepping = stepping
        self.results = results
        self.facts = stepping.facts
        self.origins = stepping.origins
        self.members = {*members}
        self.optimizers = [obj for obj in members if obj.kind == "optimizer"]
        removed = results.removed(members)
        self.uses = [
            use
            for use in self.facts.uses
            if use.node not in removed and self.members & {*use.objects}
        ]
        self.makers: dict[ast.expr, Use] = {}
        for use in self.uses:
            is_passed_on = use.kind in MAKERS and use.call is None
            if use.kind not in KNOWN or is_passed_on:
                raise no_counterpart(use.node, use.unit)
            if use.kind in MAKERS and use.call is not None:
                self.makers[use.call] = use
        if not all(map(self.facts.legacy.definitions, self.optimizers)):
            raise Unproven("the place that makes it is not in view")
        self.expressions: dict[ast.expr, Unit] = {}
        for obj in self.optimizers:
            for unit, node in held[obj]:
                if node not in removed:
                    self.expressions[node] = unit
        self.variables: dict[Variable, None] = {}
        for node, unit in self.expressions.items():
            self._note_variables(node, unit)
        for variable in self.variables:
            self._check(variable, removed)

    def _note_variables(self, node: ast.expr, unit: Unit) -> None:
        """Note the variables that an optimizer is read from or assigned to."""
        is_alone = self.members.issuperset(self.facts.objects(node))
        variable = self.origins.variable(node)
        # optimizers[0], or optimizer if optimizer else None
        if not is_alone or not (variable or isinstance(node, ast.Call)):
            raise no_counterpart(node, unit)
        if variable is not None:
            self.variables[variable] = None
        match unit.parents[node]:
            case ast.Assign(targets=[ast.Name() as target]):
                self.variables[self.target(target, node)] = None
            # state.optimizer = …, or best = optimizer = …
            case ast.Assign():
                raise no_counterpart(node, unit)

    def target(self, name: ast.Name, value: ast.expr) -> Variable:
        """The variable that an assignment of a value sets."""
        scope = self.facts.scope(value).binding(name.id)
        assert scope is not None
        return Variable(scope, name.id)

    def _check(self, variable: Variable, removed: set[ast.AST]) -> None:
        """Refuse a variable that is set or read in a way that has no counterpart."""
        unit, stores = variable.unit, self.origins.stores(variable)
        for load in self.origins.loads(variable):
            if load not in self.expressions and load not in removed:
                raise no_counterpart(load, unit)
        # nonlocal optimizer
        if not stores:
            raise no_counterpart(variable.scope.node, unit)
        for store in stores:
            # with make() as optimizer, or optimizer += 1
            if not isinstance(store, ast.arg) and not self._is_assigned(store, unit):
                raise no_counterpart(store, unit)

    def _is_assigned(self, store: ast.AST, unit: Unit) -> bool:
        """Whether a plain assignment sets a variable, by itself or in a tuple."""
        outer = store
        # (optimizer, loss), rng = …
        while isinstance(parent := unit.parents[outer], ast.Tuple):
            outer = parent
        match parent:
            case ast.Assign(targets=[target], value=value) if target is outer:
                return outer is not store or value in self.expressions
        return False

    # What is called

    def functions(self, call: ast.Call) -> list[FunctionNode]:
        """The functions of the project that a call is of, if it is of nothing else."""
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        # jax.value_and_grad(loss_fn) returns other things than the function
        if any(isinstance(item, Derivative) for item in items):
            return []
        functions = [function.node for function in functions_in(items)]
        return functions if len(functions) == len(items) else []

    def is_loop(self, call: ast.AST) -> bool:
        """Whether this is a loop or branch of JAX, which carries any pytree."""
        names = self.facts.externals(call.func) if isinstance(call, ast.Call) else []
        return bool(names) and CONTROL.issuperset(names)


def no_counterpart(node: ast.AST, unit: Unit) -> Unproven:
    """Why optimizers stay that are used in another way than the guide's at a node."""
    where = unit.location(getattr(node, "lineno", 1))
    return Unproven("{} has no counterpart in two variables", where)
