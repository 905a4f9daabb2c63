"""The statements that set the parts of an optimizer: it is made, or takes a step."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.analysis.origins import Variable
from codemods.analysis.uses import Use
from codemods.functional.group import Group
from codemods.functional.names import UPDATES, Names, Parts
from codemods.functional.transformations import Transformations
from codemods.idioms import Unproven
from codemods.idioms.carried import typed
from codemods.idioms.overrides import Overrides
from codemods.inference.binding import arguments_of
from codemods.model import Location
from codemods.optimizers.base import RATE, Support
from codemods.optimizers.methods import CREATE
from codemods.rewriting.edits import ReplaceStatement
from codemods.sources.modules import Span, Unit


@dataclass
class Lines:
    """Statements in the place of one: templates, and the pieces of source that they have.

    `supports` are the helpers that they call.
    """

    unit: Unit
    templates: list[str] = field(default_factory=list)
    holes: list[tuple[str, Span]] = field(default_factory=list)
    supports: tuple[Support, ...] = ()

    def hole(self, node: ast.expr) -> str:
        """A hole for a piece of source."""
        name = f"piece_{len(self.holes)}"
        self.holes.append((name, self.unit.span(node)))
        return f"{{{name}}}"

    def instead_of(self, statement: ast.stmt) -> ReplaceStatement:
        """The edit that puts them in the place of a statement."""
        return ReplaceStatement(
            self.unit.span(statement),
            tuple(self.templates),
            tuple(self.holes),
            supports=self.supports,
        )


class Making:
    """Writes the statements for calls that make an optimizer, or take a step."""

    def __init__(
        self, group: Group, names: Names, transformations: Transformations
    ) -> None:
        self.group = group
        self.stepping = group.stepping
        self.overrides = group.results[Overrides]
        self.names = names
        self.transformations = transformations
        self._updates: dict[ast.AST, str] = {}

    def lines(self, use: Use, call: ast.Call, old: Parts | None, new: Parts) -> Lines:
        """The statements that set `new` parts to what a call gives, perhaps from `old` ones."""
        lines = Lines(use.unit)
        if old is None:
            self._create(use, call, new, lines)
        else:
            self._step(use, call, old, new, lines)
        return lines

    def _create(self, use: Use, call: ast.Call, parts: Parts, lines: Lines) -> None:
        """`optimizer = definition.create(params)`."""
        given = arguments_of(CREATE, call) or {}
        if given.keys() != {"target"} or not isinstance(use.node, ast.Attribute):
            raise Unproven("it is not made plainly at {}", use.location)
        definition, params = lines.hole(use.node.value), given["target"]
        # tx = optax.adam(1e-3)
        if name := self.transformations.made.get(call):
            lines.templates.append(f"{name} = {definition}")
            definition = name
        # definition.create(params) needs no `params = params`
        if not isinstance(params, ast.Name) or params.id != parts.params:
            lines.templates.append(f"{parts.params} = {lines.hole(params)}")
        lines.templates.append(f"{parts.opt_state} = {definition}.init({parts.params})")
        if parts.step:
            optimizers = self.group.facts.legacy_objects(call, "optimizer")
            zero = self.group.counted.zero(optimizers)
            lines.templates.append(f"{parts.step} = {zero}")

    def _step(
        self, use: Use, call: ast.Call, old: Parts, new: Parts, lines: Lines
    ) -> None:
        """`optimizer = optimizer.apply_gradient(grads)`, perhaps with a learning rate."""
        gradients = self.stepping.gradients(use)
        where = use.location
        if gradients is None:
            raise Unproven("it is not known what its gradients are at {}", where)
        if self.overrides.keeps_rate(use):
            raise Unproven("the constructor's learning rate is set again at {}", where)
        state, rate = old.opt_state, self._rate(use, gradients, where)
        # optimizer.apply_gradient(grads, learning_rate=rate)
        if rate is not None:
            given = f"{state}, learning_rate={lines.hole(rate)}"
            rated = f"{{optax}}.tree_utils.tree_set({given})"
            rated, lines.supports = typed(rated, state, use, self.stepping)
            state = new.opt_state
            lines.templates.append(f"{state} = {rated}")
        updates = self._updates_in(call)
        name = self.transformations.at(call, use.unit)
        given = f"{lines.hole(gradients)}, {state}, {old.params}"
        # updates, opt_state = tx.update(grads, opt_state, params)
        lines.templates.append(f"{updates}, {new.opt_state} = {name}.update({given})")
        # params = optax.apply_updates(params, updates)
        applied = f"{{optax}}.apply_updates({old.params}, {updates})"
        lines.templates.append(f"{new.params} = {applied}")
        if new.step:
            lines.templates.append(f"{new.step} = {old.step} + 1")

    def _updates_in(self, call: ast.Call) -> str:
        """The name for updates in a function, which are read just behind where they are set."""
        scope = self.group.facts.scope(call).function
        if scope.node not in self._updates:
            here = Variable(scope, "optimizer")
            self._updates[scope.node] = self.names.beside(here, UPDATES, self.group)
        return self._updates[scope.node]

    def _rate(self, use: Use, gradients: ast.expr, where: Location) -> ast.expr | None:
        """The learning rate that a step sets in the state, if it does."""
        override = self.overrides.of(use)
        if override is None:
            return None
        may_swap = self.group.facts.dataflow.may_swap
        # the rate is set in the state, ahead of what computes the gradients
        if override.arg != RATE or not may_swap(gradients, override.value):
            raise Unproven("other hyperparameters are set at {}", where)
        if self.stepping.param_names.may_be_rate:
            raise Unproven(
                "the learning rate that is set at {} may be called as a parameter is",
                where,
            )
        return override.value
