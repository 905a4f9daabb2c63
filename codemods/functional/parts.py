"""The parts that an optimizer falls into, and the names of the variables that hold them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from codemods.analysis.origins import Origins, Variable, statement_of
from codemods.flow.scopes import ScopeNode, bound_names
from codemods.functional.places import Group
from codemods.idioms import Unproven
from codemods.renaming.names import WORD
from codemods.sources.modules import Unit

PARAMS = ("params", "model_params")
OPT_STATE = ("opt_state", "optimizer_state")
STEP = ("step", "steps_taken")
TRANSFORMATION = ("tx", "transformation")
UPDATES = ("updates", "param_updates")
ATTRIBUTES: dict[tuple[str, ...], str] = {PARAMS: "target", STEP: "step"}
"""What an optimizer, or its state, called a part."""


@dataclass(frozen=True)
class Parts:
    """The names of an optimizer's parts; `step` is empty if nobody asks for the number of steps."""

    params: str
    opt_state: str
    step: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (
            (self.params, self.opt_state, self.step) if self.step else (self.params, self.opt_state)
        )

    @property
    def flat(self) -> str:
        return ", ".join(self.names)

    @property
    def nested(self) -> str:
        return f"({self.flat})"


class Names:
    """Gives names that no other variable has; it remembers what it has given in each function.

    `merged` are the statements that give a part a name of its own, and go since it has that name now.
    """

    def __init__(
        self, origins: Origins, given: Mapping[ast.AST, set[str]] = MappingProxyType({})
    ) -> None:
        self.origins = origins
        self._given: dict[ast.AST, set[str]] = defaultdict(
            set, {node: {*names} for node, names in given.items()}
        )
        self.merged: dict[ast.stmt, Unit] = {}
        self._moments: dict[tuple[ast.AST, tuple[str, ...]], str] = {}

    def copy(self) -> Names:
        """The same names given, to give more on trial."""
        names = Names(self.origins, self._given)
        names._moments = {**self._moments}
        return names

    def parts(self, variable: Variable, group: Group) -> Parts:
        """The names of the parts of a variable.

        Raises:
          Unproven: if all that come into question are taken.
        """
        params = group.made_for(variable)
        if not params or self._is_hidden(params, variable):
            params = self.beside(variable, PARAMS, group)
        step = self.beside(variable, STEP, group) if group.counts else ""
        return Parts(params, self.beside(variable, OPT_STATE, group), step)

    def for_a_moment(self, variable: Variable, choices: tuple[str, ...], group: Group) -> str:
        """A name for what is read just behind the place that sets it."""
        key = (variable.scope.node, choices)
        if key not in self._moments:
            self._moments[key] = self.beside(variable, choices, group, plain=True)
        return self._moments[key]

    def beside(
        self, variable: Variable, choices: tuple[str, ...], group: Group, plain: bool = False
    ) -> str:
        """A name for something that has to do with a variable: `g_tx` for `g_optimizer`, if it is not to be a `plain` one."""
        names = [choice if plain else _named_after(variable.name, choice) for choice in choices]
        owner = variable.scope.node
        for name in names:
            if name in self._given[owner] or self._is_hidden(name, variable):
                continue
            other = Variable(variable.scope, name)
            if not self._is_taken(name, variable) or self._ends_before(other, variable):
                self._given[owner].add(name)
                return name
            setting = group.alias(other, variable, ATTRIBUTES.get(choices, ""))
            if setting is not None:
                self._given[owner].add(name)
                self.merged[setting] = variable.unit
                return name
        raise Unproven(f"the name `{names[0]}` is taken in {group.where(owner, variable.unit)}")

    def _is_taken(self, name: str, variable: Variable) -> bool:
        """Whether a name means something within the scope of a variable, but for what scopes within it call so themselves."""
        scope = variable.scope.node
        return any(
            inner is None or inner is scope or scope not in variable.unit.ancestors(inner)
            for inner in _binders(name, variable)
        )

    def _is_hidden(self, name: str, variable: Variable) -> bool:
        """Whether a name means something else where a variable is read in a scope within that of the variable."""
        unit, scope = variable.unit, variable.scope.node
        readers = {_scope_around(load, unit) for load in self.origins.loads(variable)}
        around = {outer for reader in readers for outer in (reader, *unit.ancestors(reader))} - {
            None,
            scope,
        }
        return not around.isdisjoint(_binders(name, variable) - {*unit.ancestors(scope)})

    def _ends_before(self, other: Variable, variable: Variable) -> bool:
        """Whether another variable of the function is done with when a variable is first set, and so can go on as its part."""
        stores = self.origins.stores(variable)
        names = [store for store in stores if isinstance(store, ast.Name)]
        means_something = bool(self.origins.stores(other))  # here, and not outside
        if (
            not (stores and means_something)
            or len(names) < len(stores)
            or not isinstance(other.scope.node, ast.FunctionDef)
        ):
            return False
        unit, follows = variable.unit, self.origins.dataflow.may_follow
        settings = [statement_of(unit, name) for name in names if isinstance(name.ctx, ast.Store)]
        inside = {node for setting in settings for node in ast.walk(setting)}
        if not all(isinstance(setting, ast.Assign) for setting in settings):
            return False
        if not inside.isdisjoint(self.origins.stores(other)):
            return False

        def is_done(node: ast.AST) -> bool:
            here = isinstance(node, ast.Name) and _scope_around(node, unit) is other.scope.node
            return isinstance(node, ast.arg) or (
                here and not any(follows(node, setting) for setting in settings)
            )

        return all(map(is_done, (*self.origins.stores(other), *self.origins.loads(other))))


def _named_after(name: str, choice: str) -> str:
    return WORD.sub(choice, name) if WORD.search(name) else f"{name}_{choice}"


def _scope_around(node: ast.AST, unit: Unit) -> ast.AST:
    return next(
        (outer for outer in unit.ancestors(node) if isinstance(outer, ScopeNode)), unit.tree
    )


def _binders(name: str, variable: Variable) -> set[ast.AST | None]:
    """What binds a name, for each place within the scope of a variable that says it; None for what no scope around it does."""
    nodes = (node for node in ast.walk(variable.scope.node) if isinstance(node, ast.Name | ast.arg))
    said = (node for node in nodes if name == (node.id if isinstance(node, ast.Name) else node.arg))
    return {
        next((outer for outer in variable.unit.ancestors(node) if _binds(outer, name)), None)
        for node in said
    }


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ScopeNode) and any(
        bound == name and not how for bound, how in bound_names(node)
    )
