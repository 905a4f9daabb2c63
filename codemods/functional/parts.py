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
from codemods.sources.bindings import ScopeNode
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
    """The names of an optimizer's parts; `step` is empty if nothing reads the number of steps."""

    params: str
    opt_state: str
    step: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parts in order."""
        if self.step:
            return self.params, self.opt_state, self.step
        return self.params, self.opt_state

    @property
    def flat(self) -> str:
        """The parts as elements of a tuple around them: `params, opt_state`."""
        return ", ".join(self.names)

    @property
    def nested(self) -> str:
        """The parts as a tuple: `(params, opt_state)`."""
        return f"({self.flat})"


class Names:
    """Gives names that no other variable has, and remembers those that it has given.

    `merged` are the statements that give a part a name of its own. They are removed, because the
    part has that name from the start.
    """

    def __init__(
        self,
        origins: Origins,
        given: Mapping[ast.AST, set[str]] = MappingProxyType({}),
    ) -> None:
        self.origins = origins
        copied = {node: {*names} for node, names in given.items()}
        self._given: dict[ast.AST, set[str]] = defaultdict(set, copied)
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
          Unproven: if all possible names are taken.
        """
        # definition.create(params): the variable goes on as the part, if it can be read everywhere
        params = group.made_for(variable)
        if not params or self._is_hidden(params, variable):
            params = self.beside(variable, PARAMS, group)
        step = self.beside(variable, STEP, group) if group.counts else ""
        return Parts(params, self.beside(variable, OPT_STATE, group), step)

    def for_a_moment(
        self,
        variable: Variable,
        choices: tuple[str, ...],
        group: Group,
    ) -> str:
        """A name for what is read just behind the statement that sets it, and nowhere else."""
        key = (variable.scope.node, choices)
        if key not in self._moments:
            self._moments[key] = self.beside(variable, choices, group, plain=True)
        return self._moments[key]

    def beside(
        self,
        variable: Variable,
        choices: tuple[str, ...],
        group: Group,
        plain: bool = False,
    ) -> str:
        """A name for something that belongs to a variable: `g_tx` for `g_optimizer`.

        A `plain` name is one of `choices` itself.
        """
        names = [*choices]
        if not plain:
            names = [_named_after(variable.name, choice) for choice in choices]
        owner = variable.scope.node
        for name in names:
            if name in self._given[owner] or self._is_hidden(name, variable):
                continue
            other = Variable(variable.scope, name)
            # params = model.init(rng), which is not read behind definition.create(params)
            if not self._is_taken(name, variable) or self._ends_before(other, variable):
                self._given[owner].add(name)
                return name
            # params = optimizer.target
            setting = group.alias(other, variable, ATTRIBUTES.get(choices, ""))
            if setting is not None:
                self._given[owner].add(name)
                self.merged[setting] = variable.unit
                return name
        raise Unproven(
            "the name `{}` is taken in {}", names[0], group.where(owner, variable.unit)
        )

    def _is_taken(self, name: str, variable: Variable) -> bool:
        """Whether a name is used in the scope of a variable, other than for variables within it."""
        scope = variable.scope.node
        for inner in _binders(name, variable):
            if inner is None or inner is scope:
                return True
            # of a scope around it
            if scope not in variable.unit.ancestors(inner):
                return True
        return False

    def _is_hidden(self, name: str, variable: Variable) -> bool:
        """Whether a name means something else where an inner scope reads a variable."""
        unit, scope = variable.unit, variable.scope.node
        readers = {_scope_around(load, unit) for load in self.origins.loads(variable)}
        around: set[ast.AST | None] = set()
        for reader in readers:
            around |= {reader, *unit.ancestors(reader)}
        around -= {None, scope}
        # lambda params: loss(params, optimizer.target)
        binders = _binders(name, variable) - {*unit.ancestors(scope)}
        return not around.isdisjoint(binders)

    def _ends_before(self, other: Variable, variable: Variable) -> bool:
        """Whether another variable of the function is no more read once a variable is first set.

        Then its name can be that of a part: the two never have a value at the same time.
        """
        stores = self.origins.stores(variable)
        names = [store for store in stores if isinstance(store, ast.Name)]
        # def train(optimizer)
        if not stores or len(names) < len(stores):
            return False
        other_stores = self.origins.stores(other)
        # only a name of the function's own
        if not other_stores or not isinstance(other.scope.node, ast.FunctionDef):
            return False
        unit, follows = variable.unit, self.origins.dataflow.may_follow
        # and not `del optimizer`
        set_names = [name for name in names if isinstance(name.ctx, ast.Store)]
        settings = [statement_of(unit, name) for name in set_names]
        inside = {node for setting in settings for node in ast.walk(setting)}
        if not all(isinstance(setting, ast.Assign) for setting in settings):
            return False
        # params, optimizer = …, which sets both at once
        if not inside.isdisjoint(other_stores):
            return False

        def is_earlier(node: ast.AST) -> bool:
            if isinstance(node, ast.arg):
                return True
            if not isinstance(node, ast.Name):
                return False
            # a function within this one may be called at any time
            if _scope_around(node, unit) is not other.scope.node:
                return False
            return not any(follows(node, setting) for setting in settings)

        mentions = (*other_stores, *self.origins.loads(other))
        return all(map(is_earlier, mentions))


def _named_after(name: str, choice: str) -> str:
    """A name like another one: `g_tx`, or `model_tx` where that says nothing of an optimizer."""
    if not WORD.search(name):
        return f"{name}_{choice}"
    return WORD.sub(choice, name)


def _scope_around(node: ast.AST, unit: Unit) -> ast.AST:
    scopes = (outer for outer in unit.ancestors(node) if isinstance(outer, ScopeNode))
    return next(scopes, unit.tree)


def _binders(name: str, variable: Variable) -> set[ast.AST | None]:
    """The scopes that bind a name, for each mention of it within the scope of a variable.

    None is for a mention that no scope around it binds.
    """
    found: set[ast.AST | None] = set()
    for node in ast.walk(variable.scope.node):
        match node:
            case ast.Name(id=mentioned) | ast.arg(arg=mentioned) if mentioned == name:
                around = variable.unit.ancestors(node)
                binding = (
                    outer for outer in around if _binds(outer, name, variable.unit)
                )
                found.add(next(binding, None))
    return found


def _binds(node: ast.AST, name: str, unit: Unit) -> bool:
    """Whether a node is a scope that binds a name, and does not declare it as global."""
    # `how` is that of `global params`
    own_names = (bound for bound, how, _ in unit.bindings.get(node, ()) if not how)
    return name in own_names
