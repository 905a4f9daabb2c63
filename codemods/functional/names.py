"""The parts that an optimizer falls into, and the names of the variables that hold them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from codemods.analysis.origins import Origins, Variable, statement_of
from codemods.functional.group import Group
from codemods.idioms import Unproven
from codemods.renaming.new_names import WORD

PARAMS = ("params", "model_params")
OPT_STATE = ("opt_state", "optimizer_state")
STEP = ("step", "steps_taken")
TRANSFORMATION = ("tx", "transformation")
UPDATES = ("updates", "param_updates")


@dataclass(frozen=True)
class Parts:
    """The names of an optimizer's parts; `step` is empty if nothing reads the number of steps."""

    params: str
    opt_state: str
    step: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parts in order."""
        both = (self.params, self.opt_state)
        return (*both, self.step) if self.step else both

    @property
    def flat(self) -> str:
        """The parts as elements of a tuple around them: `params, opt_state`."""
        return ", ".join(self.names)

    @property
    def nested(self) -> str:
        """The parts as a tuple: `(params, opt_state)`."""
        return f"({self.flat})"


class Names:
    """Gives names that no other variable has, and remembers those that it has given."""

    def __init__(
        self,
        origins: Origins,
        given: Mapping[ast.AST, set[str]] = MappingProxyType({}),
    ) -> None:
        self.origins = origins
        copied = {node: {*names} for node, names in given.items()}
        self._given: dict[ast.AST, set[str]] = defaultdict(set, copied)

    def copy(self) -> Names:
        """The same names given, to give more on trial."""
        return Names(self.origins, self._given)

    def parts(self, variable: Variable, group: Group, params: str = "") -> Parts:
        """The names of the parts of a variable, perhaps with one for `params` that is known.

        Raises:
          Unproven: if all possible names are taken.
        """
        params = params or self.beside(variable, PARAMS, group)
        step = self.beside(variable, STEP, group) if group.counts else ""
        return Parts(params, self.beside(variable, OPT_STATE, group), step)

    def beside(self, variable: Variable, choices: tuple[str, ...], group: Group) -> str:
        """A name for something that belongs to a variable: `g_tx` for `g_optimizer`."""
        names = [_named_after(variable.name, choice) for choice in choices]
        owner = variable.scope.node
        for name in names:
            if name not in self._given[owner] and self._is_free(name, variable):
                self._given[owner].add(name)
                return name
        where = group.where(owner, variable.unit)
        raise Unproven("the name `{}` is taken in {}", names[0], where)

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
        """Whether another variable of the function is no more read once a variable is first set.

        Then its name can be that of a part: the two never have a value at the same time.
        """
        names = [
            one for one in self.origins.stores(variable) if isinstance(one, ast.Name)
        ]
        mentions = (*self.origins.stores(other), *self.origins.loads(other))
        # def train(optimizer)
        if not names or len(names) < len(self.origins.stores(variable)):
            return False
        # only a name of the function's own
        is_local = isinstance(other.scope.node, ast.FunctionDef)
        if not self.origins.stores(other) or not is_local:
            return False
        follows = self.origins.dataflow.may_follow
        scope_of = self.origins.facts.scope
        settings = [statement_of(variable.unit, name) for name in names]
        inside = {node for setting in settings for node in ast.walk(setting)}
        # params, optimizer = …, which sets both at once
        if not inside.isdisjoint(self.origins.stores(other)):
            return False
        for node in mentions:
            if isinstance(node, ast.arg):
                continue
            # a function within this one may be called at any time
            is_own = isinstance(node, ast.Name) and scope_of(node) is other.scope
            if not is_own or any(follows(node, setting) for setting in settings):
                return False
        return True


def _named_after(name: str, choice: str) -> str:
    """A name like another one: `g_tx`, or `model_tx` where that says nothing of an optimizer."""
    if not WORD.search(name):
        return f"{name}_{choice}"
    return WORD.sub(choice, name)
