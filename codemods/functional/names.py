"""The parts that an optimizer falls into, and the names of the variables that hold them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.analysis.origins import Origins, Variable, statement_of
from codemods.idioms import Unproven
from codemods.renaming.new_names import WORD

PARAMS = ("params", "model_params")
OPT_STATE = ("opt_state", "optimizer_state")
TRANSFORMATION = ("tx", "transformation")
UPDATES = ("updates", "param_updates")


@dataclass(frozen=True)
class Parts:
    """The names of an optimizer's parts."""

    params: str
    opt_state: str

    def __str__(self) -> str:
        """The parts as elements of a tuple around them: `params, opt_state`."""
        return f"{self.params}, {self.opt_state}"


class Names:
    """Gives names that no other variable has, and remembers in which scope it has `given` them.

    A statement that returns an optimizer is `given` the name `return`.
    """

    def __init__(
        self, origins: Origins, given: Iterable[tuple[ast.AST, str]] = ()
    ) -> None:
        self.origins = origins
        self.given = {*given}

    def parts(self, variable: Variable, params: str = "") -> Parts:
        """The names of the parts of a variable, perhaps with one for `params` that is known."""
        params = params or self.beside(variable, PARAMS)
        return Parts(params, self.beside(variable, OPT_STATE))

    def beside(self, variable: Variable, choices: tuple[str, ...]) -> str:
        """A name for something that belongs to a variable: `g_tx` for `g_optimizer`."""
        old, owner = variable.name, variable.scope.node
        # g_tx, or model_tx where that says nothing of an optimizer
        names = [
            WORD.sub(choice, old) if WORD.search(old) else f"{old}_{choice}"
            for choice in choices
        ]
        for name in names:
            if (owner, name) not in self.given and self._is_free(name, variable):
                self.given.add((owner, name))
                return name
        where = variable.unit.location(getattr(owner, "lineno", 1))
        raise Unproven("the name `{}` is taken at {}", names[0], where)

    def _is_free(self, name: str, variable: Variable) -> bool:
        """Whether a name can be that of a part of a variable wherever this is."""
        scope, scope_of = variable.scope, self.origins.facts.scope
        here = scope.binding(name)
        # lambda params: loss(params, optimizer.target)
        for load in self.origins.loads(variable):
            if scope_of(load).binding(name) is not here:
                return False
        names = (one for one in ast.walk(scope.node) if isinstance(one, ast.Name))
        is_used = here is scope or any(
            one.id == name and scope_of(one).binding(name) is here for one in names
        )
        # params = model.init(rng), which is not read behind definition.create(params)
        return not is_used or self._ends_before(Variable(scope, name), variable)

    def _ends_before(self, other: Variable, variable: Variable) -> bool:
        """Whether another variable is not read once a variable is set: one name can do for both."""
        stores, others = self.origins.stores(variable), self.origins.stores(other)
        # only a name of the function's own, and not that of def train(optimizer)
        if not (isinstance(other.scope.node, ast.FunctionDef) and stores and others):
            return False
        follows, scope_of = self.origins.dataflow.may_follow, self.origins.facts.scope
        settings = [
            statement_of(variable.unit, name)
            for name in stores
            if isinstance(name, ast.Name)
        ]
        inside = {node for setting in settings for node in ast.walk(setting)}
        # params, optimizer = …, which sets both at once
        if len(settings) < len(stores) or not inside.isdisjoint(others):
            return False
        for node in (*others, *self.origins.loads(other)):
            # a function within this one may be called at any time
            is_own = isinstance(node, ast.Name) and scope_of(node) is other.scope
            is_later = any(follows(node, setting) for setting in settings)
            if not isinstance(node, ast.arg) and (is_later or not is_own):
                return False
        return True
